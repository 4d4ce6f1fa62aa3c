//! Checks without a verdict: who works, sleeps by order, or was asked by a shell that overslept is
//! not blamed, and an answer that fits no question changes nothing.

use ostler_core::{
    Action, CheckResult, Checkup, Event, LeaseId, Notice, Phase, Settings, Target, WorkerId,
};

use crate::checkups::{CHECKUP, asked, checked, with_checks};
use crate::support::*;

#[test]
fn one_who_works_is_not_asked() {
    let mut stage = Stage::ready(with_checks(1));
    stage.arrive(1);
    stage.forget();
    stage.advance(secs(300));
    assert_eq!(stage.take(), []);
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.advance(secs(30));
    assert_eq!(stage.take(), [check_health(p(1, 1))], "once idle, it is");
}

#[test]
fn one_with_a_free_place_that_works_is_not_asked_either() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..with_checks(1) });
    stage.arrive(1);
    stage.forget();
    stage.advance(secs(300));
    assert_eq!((stage.phase(1), stage.take()), (Some(Phase::Ready), vec![]));
}

#[test]
fn one_that_is_waited_for_after_a_cancel_is_not_asked() {
    let mut stage = Stage::ready(Settings { cancel_grace: secs(100), ..with_checks(1) });
    stage.arrive(1);
    stage.cancel(1);
    stage.forget();
    stage.advance(secs(99));
    assert_eq!(stage.take(), []);
}

#[test]
fn a_check_that_is_overtaken_by_work_has_no_verdict() {
    let mut stage = asked();
    stage.arrive(1);
    stage.advance(secs(60));
    assert_eq!((stage.phase(1), checked(&mut stage)), (Some(Phase::Busy), vec![]));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.phase(1), Some(Phase::Ready));
}

#[test]
fn a_bad_answer_that_is_overtaken_by_work_does_not_cost_the_work() {
    let checkup = Checkup { failures: 1, ..CHECKUP };
    let mut stage = Stage::ready(Settings { checkup: Some(checkup), ..with_checks(1) });
    stage.advance(secs(30));
    stage.arrive(1);
    stage.forget();
    stage.report(p(1, 1), false);
    stage.complete(1, p(1, 1));
    let deeds = stage.take();
    assert_eq!(deeds.first(), Some(&answered(1)), "the process was left to finish: {deeds:?}");
}

#[test]
fn a_good_answer_that_is_overtaken_by_work_is_no_news() {
    let mut stage = asked();
    stage.arrive(1);
    stage.forget();
    stage.report(p(1, 1), true);
    assert_eq!((stage.phase(1), stage.take()), (Some(Phase::Busy), vec![]));
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.advance(secs(60));
    assert_eq!(stage.take().first(), Some(&check_health(p(1, 1))), "the checks go on");
}

#[test]
fn a_check_overtaken_by_a_request_that_came_and_went_has_no_verdict() {
    let mut stage = asked();
    stage.arrive(1);
    stage.advance(secs(5) - ms(1));
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.advance(ms(1));
    assert_eq!((stage.phase(1), checked(&mut stage)), (Some(Phase::Ready), vec![]));
}

#[test]
fn a_frozen_worker_is_not_asked() {
    let mut stage = Stage::ready(with_checks(1));
    stage.order(Action::Pause { worker: WorkerId(1), freeze: true });
    stage.forget();
    stage.advance(secs(300));
    assert_eq!((stage.take(), stage.notices()), (vec![], vec![]));
    stage.resume(1);
    stage.forget();
    stage.advance(secs(30));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
}

#[test]
fn a_worker_paused_without_freezing_is_asked_all_the_same() {
    let mut stage = Stage::ready(with_checks(1));
    stage.pause(1);
    stage.forget();
    stage.advance(secs(30));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
}

#[test]
fn a_worker_frozen_while_it_is_asked_need_not_answer() {
    let mut stage = asked();
    stage.order(Action::Pause { worker: WorkerId(1), freeze: true });
    stage.advance(secs(60));
    assert_eq!((stage.phase(1), checked(&mut stage)), (Some(Phase::Ready), vec![]));
}

#[test]
fn a_worker_that_slept_through_most_of_its_time_to_answer_is_not_blamed() {
    let mut stage = asked();
    stage.order(Action::Pause { worker: WorkerId(1), freeze: true });
    stage.advance(secs(5) - ms(1));
    stage.resume(1);
    stage.advance(ms(1));
    assert_eq!((stage.phase(1), checked(&mut stage)), (Some(Phase::Ready), vec![]));
}

#[test]
fn an_answer_that_comes_after_the_timeout_is_dropped_and_counted() {
    let mut stage = asked();
    stage.advance(secs(5));
    stage.forget();
    stage.report(p(1, 1), true);
    assert_eq!(stage.notices(), [Notice::StaleDropped { process: p(1, 1) }]);
    assert_eq!((stage.phase(1), stage.stale()), (Some(Phase::Degraded), 1));
}

#[test]
fn an_answer_that_comes_twice_or_unasked_is_dropped_and_counted() {
    let mut stage = asked();
    stage.report(p(1, 1), true);
    stage.report(p(1, 1), false);
    assert_eq!((stage.phase(1), stage.stale()), (Some(Phase::Ready), 1));
}

#[test]
fn an_answer_of_an_older_process_is_dropped_and_counted() {
    let mut stage = asked();
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.advance(secs(30));
    stage.forget();
    stage.report(p(1, 1), false);
    assert_eq!(stage.notices(), [Notice::StaleDropped { process: p(1, 1) }]);
    assert_eq!((stage.phase(1), stage.stale()), (Some(Phase::Ready), 1));
}

#[test]
fn a_shell_that_overslept_asks_again_instead_of_blaming() {
    let mut stage = asked();
    stage.oversleep(secs(60));
    stage.feed(Event::DeadlineReached);
    assert_eq!((stage.phase(1), checked(&mut stage)), (Some(Phase::Ready), vec![]));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
    stage.advance(secs(5));
    assert_eq!(checked(&mut stage), [CheckResult::TimedOut], "now it had its time");
}

#[test]
fn a_call_on_a_lease_reaches_a_degraded_worker_and_its_checks_wait() {
    let mut stage = Stage::ready(with_checks(1));
    stage.ask_lease(1, 1);
    stage.advance(secs(30));
    stage.report(p(1, 1), false);
    stage.forget();
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    stage.advance(secs(20));
    assert_eq!(stage.take(), [], "one who works is not asked");
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.advance(secs(5));
    assert_eq!(stage.take(), [check_health(p(1, 1))]);
}
