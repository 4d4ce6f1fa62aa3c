//! A request from arrival to its one outcome, on workers that stay alive.

use ostler_core::{
    Answer, Command, Event, Exit, LeaseId, Notice, Refusal, Settings, Started, StopReason, Target,
    Waiting, WorkerId,
};

use crate::support::*;

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

#[test]
fn a_request_goes_to_a_ready_worker_with_its_deadline() {
    let mut stage = Stage::ready(calm(1));
    let by = stage.now.after(secs(7));
    stage.arrive_as(1, |spec| spec.deadline = by);
    assert_eq!(stage.take(), [due(assign(1, p(1, 1)), by)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    assert_eq!(stage.view(1).answered, 1);
}

#[test]
fn a_request_that_comes_before_any_worker_is_ready_waits_for_the_first() {
    let mut stage = Stage::started(calm(2));
    stage.arrive(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(1, p(2, 1))]);
}

#[test]
fn the_least_loaded_worker_is_chosen() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..calm(2) });
    for id in 1..=4 {
        stage.arrive(id);
    }
    let where_to = [(1, 1), (2, 2), (3, 1), (4, 2)];
    assert_eq!(stage.take(), where_to.map(|(id, worker)| assign(id, p(worker, 1))));
}

#[test]
fn among_equally_loaded_workers_the_one_used_last_is_chosen() {
    let mut stage = Stage::ready(calm(3));
    stage.arrive(1);
    stage.arrive(2);
    stage.advance(secs(1));
    stage.complete(1, p(1, 1));
    stage.advance(secs(1));
    stage.complete(2, p(2, 1));
    stage.forget();
    stage.arrive(3);
    stage.arrive(4);
    stage.arrive(5);
    assert_eq!(
        stage.take(),
        [assign(3, p(2, 1)), assign(4, p(1, 1)), assign(5, p(3, 1))],
        "the spare one goes cold"
    );
}

#[test]
fn those_who_wait_go_by_priority_then_owners_in_turn_then_arrival() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    for (id, priority, owner) in [(2, 0, 1), (3, 0, 1), (4, 0, 2), (5, 7, 1), (6, -7, 3)] {
        stage.arrive_as(id, |spec| (spec.priority, spec.owner) = (priority, owner));
    }
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    let mut running = 1;
    for next in [5, 2, 4, 3, 6] {
        stage.complete(running, p(1, 1));
        assert_eq!(stage.take(), [answered(running), assign(next, p(1, 1))]);
        running = next;
    }
}

#[test]
fn an_owner_with_a_long_queue_delays_another_by_one_of_its_own_each() {
    let mut stage = Stage::ready(no_prefetch(1));
    for id in 1..=100 {
        stage.arrive_as(id, |spec| spec.owner = 1);
    }
    for id in 101..=105 {
        stage.arrive_as(id, |spec| spec.owner = 2);
    }
    stage.forget();
    let (mut running, mut of_first) = (1, 0);
    for _ in 0..12 {
        stage.complete(running, p(1, 1));
        running = next_assigned(&stage.take());
        if running <= 100 {
            of_first += 1;
        } else {
            let k = running - 100;
            assert!(of_first <= k + 1, "the {k}-th of the second came after {of_first}");
        }
    }
    assert!(of_first <= 7, "all five of the second were served among twelve");
}

fn next_assigned(deeds: &[Command]) -> u64 {
    let id = deeds.iter().find_map(|deed| match deed {
        Command::Assign { request, .. } => Some(request.0),
        _ => None,
    });
    id.expect("the freed worker gets the next one")
}

#[test]
fn waiting_too_long_in_the_queue_is_a_refusal() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.advance(secs(10) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [refuse(2, Refusal::QueueTimeout)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)], "what was refused is never executed");
}

#[test]
fn a_deadline_in_the_queue_is_a_timeout_that_started_nothing() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    let by = stage.now.after(secs(3));
    stage.arrive_as(2, |spec| spec.deadline = by);
    stage.forget();
    stage.advance(secs(3));
    assert_eq!(stage.take(), [timed_out(2, Waiting::Queue, Started::No)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn a_request_that_arrives_after_its_deadline_is_not_executed() {
    let mut stage = Stage::ready(calm(1));
    stage.advance(secs(1));
    let now = stage.now;
    stage.arrive_as(1, |spec| spec.deadline = now);
    assert_eq!(stage.take(), [timed_out(1, Waiting::Queue, Started::No)]);
}

#[test]
fn a_request_that_expired_while_the_shell_slept_is_not_executed() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    let by = stage.now.after(secs(3));
    stage.arrive_as(2, |spec| spec.deadline = by);
    stage.forget();
    stage.oversleep(secs(4));
    stage.complete(1, p(1, 1));
    stage.feed(Event::DeadlineReached);
    assert_eq!(stage.take(), [answered(1), timed_out(2, Waiting::Queue, Started::No)]);
}

#[test]
fn a_deadline_on_a_worker_answers_the_caller_and_asks_the_worker_to_let_go() {
    let mut stage = Stage::ready(no_prefetch(1));
    let by = stage.now.after(secs(3));
    stage.arrive_as(1, |spec| spec.deadline = by);
    stage.arrive(2);
    stage.forget();
    stage.advance(secs(3));
    let expected = [cancel(1, p(1, 1)), timed_out(1, Waiting::Worker, Started::Yes)];
    assert_eq!(stage.take(), expected);
    stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: true });
    assert_eq!(stage.take(), [assign(2, p(1, 1))], "a worker that let go in time is used again");
}

#[test]
fn the_queue_timeout_no_longer_counts_on_a_worker() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.advance(secs(9));
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.advance(secs(60));
    assert_eq!(stage.take(), []);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2)]);
}

#[test]
fn cancelling_a_queued_request_means_that_it_never_runs() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.cancel(2);
    assert_eq!(stage.take(), [cancelled(2, Started::No)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
}

#[test]
fn cancelling_a_running_request_answers_at_once_and_counts_as_load_until_let_go() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.cancel(1);
    assert_eq!(stage.take(), [cancel(1, p(1, 1)), cancelled(1, Started::Yes)]);
    let view = stage.view(1);
    assert_eq!((view.load, view.held.len()), (1, 0));
    stage.cancel(1);
    stage.cancel(99);
    assert_eq!(stage.take(), [], "a cancel after the outcome is a lost race");
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [assign(2, p(1, 1))], "the late answer is nobody's");
}

#[test]
fn a_worker_that_does_not_let_go_is_made_to_and_replaced() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.cancel(1);
    stage.forget();
    stage.advance(secs(5) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [term(p(1, 1))]);
    stage.advance(secs(2));
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), [], "dead is not yet cleared");
    stage.clear(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    let blamed = stage.notices().into_iter().any(|n| matches!(n, Notice::Crashed { .. }));
    assert!(!blamed, "a forced cancel is no crash");
    assert_eq!(stage.pool.view(stage.now).counters.restarts_unplanned, 0);
}

#[test]
fn a_forced_kill_lets_the_siblings_finish_first() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive(1);
    stage.arrive(2);
    stage.cancel(1);
    stage.forget();
    stage.advance(secs(5));
    stage.arrive(3);
    assert_eq!(stage.take(), []);
    let reason = StopReason::ForcedCancel;
    assert!(stage.notices().contains(&Notice::Stopping { process: p(1, 1), reason }));
    stage.advance(secs(1));
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), term(p(1, 1))]);
}

#[test]
fn siblings_that_outlast_the_grace_are_lost_with_the_reason() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..calm(1) });
    stage.arrive(1);
    stage.arrive(2);
    stage.cancel(1);
    stage.advance(secs(5));
    stage.forget();
    stage.advance(secs(5) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [term(p(1, 1))]);
    stage.exit(p(1, 1), Exit::Signal(15));
    assert_eq!(stage.take(), [stopped(2, Exit::Signal(15), StopReason::ForcedCancel)]);
}

#[test]
fn a_full_queue_refuses_with_figures() {
    let mut stage = Stage::ready(Settings { queue_max: 2, ..no_prefetch(1) });
    stage.arrive(1);
    stage.arrive(2);
    stage.advance(secs(3));
    stage.arrive(3);
    stage.forget();
    stage.advance(secs(1));
    stage.arrive(4);
    let figures = Refusal::Saturated { queued: 2, busy: 1, oldest: secs(4) };
    assert_eq!(stage.take(), [refuse(4, figures)]);
    stage.cancel(2);
    stage.arrive(5);
    assert_eq!(stage.take(), [cancelled(2, Started::No)], "a place in the queue came free");
}

#[test]
fn the_oldest_of_a_full_queue_may_be_one_that_waits_for_its_own_worker() {
    let mut stage = Stage::ready(Settings { queue_max: 1, ..no_prefetch(1) });
    stage.arrive(1);
    stage.arrive_for(2, Target::Worker(WorkerId(1)));
    stage.forget();
    stage.advance(secs(4));
    stage.arrive(3);
    let figures = Refusal::Saturated { queued: 1, busy: 1, oldest: secs(4) };
    assert_eq!(stage.take(), [refuse(3, figures)]);
}

#[test]
fn the_oldest_of_a_full_queue_may_be_one_that_waits_for_its_place_on_a_lease() {
    let mut stage = Stage::ready(Settings { queue_max: 1, ..no_prefetch(1) });
    stage.ask_lease(1, 1);
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    stage.arrive_for(2, Target::Lease(LeaseId(1), 0));
    stage.forget();
    stage.advance(secs(4));
    stage.arrive(3);
    let figures = Refusal::Saturated { queued: 1, busy: 1, oldest: secs(4) };
    assert_eq!(stage.take(), [refuse(3, figures)]);
}

#[test]
fn without_a_queue_only_a_free_worker_is_good_enough() {
    let mut stage = Stage::ready(Settings { queue_max: 0, ..calm(1) });
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    stage.arrive(2);
    let figures = Refusal::Saturated { queued: 0, busy: 1, oldest: secs(0) };
    assert_eq!(stage.take(), [refuse(2, figures)]);
}

#[test]
fn a_crash_loses_the_request_and_says_that_it_may_have_run() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive(1);
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(11));
    assert_eq!(stage.take(), [crashed(1, Exit::Signal(11))]);
}

#[test]
fn a_cancelled_request_has_no_second_outcome_when_its_worker_crashes() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.cancel(1);
    stage.forget();
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
}

#[test]
fn a_request_that_could_not_be_written_goes_to_another_worker_as_one_that_never_ran() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive(1);
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::NotSent);
    assert_eq!(stage.take(), [assign_again(1, 2, 0, p(2, 1))]);
}

#[test]
fn a_process_that_could_not_be_written_to_gets_nothing_until_it_is_heard() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::NotSent);
    assert_eq!(stage.take(), []);
    stage.feed(Event::ProcessHeard { process: p(1, 1) });
    assert_eq!(stage.take(), [assign_again(1, 2, 0, p(1, 1))]);
}

#[test]
fn an_answer_that_comes_twice_is_dropped_and_counted() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), []);
    assert_eq!(stage.notices(), [Notice::StaleDropped { process: p(1, 1) }]);
    assert_eq!(stage.stale(), 1);
}

#[test]
fn the_counters_add_up() {
    let mut stage = Stage::ready(Settings { queue_max: 1, ..no_prefetch(1) });
    for id in 1..=3 {
        stage.arrive(id);
    }
    stage.cancel(2);
    stage.complete(1, p(1, 1));
    let counters = stage.pool.view(stage.now).counters;
    assert_eq!((counters.arrived, counters.assigned), (3, 1));
    assert_eq!((counters.resolved, counters.refused), (2, 1));
}
