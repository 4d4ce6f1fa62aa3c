//! A process from spawn to clearance, whatever it is given to do.

use std::time::Duration;

use ostler_core::{
    Event, Exit, Heartbeat, Lifecycle, Notice, Phase, ProcessId, Settings, SpawnFailure, Status,
    StopReason,
};

use crate::support::*;

/// A pool of one that has been told to start, and nothing else.
fn starting() -> Stage {
    let mut stage = Stage::started(calm(1));
    stage.forget();
    stage
}

/// A pool of one whose process works on request 1.
fn busy() -> Stage {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.forget();
    stage
}

/// A pool of one whose process was asked to go.
fn asked_to_go() -> Stage {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.discard(1);
    assert_eq!(stage.phase(1), Some(Phase::Stopping));
    stage.forget();
    stage
}

fn closed(process: ProcessId) -> Event {
    Event::StreamClosed { process }
}

fn violated(process: ProcessId) -> Event {
    Event::ProtocolViolated { process }
}

#[test]
fn processes_start_in_batches_and_the_next_follows_the_first_that_is_ready() {
    let mut stage = Stage::started(Settings { start_batch: 2, ..calm(4) });
    assert_eq!(stage.take(), [spawn(p(1, 1)), spawn(p(2, 1))]);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [spawn(p(3, 1))]);
    stage.fail_spawn(p(1, 1), SpawnFailure::Broken);
    assert_eq!(stage.take(), [spawn(p(4, 1))], "a failed start frees its place in the batch");
    stage.become_ready(p(3, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
}

#[test]
fn batches_keep_their_distance_in_time() {
    let settings = Settings { start_batch: 2, start_batch_delay: secs(1), ..calm(5) };
    let mut stage = Stage::started(settings);
    stage.become_ready(p(1, 1));
    stage.become_ready(p(2, 1));
    stage.advance(secs(1) - ms(1));
    assert_eq!(stage.take(), [spawn(p(1, 1)), spawn(p(2, 1))]);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [spawn(p(3, 1)), spawn(p(4, 1))]);
    stage.advance(secs(5));
    assert_eq!(stage.take(), [], "the second batch is still starting");
    stage.become_ready(p(3, 1));
    assert_eq!(stage.take(), [spawn(p(5, 1))]);
}

#[test]
fn a_process_that_is_not_ready_in_time_is_killed_and_started_again() {
    let mut stage = Stage::started(calm(1));
    stage.forget();
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.advance(secs(600));
    assert_eq!(stage.take(), [], "nothing more than a kill can be done; it is waited for");
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), []);
    stage.clear(p(1, 1));
    stage.advance(ms(200));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    assert_eq!(stage.pool.view(stage.now).counters.restarts_unplanned, 1);
}

#[test]
fn a_ready_that_comes_after_the_start_timeout_is_dropped_and_counted() {
    let mut stage = Stage::started(calm(1));
    stage.advance(secs(30));
    stage.arrive(1);
    stage.forget();
    stage.become_ready(p(1, 1));
    assert_eq!(stage.take(), []);
    assert_eq!(stage.notices(), [Notice::StaleDropped { process: p(1, 1) }]);
    assert_eq!((stage.phase(1), stage.stale()), (Some(Phase::Stopping), 1));
}

#[test]
fn the_stop_ladder_asks_then_terminates_then_kills() {
    let mut stage = asked_to_go();
    assert_steps(&mut stage, [(secs(2), term(p(1, 1))), (secs(2), kill(p(1, 1)))]);
    stage.advance(secs(600));
    assert_eq!(stage.take(), []);
}

#[test]
fn a_busy_process_drains_before_the_ladder() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.arrive_for(1, ostler_core::Target::Lease(ostler_core::LeaseId(1), 0));
    stage.discard(1);
    stage.forget();
    let steps = [(secs(30), ask(p(1, 1))), (secs(2), term(p(1, 1))), (secs(2), kill(p(1, 1)))];
    assert_steps(&mut stage, steps);
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), [stopped(1, Exit::Signal(9), StopReason::Discarded)]);
}

/// Each order comes exactly that long after the one before it.
fn assert_steps<const N: usize>(stage: &mut Stage, steps: [(Duration, ostler_core::Command); N]) {
    for (after, order) in steps {
        stage.advance(after - ms(1));
        assert_eq!(stage.take(), []);
        stage.advance(ms(1));
        assert_eq!(stage.take(), [order]);
    }
}

#[test]
fn a_drained_process_is_asked_as_soon_as_its_last_request_is_done() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.arrive_for(1, ostler_core::Target::Lease(ostler_core::LeaseId(1), 0));
    stage.discard(1);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
}

#[test]
fn a_process_that_is_not_ready_yet_is_not_asked_but_terminated() {
    let mut stage = starting();
    let order = stage.complete_worker(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Completed), term(p(1, 1))]);
}

#[test]
fn the_next_incarnation_waits_until_the_old_one_is_waited_for_and_cleared() {
    let mut stage = Stage::ready(calm(1));
    stage.clear(p(1, 1));
    assert_eq!((stage.take(), stage.stale()), (vec![], 1), "cleared before the exit is no news");
    stage.exit(p(1, 1), Exit::Code(1));
    stage.arrive(1);
    stage.advance(secs(5));
    assert_eq!(stage.take(), []);
    assert_eq!(stage.view(1).last_exit, Some(Exit::Code(1)));
    stage.clear(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [assign(1, p(1, 2))]);
}

#[test]
fn a_process_that_closes_its_stream_while_it_serves_is_killed() {
    for event in [closed(p(1, 1)), violated(p(1, 1))] {
        let mut stage = busy();
        let reason = match event {
            Event::StreamClosed { .. } => StopReason::StreamClosed,
            _ => StopReason::ProtocolViolation,
        };
        stage.feed(event);
        assert_eq!(stage.take(), [kill(p(1, 1))]);
        assert!(stage.notices().contains(&Notice::Stopping { process: p(1, 1), reason }));
        stage.exit(p(1, 1), Exit::Signal(9));
        assert_eq!(stage.take(), [stopped(1, Exit::Signal(9), reason)]);
        let crashed = Notice::Crashed { process: p(1, 1), exit: Exit::Signal(9) };
        assert!(stage.notices().contains(&crashed));
    }
}

#[test]
fn a_process_that_was_asked_to_go_may_close_its_stream() {
    let mut stage = asked_to_go();
    stage.feed(closed(p(1, 1)));
    assert_eq!(stage.take(), []);
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    let blamed = stage.notices().into_iter().any(|n| matches!(n, Notice::Crashed { .. }));
    assert!(!blamed, "a planned exit is no crash");
}

#[test]
fn the_pool_says_once_that_the_first_and_that_all_are_ready() {
    let mut stage = Stage::started(calm(2));
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Starting);
    stage.forget();
    stage.become_ready(p(1, 1));
    assert!(stage.notices().contains(&Notice::FirstReady));
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Running);
    stage.become_ready(p(2, 1));
    assert!(stage.notices().contains(&Notice::AllReady));
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    let again = [Notice::FirstReady, Notice::AllReady];
    assert!(!stage.notices().iter().any(|notice| again.contains(notice)));
}

#[test]
fn a_spawn_that_the_system_refuses_pauses_the_worker_until_the_pressure_ends() {
    let mut stage = Stage::started(calm(1));
    stage.forget();
    stage.fail_spawn(p(1, 1), SpawnFailure::Exhausted);
    assert_eq!((stage.status(1), stage.phase(1)), (Status::Paused, None));
    stage.advance(ms(200) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    assert_eq!(stage.status(1), Status::Running);
    stage.fail_spawn(p(1, 2), SpawnFailure::Exhausted);
    stage.advance(ms(400));
    assert_eq!(stage.take(), [spawn(p(1, 3))]);
    assert_eq!(stage.pool.view(stage.now).counters.restarts_unplanned, 0, "no budget is spent");
}

#[test]
fn the_system_does_not_end_a_pause_that_it_did_not_begin() {
    let mut stage = Stage::ready(calm(1));
    stage.pause(1);
    stage.crash(p(1, 1));
    stage.forget();
    stage.advance(secs(600));
    assert_eq!(stage.take(), []);
    assert_eq!(stage.status(1), Status::Paused);
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), spawn(p(1, 2))]);
}

#[test]
fn the_first_ping_waits_for_the_initial_delay() {
    let heartbeat = Heartbeat {
        initial_delay: secs(3),
        ..Settings::of_size(1).heartbeat.expect("on by default")
    };
    let mut stage = Stage::ready(Settings { heartbeat: Some(heartbeat), ..calm(1) });
    stage.pongs = false;
    stage.advance(secs(3) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [ping(p(1, 1))]);
}
