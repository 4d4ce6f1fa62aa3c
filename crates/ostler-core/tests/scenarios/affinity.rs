//! Sessions and the processes they are bound to: who waits, who goes elsewhere, who is told.

use ostler_core::{
    Action, Affinity, Answer, Bond, BondStep, Continuity, Exit, LossReason, Outcome, Refusal,
    Reply, SessionId, Settings, Started, Status, StopReason, Target, Waiting, WorkerId,
};

use crate::support::*;
use Continuity::{Bound, Elsewhere, Restarted, Same};

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

/// Session 1 is bound to the first of two processes, and nobody is busy.
fn bound(affinity: Affinity) -> Stage {
    bound_in(no_prefetch(2), affinity)
}

fn bound_in(settings: Settings, affinity: Affinity) -> Stage {
    let mut stage = Stage::ready(settings);
    stage.arrive_in(1, 1, affinity);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.binding(1), Some(p(1, 1)));
    stage.forget();
    stage
}

/// The same, and its process works for somebody else.
fn bound_and_busy(affinity: Affinity) -> Stage {
    let mut stage = bound(affinity);
    stage.arrive(2);
    assert_eq!(stage.take(), [assign(2, p(1, 1))]);
    stage.forget();
    stage
}

const MODES: [Affinity; 3] = [HINT, STRICT, AT_ONCE];

#[test]
fn the_first_request_binds_and_the_next_one_finds_the_same_process() {
    for mode in MODES {
        let mut stage = Stage::ready(no_prefetch(2));
        stage.arrive_in(1, 1, mode);
        assert_eq!(stage.take(), [finding(Bound, assign(1, p(1, 1)))], "{mode:?}");
        assert_eq!(stage.steps(), [step(1, p(1, 1), BondStep::Bound)], "{mode:?}");
        stage.complete(1, p(1, 1));
        stage.arrive_for(2, Target::Worker(WorkerId(2)));
        stage.complete(2, p(2, 1));
        stage.forget();
        stage.arrive_in(3, 1, mode);
        assert_eq!(stage.take(), [finding(Same, assign(3, p(1, 1)))], "{mode:?}");
        assert_eq!(stage.steps(), [], "{mode:?}");
    }
}

#[test]
fn two_first_requests_of_one_session_land_on_one_process() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [finding(Bound, assign(1, p(1, 1)))], "though another one is free");
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), finding(Same, assign(2, p(1, 1)))]);
}

#[test]
fn two_first_requests_that_wait_for_anybody_land_on_one_process() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.arrive(2);
    stage.arrive_in(3, 1, STRICT);
    stage.arrive_in(4, 1, STRICT);
    stage.arrive(5);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), finding(Bound, assign(3, p(1, 1)))]);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), assign(5, p(2, 1))], "others pass by");
    stage.complete(3, p(1, 1));
    assert_eq!(stage.take(), [answered(3), finding(Same, assign(4, p(1, 1)))]);
}

#[test]
fn a_hint_that_waited_for_anybody_goes_to_its_own_if_that_is_free() {
    let settings = Settings { capacity: 2, ..no_prefetch(2) };
    let mut stage = Stage::ready(settings);
    for worker in [1, 1, 2, 2] {
        let id = stage.counters().arrived + 1;
        stage.arrive_for(id, Target::Worker(WorkerId(worker)));
    }
    stage.pause(2);
    stage.arrive_in(5, 1, HINT);
    stage.arrive_in(6, 1, HINT);
    stage.complete(3, p(2, 1));
    stage.complete(4, p(2, 1));
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), finding(Bound, assign(5, p(1, 1)))]);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), finding(Same, assign(6, p(1, 1)))]);
}

#[test]
fn a_hint_goes_elsewhere_while_its_own_is_busy_and_stays_bound() {
    let mut stage = bound_and_busy(HINT);
    stage.arrive_in(3, 1, HINT);
    assert_eq!(stage.take(), [finding(Elsewhere, assign(3, p(2, 1)))]);
    assert_eq!((stage.steps(), stage.binding(1)), (vec![], Some(p(1, 1))));
    stage.complete(2, p(1, 1));
    stage.complete(3, p(2, 1));
    stage.forget();
    stage.arrive_in(4, 1, HINT);
    assert_eq!(stage.take(), [finding(Same, assign(4, p(1, 1)))]);
}

#[test]
fn a_hint_that_finds_everybody_busy_takes_whoever_is_free_first() {
    let mut stage = bound_and_busy(HINT);
    stage.arrive(3);
    stage.arrive_in(4, 1, HINT);
    stage.forget();
    stage.complete(3, p(2, 1));
    assert_eq!(stage.take(), [answered(3), finding(Elsewhere, assign(4, p(2, 1)))]);
}

#[test]
fn a_strict_one_waits_for_its_own_and_others_pass_by() {
    let mut stage = bound_and_busy(STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.arrive(4);
    assert_eq!(stage.take(), [assign(4, p(2, 1))]);
    stage.complete(4, p(2, 1));
    assert_eq!(stage.take(), [answered(4)]);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), finding(Same, assign(3, p(1, 1)))]);
}

#[test]
fn a_strict_one_waits_no_longer_than_its_time_in_the_queue() {
    let mut stage = bound_and_busy(STRICT);
    stage.arrive_in(3, 1, STRICT);
    let by = stage.now.after(secs(5));
    let bond = Bond { session: SessionId(1), affinity: STRICT };
    stage.arrive_as(4, |spec| (spec.deadline, spec.bond) = (by, Some(bond)));
    stage.advance(secs(5));
    assert_eq!(stage.take(), [timed_out(4, Waiting::Queue, Started::No)]);
    stage.advance(secs(5));
    assert_eq!(stage.take(), [refuse(3, Refusal::QueueTimeout)]);
    assert_eq!(stage.binding(1), Some(p(1, 1)));
}

#[test]
fn a_strict_one_waits_while_its_worker_is_paused() {
    let mut stage = bound(STRICT);
    stage.pause(1);
    stage.arrive_in(2, 1, STRICT);
    stage.forget();
    let order = stage.resume(1);
    let expected = [done(order, 1, Status::Running), finding(Same, assign(2, p(1, 1)))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn one_that_does_not_wait_is_refused_at_once_and_stays_bound() {
    let mut stage = bound_and_busy(AT_ONCE);
    stage.arrive_in(3, 1, AT_ONCE);
    assert_eq!(stage.take(), [refuse(3, Refusal::WorkerBusy)]);
    assert_eq!(stage.binding(1), Some(p(1, 1)));
    stage.complete(2, p(1, 1));
    stage.forget();
    stage.arrive_in(4, 1, AT_ONCE);
    assert_eq!(stage.take(), [finding(Same, assign(4, p(1, 1)))]);
}

#[test]
fn one_that_does_not_wait_for_its_own_waits_for_a_first_one() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive_in(2, 1, AT_ONCE);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), finding(Bound, assign(2, p(1, 1)))]);
}

#[test]
fn one_that_does_not_wait_is_refused_when_its_session_was_bound_meanwhile() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive(1);
    stage.arrive(2);
    stage.arrive_in(3, 1, AT_ONCE);
    stage.arrive_in(4, 1, AT_ONCE);
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), refuse(4, Refusal::WorkerBusy)]);
}

#[test]
fn a_strict_session_that_lost_its_process_is_told_once() {
    for mode in [STRICT, AT_ONCE] {
        let mut stage = bound(mode);
        stage.crash(p(1, 1));
        assert_eq!(stage.steps(), [step(1, p(1, 1), BondStep::Lost)], "{mode:?}");
        stage.become_ready(p(1, 2));
        assert_eq!(stage.binding(1), None, "{mode:?}");
        stage.forget();
        stage.arrive_in(2, 1, mode);
        assert_eq!(stage.take(), [refuse(2, Refusal::SessionWorkerLost)], "{mode:?}");
        stage.arrive_in(3, 1, mode);
        let [order] = &stage.take()[..] else { panic!("one order") };
        let process = stage.binding(1).expect("it binds anew");
        assert_eq!(*order, finding(Bound, assign(3, process)), "{mode:?}");
        assert_eq!(stage.steps(), [step(1, process, BondStep::Bound)], "{mode:?}");
    }
}

#[test]
fn a_strict_session_is_told_at_once_also_while_nobody_serves() {
    let mut stage = bound_in(no_prefetch(1), STRICT);
    stage.crash(p(1, 1));
    stage.forget();
    stage.arrive_in(2, 1, STRICT);
    stage.arrive_in(3, 1, STRICT);
    assert_eq!(stage.take(), [refuse(2, Refusal::SessionWorkerLost)]);
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [finding(Bound, assign(3, p(1, 2)))]);
}

#[test]
fn all_who_wait_for_a_lost_process_are_told_at_once() {
    let mut stage = bound_and_busy(STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.arrive_in(4, 1, STRICT);
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(11));
    let told = |id| refuse(id, Refusal::SessionWorkerLost);
    assert_eq!(stage.take(), [told(3), told(4), crashed(2, Exit::Signal(11))]);
    stage.arrive_in(5, 1, STRICT);
    assert_eq!(stage.take(), [finding(Bound, assign(5, p(2, 1)))], "it was told");
}

#[test]
fn one_that_waits_for_anybody_is_told_when_its_session_is_lost_meanwhile() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive(1);
    stage.arrive_in(2, 1, STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(11));
    let expected = [refuse(3, Refusal::SessionWorkerLost), crashed(2, Exit::Signal(11))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn others_who_wait_are_told_nothing() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 2, STRICT);
    stage.arrive_in(3, 1, HINT);
    stage.arrive(4);
    stage.forget();
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [crashed(1, Exit::Signal(11)), spawn(p(1, 2))]);
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [finding(Bound, assign(2, p(1, 2)))]);
    stage.complete(2, p(1, 2));
    assert_eq!(stage.take(), [answered(2), finding(Restarted, assign(3, p(1, 2)))]);
}

#[test]
fn what_runs_for_a_strict_session_is_lost_with_its_process_and_not_tried_again() {
    let mut stage = Stage::ready(no_prefetch(2));
    let bond = Bond { session: SessionId(1), affinity: STRICT };
    stage.arrive_as(1, |spec| (spec.bond, spec.idempotent) = (Some(bond), true));
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(11));
    assert_eq!(stage.take(), [crashed(1, Exit::Signal(11))]);
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [refuse(2, Refusal::SessionWorkerLost)], "the session itself is told");
}

#[test]
fn a_strict_attempt_that_may_be_repeated_is_repeated_where_it_was() {
    let mut stage = Stage::ready(no_prefetch(2));
    let bond = Bond { session: SessionId(1), affinity: STRICT };
    stage.arrive_as(1, |spec| (spec.bond, spec.idempotent) = (Some(bond), true));
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    stage.forget();
    stage.advance(ms(50));
    assert_eq!(stage.take(), [finding(Same, assign_again(1, 2, 1, p(1, 1)))]);
}

#[test]
fn a_strict_attempt_whose_process_went_between_attempts_ends_with_the_last_answer() {
    let mut stage = Stage::ready(no_prefetch(2));
    let bond = Bond { session: SessionId(1), affinity: STRICT };
    stage.arrive_as(1, |spec| (spec.bond, spec.idempotent) = (Some(bond), true));
    stage.answer(1, 1, p(1, 1), Answer::Failed { retryable: true });
    stage.crash(p(1, 1));
    stage.forget();
    stage.advance(ms(50));
    assert_eq!(stage.take(), [answered(1)]);
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [refuse(2, Refusal::SessionWorkerLost)]);
}

#[test]
fn a_hint_whose_process_is_gone_finds_a_new_one_and_is_told_that_it_knows_nothing() {
    let mut stage = bound(HINT);
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.forget();
    stage.arrive_in(2, 1, HINT);
    let process = stage.binding(1).expect("bound anew");
    assert_eq!(stage.take(), [finding(Restarted, assign(2, process))]);
    assert_eq!(stage.steps(), [step(1, process, BondStep::Rebound(Restarted))]);
    stage.complete(2, process);
    stage.forget();
    stage.arrive_in(3, 1, HINT);
    assert_eq!(stage.take(), [finding(Same, assign(3, process))]);
}

#[test]
fn an_idempotent_hint_is_tried_again_on_a_process_that_knows_nothing() {
    let mut stage = Stage::ready(no_prefetch(2));
    let bond = Bond { session: SessionId(1), affinity: HINT };
    stage.arrive_as(1, |spec| (spec.bond, spec.idempotent) = (Some(bond), true));
    stage.forget();
    stage.exit(p(1, 1), Exit::Signal(9));
    assert_eq!(stage.take(), [finding(Restarted, assign_again(1, 2, 1, p(2, 1)))]);
}

#[test]
fn the_next_process_of_the_same_worker_is_another_one() {
    let mut stage = bound_in(no_prefetch(1), HINT);
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.forget();
    stage.arrive_in(2, 1, HINT);
    assert_eq!(stage.take(), [finding(Restarted, assign(2, p(1, 2)))]);
}

#[test]
fn a_worker_that_is_terminated_takes_its_strict_sessions_with_it() {
    let mut stage = bound_and_busy(STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.forget();
    let order = stage.terminate(1);
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.crash(p(1, 1));
    let reason = LossReason::Stopped(StopReason::Terminated);
    let exit = Exit::Signal(11);
    let lost = Outcome::Lost { exit, reason, started: Started::Unknown };
    let expected = [
        refuse(3, Refusal::SessionWorkerLost),
        resolve(2, lost),
        done(order, 1, Status::Terminated),
        spawn(p(3, 1)),
    ];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_hint_that_was_not_heard_of_for_long_may_go_anywhere() {
    let mut stage = bound_and_busy(HINT);
    stage.advance(secs(300) - ms(1));
    stage.arrive_in(3, 1, HINT);
    assert_eq!(stage.take(), [finding(Elsewhere, assign(3, p(2, 1)))]);
    stage.complete(3, p(2, 1));
    stage.advance(secs(300));
    stage.forget();
    stage.arrive_in(4, 1, HINT);
    assert_eq!(stage.take(), [finding(Bound, assign(4, p(2, 1)))]);
    assert_eq!(stage.steps(), [step(1, p(2, 1), BondStep::Rebound(Bound))]);
    assert_eq!(stage.binding(1), Some(p(2, 1)));
}

#[test]
fn a_strict_session_stays_bound_however_long_it_is_silent() {
    let mut stage = bound_and_busy(STRICT);
    stage.advance(secs(3_000));
    stage.arrive_in(3, 1, STRICT);
    assert_eq!(stage.take(), []);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), finding(Same, assign(3, p(1, 1)))]);
}

#[test]
fn a_session_whose_request_runs_is_not_silent() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(2) });
    stage.arrive_in(1, 1, HINT);
    stage.advance(secs(600));
    stage.arrive_for(2, Target::Worker(WorkerId(2)));
    stage.complete(2, p(2, 1));
    stage.forget();
    stage.arrive_in(3, 1, HINT);
    assert_eq!(stage.take(), [finding(Same, assign(3, p(1, 1)))]);
}

#[test]
fn a_session_is_silent_from_its_last_answer_on() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive_in(1, 1, HINT);
    stage.advance(secs(400));
    stage.complete(1, p(1, 1));
    stage.advance(secs(299));
    stage.arrive_for(2, Target::Worker(WorkerId(1)));
    stage.forget();
    stage.arrive_in(3, 1, HINT);
    assert_eq!(stage.take(), [finding(Elsewhere, assign(3, p(2, 1)))]);
}

#[test]
fn hits_and_misses_are_counted() {
    let mut stage = bound_and_busy(HINT);
    assert_eq!(stage.hits_and_misses(), (0, 0), "a first binding is neither");
    stage.arrive_in(3, 1, HINT);
    assert_eq!(stage.hits_and_misses(), (0, 1));
    stage.complete(2, p(1, 1));
    stage.arrive_in(4, 1, HINT);
    assert_eq!(stage.hits_and_misses(), (1, 1));
    stage.complete(4, p(1, 1));
    stage.crash(p(1, 1));
    stage.become_ready(p(1, 2));
    stage.arrive_in(5, 1, HINT);
    assert_eq!(stage.hits_and_misses(), (1, 2));
    stage.arrive(6);
    assert_eq!(stage.hits_and_misses(), (1, 2), "plain calls have nothing to hit");
}

#[test]
fn a_process_that_can_do_several_things_at_a_time_is_shared_by_sessions() {
    let mut stage = Stage::ready(Settings { capacity: 3, ..no_prefetch(1) });
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 2, STRICT);
    stage.arrive_in(3, 1, STRICT);
    let expected = [
        finding(Bound, assign(1, p(1, 1))),
        finding(Bound, assign(2, p(1, 1))),
        finding(Same, assign(3, p(1, 1))),
    ];
    assert_eq!(stage.take(), expected);
    stage.arrive_in(4, 2, STRICT);
    assert_eq!(stage.take(), []);
    stage.complete(3, p(1, 1));
    assert_eq!(stage.take(), [answered(3), finding(Same, assign(4, p(1, 1)))]);
}

#[test]
fn a_process_that_does_one_thing_at_a_time_takes_sessions_one_after_the_other() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 2, STRICT);
    assert_eq!(stage.take(), [finding(Bound, assign(1, p(1, 1)))]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), finding(Bound, assign(2, p(1, 1)))]);
    stage.arrive_in(3, 1, STRICT);
    assert_eq!(stage.take(), []);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), finding(Same, assign(3, p(1, 1)))]);
}

#[test]
fn those_who_wait_for_their_own_take_turns_with_the_others() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive_in(1, 1, STRICT);
    stage.arrive(2);
    stage.arrive_in(3, 1, STRICT);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), assign(2, p(1, 1))], "it came first");
}

#[test]
fn the_end_of_a_session_ends_its_binding() {
    let mut stage = bound(STRICT);
    stage.end_session(1);
    assert_eq!(stage.steps(), [step(1, p(1, 1), BondStep::Unbound)]);
    assert_eq!(stage.binding(1), None);
    stage.crash(p(1, 1));
    assert_eq!(stage.steps(), [], "nobody is left to tell");
    stage.end_session(1);
    assert_eq!(stage.steps(), []);
}

#[test]
fn one_that_waits_for_a_session_that_ended_goes_to_whoever_is_free() {
    let mut stage = bound_and_busy(STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.forget();
    stage.end_session(1);
    assert_eq!(stage.take(), [assign(3, p(2, 1))], "and is bound to nobody");
}

#[test]
fn the_end_of_a_lost_session_takes_back_what_it_was_to_be_told() {
    let mut stage = bound(STRICT);
    stage.crash(p(1, 1));
    stage.end_session(1);
    stage.forget();
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [finding(Bound, assign(2, p(2, 1)))]);
}

#[test]
fn a_session_can_be_bound_by_hand() {
    let mut stage = Stage::ready(no_prefetch(2));
    let order = stage.bind(1, 2);
    assert_eq!(stage.take(), [done(order, 2, Status::Running)]);
    assert_eq!(stage.steps(), [step(1, p(2, 1), BondStep::Bound)]);
    stage.arrive_in(1, 1, STRICT);
    assert_eq!(stage.take(), [finding(Bound, assign(1, p(2, 1)))]);
}

#[test]
fn those_who_wait_follow_a_session_that_is_bound_by_hand() {
    let mut stage = bound_and_busy(STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.forget();
    let order = stage.bind(1, 2);
    let expected = [done(order, 2, Status::Running), finding(Restarted, assign(3, p(2, 1)))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_session_that_is_unbound_by_hand_binds_anew() {
    let mut stage = bound_and_busy(STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.forget();
    let order = stage.unbind(1);
    let expected = [reply(order, Reply::PoolDone), finding(Bound, assign(3, p(2, 1)))];
    assert_eq!(stage.take(), expected);
    let order = stage.unbind(9);
    assert_eq!(stage.take(), [reply(order, Reply::PoolDone)], "nobody of that name is bound");
}

#[test]
fn a_session_is_bound_by_hand_only_to_one_that_serves_the_pool() {
    let mut stage = Stage::ready(no_prefetch(2));
    let own = stage.add_dedicated();
    stage.pause(1);
    stage.forget();
    for (worker, expected) in
        [(1, Reply::NotServing), (own, Reply::NotServing), (9, Reply::NoSuchWorker)]
    {
        let order = stage.bind(1, worker);
        assert_eq!(stage.take(), [reply(order, expected)], "{worker}");
        assert_eq!(stage.binding(1), None);
    }
}

#[test]
fn a_call_to_one_worker_binds_nobody() {
    let mut stage = Stage::ready(no_prefetch(2));
    let bond = Bond { session: SessionId(1), affinity: STRICT };
    let target = Target::Worker(WorkerId(2));
    stage.arrive_as(1, |spec| (spec.bond, spec.target) = (Some(bond), target));
    assert_eq!(stage.take(), [assign(1, p(2, 1))]);
    assert_eq!(stage.binding(1), None);
}

#[test]
fn a_hint_of_a_session_that_was_insisted_on_rather_goes_home_too() {
    let mut stage = bound(STRICT);
    stage.advance(secs(1_000));
    stage.arrive_for(2, Target::Worker(WorkerId(2)));
    stage.complete(2, p(2, 1));
    stage.forget();
    stage.arrive_in(3, 1, HINT);
    assert_eq!(stage.take(), [finding(Same, assign(3, p(1, 1)))]);
}

#[test]
fn a_session_that_insists_later_is_told_of_its_loss() {
    let mut stage = bound(HINT);
    stage.arrive_in(2, 1, STRICT);
    stage.complete(2, p(1, 1));
    stage.crash(p(1, 1));
    stage.forget();
    stage.arrive_in(3, 1, STRICT);
    assert_eq!(stage.take(), [refuse(3, Refusal::SessionWorkerLost)]);
}

#[test]
fn one_that_could_not_be_sent_waits_for_its_own_again() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive_in(1, 1, STRICT);
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::NotSent);
    assert_eq!((stage.take(), stage.binding(1)), (vec![], Some(p(1, 1))));
    stage.exit(p(1, 1), Exit::Code(1));
    assert_eq!(stage.take(), [refuse(1, Refusal::SessionWorkerLost)], "it never ran");
}

#[test]
fn those_who_wait_for_their_own_are_turned_away_when_the_pool_ends() {
    let mut stage = bound_and_busy(STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.forget();
    stage.shut_down();
    assert!(stage.take().contains(&refuse(3, Refusal::ShuttingDown)));
}

#[test]
fn requests_of_a_session_are_not_laid_behind_those_of_others() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1_000);
    stage.complete(1_000, p(1, 1));
    stage.arrive(1);
    stage.forget();
    stage.arrive_in(2, 1, HINT);
    assert_eq!(stage.take(), [], "it would be sent if it were a plain one");
    stage.order(Action::Pause { worker: WorkerId(1), freeze: false });
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.resume(1);
    assert!(stage.take().contains(&finding(Bound, assign(2, p(1, 1)))));
}
