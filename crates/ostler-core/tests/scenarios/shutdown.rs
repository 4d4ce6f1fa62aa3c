//! The end of a pool.

use ostler_core::{
    Action, Answer, Command, Event, Exit, LeaseEnd, LeaseId, Lifecycle, LossReason, Notice,
    Outcome, Recording, Refusal, Reply, Settings, Started, StopReason, Target, WorkerId,
};

use crate::support::*;

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

fn kill_now(stage: &mut Stage) {
    stage.feed(Event::ShutdownRequested { now: true });
}

/// The pool has stopped, once, and wants nothing more.
fn assert_over(stage: &mut Stage) {
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Stopped);
    assert_eq!(stage.pool.next_deadline(), None, "nothing is left to wait for");
    stage.shut_down();
    kill_now(stage);
    stage.advance(secs(600));
    assert_eq!((stage.take(), stage.records()), (vec![], vec![]));
}

#[test]
fn those_who_wait_are_refused_and_those_who_run_finish() {
    let mut stage = Stage::ready(no_prefetch(2));
    for id in 1..=3 {
        stage.arrive(id);
    }
    stage.forget();
    stage.shut_down();
    assert_eq!(stage.take(), [refuse(3, Refusal::ShuttingDown)]);
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Draining);
    stage.arrive(4);
    assert_eq!(stage.take(), [refuse(4, Refusal::ShuttingDown)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), ask(p(2, 1))]);
    stage.leave(p(1, 1));
    stage.exit(p(2, 1), Exit::Code(0));
    assert_eq!(stage.take(), []);
    stage.clear(p(2, 1));
    assert_eq!(stage.take(), [Command::Stopped]);
    assert_over(&mut stage);
}

#[test]
fn planned_exits_are_not_crashes_and_nothing_respawns() {
    let mut stage = Stage::ready(calm(2));
    stage.shut_down();
    assert_eq!(stage.take(), [ask(p(1, 1)), ask(p(2, 1))]);
    stage.leave(p(1, 1));
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [Command::Stopped]);
    let blamed = stage.notices().into_iter().any(|n| matches!(n, Notice::Crashed { .. }));
    assert!(!blamed);
    assert_over(&mut stage);
}

#[test]
fn the_ladder_is_climbed_down_for_those_who_do_not_go() {
    let mut stage = Stage::ready(calm(1));
    stage.shut_down();
    stage.forget();
    stage.advance(secs(2));
    assert_eq!(stage.take(), [term(p(1, 1))]);
    stage.advance(secs(2));
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.advance(secs(60));
    assert_eq!(stage.take(), [], "dead is what was waited for");
    stage.exit(p(1, 1), Exit::Signal(9));
    stage.clear(p(1, 1));
    assert_eq!(stage.take(), [Command::Stopped]);
}

#[test]
fn running_requests_have_the_drain_timeout_and_no_more() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.forget();
    stage.shut_down();
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.advance(secs(4));
    assert_eq!(stage.take(), [term(p(1, 1)), kill(p(1, 1))]);
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), [stopped(1, Exit::Signal(9), StopReason::Shutdown)]);
}

#[test]
fn a_shutdown_during_the_start_leaves_nothing() {
    let mut stage =
        Stage::started(Settings { start_batch: 1, start_batch_delay: secs(1), ..calm(2) });
    stage.arrive(1);
    stage.forget();
    stage.shut_down();
    assert_eq!(stage.take(), [refuse(1, Refusal::ShuttingDown), term(p(1, 1))]);
    stage.become_ready(p(1, 1));
    assert_eq!(stage.take(), [], "a late ready makes no difference");
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [Command::Stopped], "the second one was never spawned");
    assert_over(&mut stage);
}

#[test]
fn a_spawn_that_fails_during_the_shutdown_counts_as_gone() {
    let mut stage = Stage::started(calm(1));
    stage.shut_down();
    stage.forget();
    stage.fail_spawn(p(1, 1), ostler_core::SpawnFailure::Exhausted);
    assert_eq!(stage.take(), [Command::Stopped]);
    assert_over(&mut stage);
}

#[test]
fn a_shutdown_before_the_first_worker_is_stored_spawns_nothing() {
    let mut stage = Stage::new(calm(1));
    stage.store = Store::Silent;
    stage.feed(Event::PoolStarted);
    stage.shut_down();
    assert_eq!(stage.take(), [Command::Stopped]);
    for (record, _) in stage.records() {
        stage.feed(Event::Recorded { record, result: Recording::Stored });
    }
    assert_over(&mut stage);
}

#[test]
fn the_second_signal_kills_at_once() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive(1);
    stage.shut_down();
    stage.forget();
    kill_now(&mut stage);
    assert_eq!(stage.take(), [kill(p(1, 1)), kill(p(2, 1))]);
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), [stopped(1, Exit::Signal(9), StopReason::Shutdown)]);
    stage.clear(p(1, 1));
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [Command::Stopped]);
    assert_over(&mut stage);
}

#[test]
fn a_first_signal_may_kill_at_once_too() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    kill_now(&mut stage);
    assert_eq!(stage.take(), [refuse(2, Refusal::ShuttingDown), kill(p(1, 1))]);
}

#[test]
fn a_crash_during_the_shutdown_is_not_retried() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive_idempotent(1);
    stage.shut_down();
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(11));
    let deeds = stage.take();
    assert!(
        matches!(deeds[..], [Command::Resolve { outcome: Outcome::Lost { .. }, .. }]),
        "{deeds:?}"
    );
}

#[test]
fn a_retryable_error_during_the_shutdown_is_the_answer() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_idempotent(1);
    stage.shut_down();
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
}

#[test]
fn a_request_between_two_attempts_is_said_to_have_run() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_idempotent(1);
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    stage.forget();
    stage.shut_down();
    let deeds = stage.take();
    let Some(Command::Resolve { outcome, .. }) = deeds.first() else {
        panic!("a request that ran is not refused: {deeds:?}");
    };
    let honest = matches!(
        outcome,
        Outcome::Answered
            | Outcome::Lost {
                reason: LossReason::Stopped(StopReason::Shutdown),
                started: Started::Yes,
                ..
            }
    );
    assert!(honest, "{outcome:?}");
}

#[test]
fn what_was_prefetched_is_called_back_and_refused() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1_000);
    stage.complete(1_000, p(1, 1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.shut_down();
    assert_eq!(stage.take(), [withdraw(2, p(1, 1))]);
    stage.answer(2, 1, p(1, 1), Answer::Cancelled { started: false });
    assert_eq!(stage.take(), [refuse(2, Refusal::ShuttingDown)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
}

#[test]
fn leases_end_and_what_runs_on_them_finishes() {
    let mut stage = Stage::ready(calm(2));
    stage.ask_lease(1, 1);
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    stage.arrive_for(2, Target::Lease(LeaseId(1), 0));
    stage.ask_lease(2, 2);
    stage.forget();
    stage.shut_down();
    let expected = [
        refuse(2, Refusal::ShuttingDown),
        end_lease(1, LeaseEnd::ShuttingDown),
        refuse_lease(2, Refusal::ShuttingDown),
        ask(p(2, 1)),
    ];
    let deeds = stage.take();
    assert_eq!(deeds.len(), expected.len(), "{deeds:?}");
    for deed in &expected {
        assert!(deeds.contains(deed), "{deed:?} is not in {deeds:?}");
    }
    stage.ask_lease(3, 1);
    assert_eq!(stage.take(), [refuse_lease(3, Refusal::ShuttingDown)]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
}

#[test]
fn orders_are_turned_away_and_one_under_way_is_answered() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.forget();
    let complete = stage.complete_worker(1);
    stage.shut_down();
    assert_eq!(stage.take(), [reply(complete, Reply::ShuttingDown)]);
    for action in [Action::Create, Action::Terminate(WorkerId(1)), Action::Recycle(WorkerId(1))] {
        let order = stage.order(action);
        assert_eq!(stage.take(), [reply(order, Reply::ShuttingDown)], "{action:?}");
    }
}

#[test]
fn a_termination_under_way_is_answered_before_the_pool_has_stopped() {
    let mut stage = Stage::ready(calm(1));
    let order = stage.terminate(1);
    stage.shut_down();
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(9));
    stage.clear(p(1, 1));
    let done = done(order, 1, ostler_core::Status::Terminated);
    assert_eq!(stage.take(), [done, Command::Stopped]);
}

#[test]
fn a_frozen_process_is_thawed_so_that_it_can_go() {
    let mut stage = Stage::ready(calm(1));
    stage.order(Action::Pause { worker: WorkerId(1), freeze: true });
    stage.forget();
    stage.shut_down();
    let thaw = Command::Thaw { process: p(1, 1) };
    assert_eq!(stage.take(), [thaw, ask(p(1, 1))]);
}

#[test]
fn a_backoff_that_ends_during_the_shutdown_starts_nothing() {
    let mut stage = Stage::ready(calm(1));
    stage.crash(p(1, 1));
    stage.crash(p(1, 2));
    stage.forget();
    stage.shut_down();
    assert_eq!(stage.take(), [Command::Stopped]);
    assert_over(&mut stage);
}

#[test]
fn an_open_breaker_makes_no_worker_during_the_shutdown() {
    let mut stage = Stage::ready(Settings { restart_max: 0, ..calm(2) });
    stage.crash(p(1, 1));
    stage.shut_down();
    stage.forget();
    stage.advance(secs(1));
    stage.leave(p(2, 1));
    assert_eq!(stage.take(), [Command::Stopped]);
    assert_over(&mut stage);
}

#[test]
fn a_replacement_under_way_is_given_up() {
    let mut stage = Stage::ready(calm(1));
    stage.recycle(1);
    stage.forget();
    stage.shut_down();
    assert_eq!(stage.take(), [ask(p(1, 1)), term(p(2, 1))]);
    stage.leave(p(1, 1));
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [Command::Stopped]);
    assert_over(&mut stage);
}

#[test]
fn an_ordered_start_that_was_not_ready_yet_leaves_no_timer_behind() {
    let mut stage = Stage::ready(calm(1));
    stage.order(Action::Create);
    stage.order(Action::Start(WorkerId(2)));
    stage.forget();
    stage.shut_down();
    stage.leave(p(1, 1));
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [ask(p(1, 1)), term(p(2, 1)), Command::Stopped]);
    stage.forget();
    assert_over(&mut stage);
}
