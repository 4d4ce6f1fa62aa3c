//! What is told of a process's phases: every change once, with its reason and its duration.

use std::time::Duration;

use ostler_core::{
    Checkup, Event, Exit, LeaseId, Notice, Phase, PhaseReason, ProcessId, Retirement, Settings,
    SpawnFailure, StopReason, Target,
};

use crate::support::*;
use Phase::{Busy, Dead, Degraded, Ready, Starting, Stopping};

type Told = (Option<Phase>, Phase, PhaseReason, Duration);

/// The changes told of since the last look, all of process 1#1.
fn told(stage: &mut Stage) -> Vec<Told> {
    told_of(stage, p(1, 1))
}

fn told_of(stage: &mut Stage, whose: ProcessId) -> Vec<Told> {
    let notices = stage.notices().into_iter();
    let changes = notices.filter_map(|notice| match notice {
        Notice::PhaseChanged { process, from, to, reason, after } if process == whose => {
            Some((from, to, reason, after))
        }
        _ => None,
    });
    changes.collect()
}

/// A change that came at once.
fn at_once(from: Phase, to: Phase, reason: PhaseReason) -> Told {
    after(from, to, reason, ms(0))
}

fn after(from: Phase, to: Phase, reason: PhaseReason, time: Duration) -> Told {
    (Some(from), to, reason, time)
}

fn stopped_for(reason: StopReason) -> PhaseReason {
    PhaseReason::Stopped(reason)
}

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

fn with_pings() -> Settings {
    Settings { heartbeat: Settings::of_size(1).heartbeat, ..no_prefetch(1) }
}

#[test]
fn a_spawn_and_a_start_are_told() {
    let mut stage = Stage::started(no_prefetch(1));
    assert_eq!(told(&mut stage), [(None, Starting, PhaseReason::Spawned, ms(0))]);
    stage.advance(secs(3));
    stage.become_ready(p(1, 1));
    assert_eq!(told(&mut stage), [after(Starting, Ready, PhaseReason::Ready, secs(3))]);
}

#[test]
fn every_flip_between_ready_and_busy_is_told_with_its_duration() {
    let mut stage = Stage::ready(no_prefetch(1));
    for id in 1..=3 {
        stage.advance(ms(7));
        stage.arrive(id);
        stage.advance(ms(id));
        stage.complete(id, p(1, 1));
        let flips = [
            after(Ready, Busy, PhaseReason::Filled, ms(7)),
            after(Busy, Ready, PhaseReason::Freed, ms(id)),
        ];
        assert_eq!(told(&mut stage), flips);
    }
}

#[test]
fn only_a_full_process_is_busy() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive(1);
    assert_eq!(told(&mut stage), []);
    stage.arrive(2);
    assert_eq!(told(&mut stage), [at_once(Ready, Busy, PhaseReason::Filled)]);
    stage.complete(1, p(1, 1));
    assert_eq!(told(&mut stage), [at_once(Busy, Ready, PhaseReason::Freed)]);
    stage.complete(2, p(1, 1));
    assert_eq!(told(&mut stage), []);
}

#[test]
fn a_process_whose_next_request_lies_ready_stays_busy() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(100);
    stage.complete(100, p(1, 1));
    stage.forget();
    stage.arrive(1);
    stage.arrive(2);
    stage.complete(1, p(1, 1));
    assert_eq!(told(&mut stage), [at_once(Ready, Busy, PhaseReason::Filled)]);
    stage.complete(2, p(1, 1));
    assert_eq!(told(&mut stage), [at_once(Busy, Ready, PhaseReason::Freed)]);
}

#[test]
fn a_leased_place_that_gets_its_next_call_stays_busy() {
    let mut stage = Stage::ready(no_prefetch(1));
    let place = Target::Lease(LeaseId(1), 0);
    stage.ask_lease(1, 1);
    stage.arrive_for(1, place);
    stage.arrive_for(2, place);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(told(&mut stage), []);
    stage.complete(2, p(1, 1));
    assert_eq!(told(&mut stage), [at_once(Busy, Ready, PhaseReason::Freed)]);
}

#[test]
fn a_cancelled_request_keeps_its_process_busy_until_it_is_let_go() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.forget();
    stage.cancel(1);
    assert_eq!(told(&mut stage), []);
    stage.complete(1, p(1, 1));
    assert_eq!(told(&mut stage), [at_once(Busy, Ready, PhaseReason::Freed)]);
}

#[test]
fn silence_and_the_first_sound_after_it_are_told() {
    let mut stage = Stage::ready(with_pings());
    stage.pongs = false;
    stage.advance(secs(10));
    assert_eq!(told(&mut stage), [after(Ready, Degraded, PhaseReason::HeartbeatMissed, secs(10))]);
    stage.advance(secs(2));
    assert_eq!(told(&mut stage), [], "a second miss is no second change");
    stage.feed(Event::ProcessHeard { process: p(1, 1) });
    assert_eq!(told(&mut stage), [after(Degraded, Ready, PhaseReason::Heard, secs(2))]);
    stage.feed(Event::ProcessHeard { process: p(1, 1) });
    assert_eq!(told(&mut stage), []);
}

#[test]
fn silence_that_ends_the_process_is_told_as_its_stop() {
    let mut stage = Stage::ready(with_pings());
    stage.pongs = false;
    stage.advance(secs(14));
    let lost = stopped_for(StopReason::HeartbeatLost);
    let expected = [
        after(Ready, Degraded, PhaseReason::HeartbeatMissed, secs(10)),
        after(Degraded, Stopping, lost, secs(4)),
    ];
    assert_eq!(told(&mut stage), expected);
}

/// A process that fell silent while it was leased and idle, and then got a call.
fn silent_with_a_call() -> Stage {
    let mut stage = Stage::ready(with_pings());
    stage.ask_lease(1, 1);
    stage.pongs = false;
    stage.advance(secs(10));
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    assert_eq!(stage.phase(1), Some(Degraded));
    stage.forget();
    stage
}

#[test]
fn a_degraded_process_with_a_call_comes_back_busy() {
    let mut stage = silent_with_a_call();
    stage.feed(Event::ProcessHeard { process: p(1, 1) });
    assert_eq!(told(&mut stage), [at_once(Degraded, Busy, PhaseReason::Heard)]);
}

#[test]
fn an_answer_is_a_sign_of_life_and_told_as_one() {
    let mut stage = silent_with_a_call();
    stage.complete(1, p(1, 1));
    assert_eq!(told(&mut stage), [at_once(Degraded, Ready, PhaseReason::Heard)]);
}

#[test]
fn failed_and_passed_checks_are_told_where_they_change_the_phase() {
    let checkup = Checkup { interval: secs(30), timeout: secs(5), again: secs(5), failures: 3 };
    let mut stage = Stage::ready(Settings { checkup: Some(checkup), ..no_prefetch(1) });
    stage.advance(secs(30));
    stage.report(p(1, 1), true);
    assert_eq!(told(&mut stage), []);
    stage.advance(secs(30));
    stage.report(p(1, 1), false);
    assert_eq!(told(&mut stage), [after(Ready, Degraded, PhaseReason::CheckFailed, secs(60))]);
    stage.advance(secs(5));
    stage.report(p(1, 1), false);
    assert_eq!(told(&mut stage), [], "it was degraded already");
    stage.advance(secs(5));
    stage.report(p(1, 1), true);
    assert_eq!(told(&mut stage), [after(Degraded, Ready, PhaseReason::CheckPassed, secs(10))]);
    stage.advance(secs(30 + 5 + 5 + 5 + 5 + 5));
    let unhealthy = stopped_for(StopReason::Unhealthy);
    let expected = [
        after(Ready, Degraded, PhaseReason::CheckFailed, secs(35)),
        after(Degraded, Stopping, unhealthy, secs(20)),
    ];
    assert_eq!(told(&mut stage), expected);
}

#[test]
fn every_rung_of_the_ladder_is_one_stopping() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.forget();
    stage.shut_down();
    assert_eq!(told(&mut stage), [at_once(Busy, Stopping, stopped_for(StopReason::Shutdown))]);
    stage.advance(secs(60));
    assert_eq!(told(&mut stage), [], "asked, terminated, killed");
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(told(&mut stage), [after(Stopping, Dead, PhaseReason::Exited, secs(60))]);
    stage.clear(p(1, 1));
    assert_eq!(told(&mut stage), []);
}

/// A way to stop process 1#1, as it is told.
type Stop = (StopReason, fn(&mut Stage));

#[test]
fn a_stop_is_told_with_its_own_reason() {
    let stops: [Stop; 8] = [
        (StopReason::Shutdown, Stage::shut_down),
        (StopReason::Retired(Retirement::Ordered), |stage| {
            stage.complete_worker(1);
        }),
        (StopReason::Terminated, |stage| {
            stage.terminate(1);
        }),
        (StopReason::Tainted, |stage| stage.taint(p(1, 1))),
        (StopReason::StreamClosed, |stage| {
            stage.feed(Event::StreamClosed { process: p(1, 1) });
        }),
        (StopReason::ProtocolViolation, |stage| {
            stage.feed(Event::ProtocolViolated { process: p(1, 1) });
        }),
        (StopReason::Discarded, |stage| {
            stage.ask_lease(1, 1);
            stage.discard(1);
        }),
        (StopReason::ForcedCancel, |stage| {
            stage.arrive(1);
            stage.cancel(1);
            stage.notices();
            stage.advance(secs(5));
        }),
    ];
    for (reason, stop) in stops {
        let mut stage = Stage::ready(no_prefetch(1));
        stop(&mut stage);
        let changes = told(&mut stage);
        let [(_, to, why, _)] = changes[..] else { panic!("{reason:?}: {changes:?}") };
        assert_eq!((to, why), (Stopping, stopped_for(reason)));
    }
}

#[test]
fn the_first_reason_of_a_stop_stays() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.taint(p(1, 1));
    stage.forget();
    stage.shut_down();
    stage.feed(Event::ProtocolViolated { process: p(1, 1) });
    assert_eq!(told(&mut stage), []);
    assert_eq!(stage.view(1).stopping, Some(StopReason::Tainted));
}

#[test]
fn a_start_that_takes_too_long_is_told_as_a_stop() {
    let mut stage = Stage::started(no_prefetch(1));
    stage.forget();
    stage.advance(secs(30));
    let late = stopped_for(StopReason::StartTimeout);
    assert_eq!(told(&mut stage), [after(Starting, Stopping, late, secs(30))]);
}

#[test]
fn a_crash_goes_from_any_phase_to_dead() {
    let mut stage = Stage::started(no_prefetch(1));
    stage.forget();
    stage.advance(ms(5));
    stage.exit(p(1, 1), Exit::Code(1));
    assert_eq!(told(&mut stage), [after(Starting, Dead, PhaseReason::Exited, ms(5))]);

    let mut stage = Stage::ready(no_prefetch(1));
    stage.exit(p(1, 1), Exit::Code(1));
    assert_eq!(told(&mut stage), [at_once(Ready, Dead, PhaseReason::Exited)]);

    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.forget();
    stage.exit(p(1, 1), Exit::Code(1));
    assert_eq!(told(&mut stage), [at_once(Busy, Dead, PhaseReason::Exited)]);

    let mut stage = silent_with_a_call();
    stage.exit(p(1, 1), Exit::Code(1));
    assert_eq!(told(&mut stage), [at_once(Degraded, Dead, PhaseReason::Exited)]);
}

#[test]
fn a_spawn_that_fails_is_told_as_the_end_of_the_start() {
    for cause in [SpawnFailure::Broken, SpawnFailure::Exhausted] {
        let mut stage = Stage::started(no_prefetch(1));
        stage.forget();
        stage.advance(ms(5));
        stage.fail_spawn(p(1, 1), cause);
        assert_eq!(told(&mut stage), [after(Starting, Dead, PhaseReason::SpawnFailed, ms(5))]);
    }
}

#[test]
fn a_spawn_that_fails_after_it_was_called_off_is_told_too() {
    let mut stage = Stage::started(no_prefetch(1));
    stage.forget();
    stage.shut_down();
    stage.advance(ms(5));
    stage.fail_spawn(p(1, 1), SpawnFailure::Broken);
    let expected = [
        at_once(Starting, Stopping, stopped_for(StopReason::Shutdown)),
        after(Stopping, Dead, PhaseReason::SpawnFailed, ms(5)),
    ];
    assert_eq!(told(&mut stage), expected);
}

#[test]
fn each_incarnation_is_told_of_from_its_own_beginning() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.advance(secs(9));
    stage.crash(p(1, 1));
    assert_eq!(
        told_of(&mut stage, p(1, 2)),
        [(None, Starting, PhaseReason::Spawned, ms(0))],
        "the time of the last one is not this one's"
    );
    stage.advance(ms(5));
    stage.become_ready(p(1, 2));
    assert_eq!(told_of(&mut stage, p(1, 2)), [after(Starting, Ready, PhaseReason::Ready, ms(5))]);
}
