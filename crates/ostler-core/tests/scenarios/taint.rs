//! A process that cannot be trusted any more finishes what it works on and is replaced.

use ostler_core::{
    Answer, Exit, LeaseEnd, LeaseId, Notice, Phase, Refusal, Settings, Status, StopReason, Target,
};

use crate::support::*;

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

#[test]
fn an_idle_tainted_process_is_asked_to_go_and_followed_by_the_next() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.taint(p(1, 1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    assert_eq!((stage.status(1), stage.phase(1)), (Status::Running, Some(Phase::Stopping)));
    assert_eq!(stage.view(1).stopping, Some(StopReason::Tainted));
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    assert_eq!(stage.counters().restarts_unplanned, 1, "by the rule of a crash");
}

#[test]
fn a_tainted_process_finishes_what_it_works_on_and_gets_nothing_new() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive(1);
    stage.forget();
    stage.taint(p(1, 1));
    stage.arrive(2);
    assert_eq!(stage.take(), []);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    stage.leave(p(1, 1));
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [spawn(p(1, 2)), assign(2, p(1, 2))]);
}

#[test]
fn its_work_has_the_drain_timeout_and_no_more() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.taint(p(1, 1));
    stage.forget();
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.exit(p(1, 1), Exit::Code(0));
    assert_eq!(stage.take(), [stopped(1, Exit::Code(0), StopReason::Tainted)]);
}

#[test]
fn what_it_has_not_begun_goes_elsewhere() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(100);
    stage.complete(100, p(1, 1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.taint(p(1, 1));
    assert_eq!(stage.take(), [withdraw(2, p(1, 1))]);
    stage.answer(2, 1, p(1, 1), Answer::Cancelled { started: false });
    stage.complete(1, p(1, 1));
    stage.leave(p(1, 1));
    stage.forget();
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [assign_again(2, 2, 0, p(1, 2))]);
}

#[test]
fn the_second_taint_in_a_row_waits_for_the_backoff() {
    let mut stage = Stage::ready(no_prefetch(1));
    for generation in 1..=2 {
        stage.taint(p(1, generation));
        stage.leave(p(1, generation));
        if generation == 1 {
            stage.become_ready(p(1, 2));
        }
    }
    stage.forget();
    stage.advance(ms(200) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [spawn(p(1, 3))]);
}

#[test]
fn a_process_tainted_before_it_is_ready_never_serves() {
    let mut stage = Stage::started(no_prefetch(1));
    stage.arrive(1);
    stage.forget();
    stage.taint(p(1, 1));
    stage.become_ready(p(1, 1));
    let deeds = stage.take();
    assert!(!deeds.contains(&assign(1, p(1, 1))), "{deeds:?}");
}

#[test]
fn a_taint_during_the_shutdown_changes_nothing() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.shut_down();
    stage.forget();
    stage.taint(p(1, 1));
    assert_eq!(stage.take(), []);
    assert_eq!(stage.view(1).stopping, Some(StopReason::Shutdown));
}

#[test]
fn a_taint_of_an_older_process_is_dropped_and_counted() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.forget();
    stage.taint(p(1, 1));
    assert_eq!((stage.phase(1), stage.stale()), (Some(Phase::Ready), 1));
    assert_eq!(stage.notices(), [Notice::StaleDropped { process: p(1, 1) }]);
}

#[test]
fn a_lease_on_it_ends_with_it_and_what_waits_there_is_refused() {
    let mut stage = Stage::ready(no_prefetch(1));
    let place = Target::Lease(LeaseId(1), 0);
    stage.ask_lease(1, 1);
    stage.arrive_for(1, place);
    stage.arrive_for(2, place);
    stage.forget();
    stage.taint(p(1, 1));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))], "no new call on a tainted process");
    stage.exit(p(1, 1), Exit::Code(0));
    let gone = [lose_place(1, 0), refuse(2, Refusal::NoSuchLease), end_lease(1, LeaseEnd::Lost)];
    assert_eq!(stage.take(), gone);
}

#[test]
fn others_take_over_while_it_drains() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.taint(p(1, 1));
    stage.forget();
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(2, p(2, 1))]);
}

#[test]
fn a_handler_that_the_end_of_its_process_interrupted_was_not_cancelled_by_its_caller() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive(1);
    stage.arrive_idempotent(2);
    stage.taint(p(1, 1));
    stage.advance(secs(30));
    stage.forget();
    for id in [1, 2] {
        stage.answer(id, 1, p(1, 1), Answer::Cancelled { started: true });
    }
    assert_eq!(stage.take(), [stopped(1, Exit::Unknown, StopReason::Tainted)]);
    stage.leave(p(1, 1));
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [spawn(p(1, 2)), assign_again(2, 2, 1, p(1, 2))]);
}

#[test]
fn what_a_process_gives_back_on_its_way_out_runs_elsewhere() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.taint(p(1, 1));
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: false });
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.leave(p(1, 1));
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [spawn(p(1, 2)), assign_again(1, 2, 0, p(1, 2))]);
}
