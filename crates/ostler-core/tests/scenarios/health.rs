//! Signs of life, and their absence.

use std::time::Duration;

use ostler_core::{
    Action, Command, Event, Exit, Heartbeat, Notice, Phase, Ready, Settings, StopReason, WorkerId,
};

use crate::support::*;

fn with_pings(size: u32) -> Settings {
    Settings { heartbeat: Settings::of_size(size).heartbeat, ..calm(size) }
}

/// A pool whose processes fell silent just now.
fn silent(settings: Settings) -> Stage {
    let mut stage = Stage::ready(settings);
    stage.pongs = false;
    stage
}

/// How long it takes until that phase is reached.
fn time_until(stage: &mut Stage, worker: u64, phase: Phase) -> Duration {
    let since = stage.now;
    while stage.phase(worker) != Some(phase) {
        assert!(stage.now.since(since) < secs(60), "never {phase:?}");
        stage.advance(ms(100));
    }
    stage.now.since(since)
}

fn killed(stage: &mut Stage, worker: u64) -> bool {
    stage.take().contains(&kill(p(worker, 1)))
}

#[test]
fn a_process_is_pinged_every_interval() {
    let mut stage = silent(with_pings(1));
    stage.forget();
    stage.advance(secs(6));
    assert_eq!(stage.take(), [(); 4].map(|()| ping(p(1, 1))), "at 0, 2, 4 and 6 seconds");
}

#[test]
fn a_process_that_answers_is_left_alone() {
    let mut stage = Stage::ready(with_pings(2));
    stage.advance(secs(600));
    assert_eq!((stage.take(), stage.notices()), (vec![], vec![]));
    assert_eq!(stage.phase(1), Some(Phase::Ready));
}

#[test]
fn an_idle_process_that_is_silent_is_degraded_and_then_replaced_within_the_bound() {
    let mut stage = Stage::ready(with_pings(1));
    stage.advance(secs(5));
    let last_sign = stage.now;
    stage.pongs = false;
    let degraded = time_until(&mut stage, 1, Phase::Degraded);
    assert!(degraded >= secs(9), "silence for the timeout is the first miss: {degraded:?}");
    stage.forget();
    time_until(&mut stage, 1, Phase::Stopping);
    assert!(stage.now.since(last_sign) <= secs(16));
    assert!(killed(&mut stage, 1));
    let reason = StopReason::HeartbeatLost;
    assert!(stage.notices().contains(&Notice::Stopping { process: p(1, 1), reason }));
    stage.exit(p(1, 1), Exit::Signal(9));
    stage.clear(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    assert_eq!(stage.pool.view(stage.now).counters.restarts_unplanned, 1);
}

#[test]
fn a_degraded_process_gets_no_work_and_comes_back_without_traffic() {
    let mut stage = silent(with_pings(1));
    time_until(&mut stage, 1, Phase::Degraded);
    stage.arrive(1);
    stage.forget();
    stage.pongs = true;
    stage.advance(secs(2));
    assert_eq!(stage.take(), [assign(1, p(1, 1))], "who waited is served with the next pong");
    let back = stage.notices().into_iter().any(|notice| {
        let (was, is) = (Some(Phase::Degraded), Phase::Ready);
        matches!(notice, Notice::PhaseChanged { from, to, .. } if (from, to) == (was, is))
    });
    assert!(back);
}

#[test]
fn one_sign_of_life_starts_the_count_anew() {
    let mut stage = silent(with_pings(1));
    time_until(&mut stage, 1, Phase::Degraded);
    stage.feed(Event::ProcessHeard { process: p(1, 1) });
    assert_eq!(stage.phase(1), Some(Phase::Ready));
    stage.advance(secs(9));
    assert_eq!(stage.phase(1), Some(Phase::Ready));
    time_until(&mut stage, 1, Phase::Degraded);
}

#[test]
fn a_busy_process_that_is_silent_is_marked_once_and_left_to_its_deadline() {
    let mut stage = silent(with_pings(1));
    stage.arrive(1);
    stage.forget();
    stage.advance(secs(600));
    assert!(!killed(&mut stage, 1));
    let mut told = stage.notices();
    told.retain(|notice| !matches!(notice, Notice::HeartbeatMissed { .. }));
    assert_eq!(told, [Notice::Unresponsive { process: p(1, 1) }]);
    let view = stage.view(1);
    assert_eq!((view.phase, view.unresponsive), (Some(Phase::Busy), true));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    assert!(!stage.view(1).unresponsive);
}

#[test]
fn a_process_whose_last_request_ended_is_idle_from_then_on() {
    let mut stage = silent(with_pings(1));
    stage.arrive(1);
    stage.advance(secs(60));
    stage.complete(1, p(1, 1));
    stage.advance(secs(9));
    assert_eq!(stage.phase(1), Some(Phase::Ready), "its answer was a sign of life");
    time_until(&mut stage, 1, Phase::Degraded);
    time_until(&mut stage, 1, Phase::Stopping);
}

#[test]
fn with_a_hang_timeout_a_busy_process_that_is_silent_is_killed() {
    let mut stage = silent(Settings { hang_timeout: Some(secs(20)), ..with_pings(1) });
    stage.arrive(1);
    stage.advance(secs(19));
    assert!(!killed(&mut stage, 1));
    stage.advance(secs(3));
    assert!(killed(&mut stage, 1));
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), [stopped(1, Exit::Signal(9), StopReason::Hung)]);
}

#[test]
fn a_hang_timeout_shorter_than_the_heartbeat_s_is_kept() {
    let mut stage = silent(Settings { hang_timeout: Some(secs(4)), ..with_pings(1) });
    stage.arrive(1);
    stage.advance(secs(3));
    assert!(!killed(&mut stage, 1));
    stage.advance(secs(4));
    assert!(killed(&mut stage, 1));
}

#[test]
fn a_frozen_process_is_not_expected_to_answer() {
    let mut stage = silent(with_pings(1));
    stage.advance(secs(1));
    stage.order(Action::Pause { worker: WorkerId(1), freeze: true });
    stage.forget();
    stage.advance(secs(600));
    assert_eq!((stage.take(), stage.notices()), (vec![], vec![]));
    stage.resume(1);
    stage.advance(secs(9));
    assert_eq!(stage.phase(1), Some(Phase::Ready), "its sleep is not held against it");
    let pinged = stage.take().contains(&ping(p(1, 1)));
    assert!(pinged, "from now on it is");
    time_until(&mut stage, 1, Phase::Degraded);
}

#[test]
fn a_shell_that_overslept_does_not_blame_the_processes() {
    let mut stage = Stage::ready(with_pings(2));
    stage.advance(secs(5));
    stage.pongs = false;
    stage.oversleep(secs(60));
    stage.feed(Event::DeadlineReached);
    stage.advance(secs(8));
    assert_eq!((stage.phase(1), stage.phase(2)), (Some(Phase::Ready), Some(Phase::Ready)));
    time_until(&mut stage, 1, Phase::Stopping);
}

#[test]
fn a_process_that_does_not_answer_pings_is_not_pinged() {
    let mut stage = Stage::started(with_pings(1));
    let ready = Ready { heartbeat: false, ..READY };
    stage.feed(Event::ProcessReady { process: p(1, 1), ready });
    stage.forget();
    stage.advance(secs(600));
    assert_eq!((stage.take(), stage.phase(1)), (vec![], Some(Phase::Ready)));
}

#[test]
fn a_long_initial_delay_is_not_taken_for_silence() {
    let heartbeat = Heartbeat {
        initial_delay: secs(60),
        ..Settings::of_size(1).heartbeat.expect("on by default")
    };
    let mut stage = Stage::ready(Settings { heartbeat: Some(heartbeat), ..calm(1) });
    stage.advance(secs(120));
    assert_eq!((stage.take(), stage.phase(1)), (vec![], Some(Phase::Ready)));
}

#[test]
fn an_interval_longer_than_the_timeout_is_not_taken_for_silence() {
    let heartbeat = Heartbeat {
        independent: false,
        interval: secs(30),
        timeout: secs(5),
        misses: 1,
        initial_delay: secs(0),
    };
    let mut stage = Stage::ready(Settings { heartbeat: Some(heartbeat), ..calm(1) });
    stage.advance(secs(300));
    assert_eq!((stage.take(), stage.phase(1)), (vec![], Some(Phase::Ready)));
}

#[test]
fn a_stopping_process_is_not_pinged() {
    let mut stage = silent(with_pings(1));
    stage.advance(secs(1));
    stage.complete_worker(1);
    stage.forget();
    stage.advance(secs(60));
    let pinged = stage.take().into_iter().any(|deed| matches!(deed, Command::Ping { .. }));
    assert!(!pinged);
}

fn independent(hang_timeout: Option<Duration>) -> Settings {
    let heartbeat =
        Heartbeat { independent: true, ..Settings::of_size(1).heartbeat.expect("on by default") };
    Settings { heartbeat: Some(heartbeat), hang_timeout, prefetch: 0, ..calm(1) }
}

fn misses(stage: &mut Stage) -> Vec<u32> {
    let notices = stage.notices().into_iter();
    let misses = notices.filter_map(|notice| match notice {
        Notice::HeartbeatMissed { misses, .. } => Some(misses),
        _ => None,
    });
    misses.collect()
}

#[test]
fn every_missed_heartbeat_is_told_with_its_number() {
    let mut stage = silent(with_pings(1));
    stage.advance(secs(14));
    assert_eq!(misses(&mut stage), [1, 2, 3]);
}

#[test]
fn independent_heartbeats_tell_of_misses_and_change_nothing() {
    let mut stage = silent(independent(None));
    stage.advance(secs(30));
    assert_eq!(misses(&mut stage), Vec::from_iter(1..=11));
    assert_eq!((stage.phase(1), killed(&mut stage, 1)), (Some(Phase::Ready), false));
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))], "it is given work as before");
}

#[test]
fn independent_heartbeats_do_not_mark_a_busy_process_either() {
    let mut stage = silent(independent(None));
    stage.arrive(1);
    stage.forget();
    stage.advance(secs(60));
    assert!(!stage.view(1).unresponsive);
    let told = stage.notices();
    let only_misses = told.iter().all(|notice| matches!(notice, Notice::HeartbeatMissed { .. }));
    assert!(only_misses && !told.is_empty(), "{told:?}");
}

#[test]
fn independent_heartbeats_count_anew_after_a_sign_of_life() {
    let mut stage = silent(independent(None));
    stage.advance(secs(12));
    stage.feed(Event::ProcessHeard { process: p(1, 1) });
    stage.forget();
    stage.advance(secs(11));
    assert_eq!(misses(&mut stage), []);
    stage.advance(secs(1));
    assert_eq!(misses(&mut stage), [1]);
}
