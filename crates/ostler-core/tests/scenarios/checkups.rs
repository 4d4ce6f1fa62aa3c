//! Active checks: an idle worker is asked whether it is well.

use ostler_core::{
    CheckResult, Checkup, Command, Event, Exit, LeaseEnd, Notice, Phase, Ready, Settings,
    StopReason,
};

use crate::support::*;

pub const CHECKUP: Checkup =
    Checkup { interval: secs(30), timeout: secs(5), again: secs(5), failures: 3 };

pub fn with_checks(size: u32) -> Settings {
    Settings { checkup: Some(CHECKUP), prefetch: 0, ..calm(size) }
}

/// A pool of one that was just asked for the first time.
pub fn asked() -> Stage {
    let mut stage = Stage::ready(with_checks(1));
    stage.advance(secs(30));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
    stage.forget();
    stage
}

/// A pool of one whose first check has failed.
fn degraded() -> Stage {
    let mut stage = asked();
    stage.report(p(1, 1), false);
    assert_eq!(stage.phase(1), Some(Phase::Degraded));
    stage.forget();
    stage
}

pub fn checked(stage: &mut Stage) -> Vec<CheckResult> {
    let notices = stage.notices().into_iter();
    let results = notices.filter_map(|notice| match notice {
        Notice::Checked { result, .. } => Some(result),
        _ => None,
    });
    results.collect()
}

#[test]
fn the_defaults_are_every_30_s_with_5_s_to_answer_and_three_failures() {
    assert_eq!(Settings::of_size(1).checkup, Some(CHECKUP));
}

#[test]
fn an_idle_worker_is_asked_every_interval() {
    let mut stage = Stage::ready(with_checks(1));
    for _ in 0..3 {
        stage.advance(secs(30) - ms(1));
        assert_eq!(stage.take(), []);
        stage.advance(ms(1));
        assert_eq!(stage.take(), [check_health(p(1, 1))]);
        stage.report(p(1, 1), true);
        assert_eq!(checked(&mut stage), [CheckResult::Passed]);
    }
    assert_eq!((stage.phase(1), stage.view(1).failed_checks), (Some(Phase::Ready), 0));
}

#[test]
fn the_next_interval_begins_with_the_answer() {
    let mut stage = asked();
    stage.advance(secs(4));
    stage.report(p(1, 1), true);
    stage.advance(secs(30) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
}

#[test]
fn each_worker_is_asked_for_itself() {
    let mut stage = Stage::started(with_checks(2));
    stage.become_ready(p(1, 1));
    stage.advance(secs(10));
    stage.become_ready(p(2, 1));
    stage.forget();
    stage.advance(secs(20));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
    stage.report(p(1, 1), false);
    stage.advance(secs(5));
    stage.report(p(1, 1), true);
    stage.forget();
    stage.advance(secs(5));
    assert_eq!(stage.take(), [check_health(p(2, 1))]);
    assert_eq!((stage.phase(1), stage.phase(2)), (Some(Phase::Ready), Some(Phase::Ready)));
}

#[test]
fn without_the_setting_nobody_is_asked() {
    let mut stage = Stage::ready(calm(1));
    stage.advance(secs(600));
    assert_eq!(stage.take(), []);
}

#[test]
fn a_worker_that_is_not_well_is_degraded_and_given_nothing() {
    let mut stage = asked();
    stage.report(p(1, 1), false);
    assert_eq!(checked(&mut stage), [CheckResult::Failed]);
    assert_eq!((stage.phase(1), stage.view(1).failed_checks), (Some(Phase::Degraded), 1));
    stage.arrive(1);
    assert_eq!(stage.take(), []);
}

#[test]
fn a_worker_that_says_nothing_for_the_timeout_has_failed_the_check() {
    let mut stage = asked();
    stage.advance(secs(5) - ms(1));
    assert_eq!((stage.phase(1), checked(&mut stage)), (Some(Phase::Ready), vec![]));
    stage.advance(ms(1));
    assert_eq!(checked(&mut stage), [CheckResult::TimedOut]);
    assert_eq!((stage.phase(1), stage.take()), (Some(Phase::Degraded), vec![]));
}

#[test]
fn after_a_failure_the_worker_is_asked_again_soon() {
    let mut stage = degraded();
    stage.advance(secs(5) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
}

#[test]
fn a_degraded_worker_comes_back_without_traffic_and_serves_who_waited() {
    let mut stage = degraded();
    stage.arrive(1);
    stage.advance(secs(5));
    stage.forget();
    stage.report(p(1, 1), true);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    assert_eq!(stage.view(1).failed_checks, 0);
}

#[test]
fn three_failures_in_a_row_replace_the_process_as_after_a_crash() {
    let mut stage = degraded();
    stage.advance(secs(5));
    stage.report(p(1, 1), false);
    assert_eq!(stage.view(1).failed_checks, 2);
    stage.forget();
    stage.advance(secs(10));
    assert_eq!(stage.take(), [check_health(p(1, 1)), term(p(1, 1))], "the third said nothing");
    let reason = StopReason::Unhealthy;
    let notices = stage.notices();
    assert!(notices.contains(&Notice::Stopping { process: p(1, 1), reason }), "{notices:?}");
    assert_eq!(stage.view(1).stopping, Some(reason));
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    assert_eq!(stage.counters().restarts_unplanned, 1);
    stage.become_ready(p(1, 2));
    let view = stage.view(1);
    assert_eq!((view.phase, view.failed_checks), (Some(Phase::Ready), 0), "a new process, anew");
}

#[test]
fn a_passed_check_starts_the_count_anew() {
    let mut stage = degraded();
    for well in [false, true, false, false, true] {
        stage.advance(if stage.phase(1) == Some(Phase::Ready) { secs(30) } else { secs(5) });
        stage.report(p(1, 1), well);
    }
    assert_eq!((stage.phase(1), stage.view(1).failed_checks), (Some(Phase::Ready), 0));
}

#[test]
fn how_many_failures_replace_is_a_setting() {
    let checkup = Checkup { failures: 1, ..CHECKUP };
    let mut stage = Stage::ready(Settings { checkup: Some(checkup), ..with_checks(1) });
    stage.advance(secs(30));
    stage.forget();
    stage.report(p(1, 1), false);
    assert_eq!(stage.take(), [term(p(1, 1))]);
}

#[test]
fn a_leased_worker_without_a_call_is_asked() {
    let mut stage = Stage::ready(with_checks(1));
    stage.ask_lease(1, 1);
    stage.forget();
    stage.advance(secs(30));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
}

#[test]
fn a_degraded_worker_is_not_leased() {
    let mut stage = degraded();
    stage.ask_lease(1, 1);
    assert_eq!(stage.take(), []);
    stage.advance(secs(5));
    stage.forget();
    stage.report(p(1, 1), true);
    assert_eq!(stage.take(), [grant(1, &[p(1, 1)])]);
}

#[test]
fn a_lease_ends_with_the_process_that_failed_its_checks() {
    let mut stage = Stage::ready(with_checks(1));
    stage.ask_lease(1, 1);
    stage.advance(secs(45));
    assert_eq!(stage.phase(1), Some(Phase::Degraded));
    stage.forget();
    stage.advance(secs(10));
    assert_eq!(stage.take(), [check_health(p(1, 1)), term(p(1, 1))]);
    stage.exit(p(1, 1), Exit::Signal(15));
    assert_eq!(stage.take(), [lose_place(1, 0), end_lease(1, LeaseEnd::Lost)]);
}

#[test]
fn what_waits_goes_to_another_worker_while_one_is_degraded() {
    let mut stage = Stage::ready(with_checks(2));
    stage.advance(secs(30));
    stage.report(p(1, 1), false);
    stage.report(p(2, 1), true);
    stage.forget();
    for id in 1..=2 {
        stage.arrive(id);
    }
    assert_eq!(stage.take(), [assign(1, p(2, 1))]);
}

#[test]
fn a_stopping_worker_is_not_asked_and_its_answer_is_late() {
    let mut stage = asked();
    stage.complete_worker(1);
    stage.forget();
    stage.report(p(1, 1), false);
    assert_eq!((stage.take(), stage.stale()), (vec![], 1));
    stage.advance(secs(300));
    let asked = stage.take().into_iter().any(|deed| matches!(deed, Command::CheckHealth { .. }));
    assert!(!asked);
}

/// A process that missed a heartbeat and failed a check, twelve seconds ago.
fn silent_and_unwell() -> Stage {
    let checkup = Checkup { again: secs(13), ..CHECKUP };
    let heartbeat = Settings::of_size(1).heartbeat;
    let mut stage = Stage::ready(Settings { heartbeat, checkup: Some(checkup), ..with_checks(1) });
    stage.advance(secs(30));
    stage.report(p(1, 1), false);
    stage.pongs = false;
    stage.forget();
    stage.advance(secs(12));
    let missed = Notice::HeartbeatMissed { process: p(1, 1), misses: 1 };
    assert!(stage.notices().contains(&missed));
    stage
}

#[test]
fn one_that_was_silent_and_unwell_is_not_back_when_it_is_only_heard() {
    let mut stage = silent_and_unwell();
    stage.feed(Event::ProcessHeard { process: p(1, 1) });
    assert_eq!(stage.phase(1), Some(Phase::Degraded));
    stage.advance(secs(1));
    stage.report(p(1, 1), true);
    assert_eq!(stage.phase(1), Some(Phase::Ready));
}

#[test]
fn one_that_was_silent_and_unwell_is_back_when_it_says_that_it_is_well() {
    let mut stage = silent_and_unwell();
    stage.advance(secs(1));
    stage.feed(Event::ProcessHeard { process: p(1, 1) });
    stage.report(p(1, 1), true);
    assert_eq!(stage.phase(1), Some(Phase::Ready));
}

#[test]
fn one_that_never_learned_to_answer_is_not_judged_by_its_silence() {
    let mut stage = Stage::started(with_checks(1));
    let ready = Ready { heartbeat: false, gives_back: false, ..READY };
    stage.feed(Event::ProcessReady { process: p(1, 1), ready });
    stage.forget();
    for _ in 0..5 {
        stage.advance(secs(35));
        assert_eq!(stage.take(), [check_health(p(1, 1))]);
        assert_eq!(checked(&mut stage), [CheckResult::TimedOut]);
        assert_eq!(stage.phase(1), Some(Phase::Ready));
    }
    stage.advance(secs(30));
    stage.report(p(1, 1), true);
    stage.forget();
    stage.advance(secs(35));
    assert_eq!(stage.phase(1), Some(Phase::Degraded), "once it has answered, silence tells");
}
