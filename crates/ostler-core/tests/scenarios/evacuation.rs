//! Sessions of a worker that leaves in peace: what it hands over, and who waits for that.

use ostler_core::{
    Affinity, BondStep, Continuity, Event, Exit, LeaseId, Notice, Refusal, Retirement, Settings,
    Status, Target,
};

use crate::support::*;
use Continuity::{Bound, Elsewhere, Restarted, Restored, Same};

fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

/// Session 1 is bound to the only worker, which has a successor that is about to be ready.
fn about_to_move(affinity: Affinity) -> Stage {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive_in(1, 1, affinity);
    stage.complete(1, p(1, 1));
    stage.recycle(1);
    stage.forget();
    stage
}

/// The same, and the worker has been asked to hand the session over.
fn moving(affinity: Affinity) -> Stage {
    let mut stage = about_to_move(affinity);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
    stage.forget();
    stage
}

/// The same with a worker that knows no handing over; it is gone already.
fn moved_without_hooks(affinity: Affinity) -> Stage {
    let mut stage = Stage::started(no_prefetch(1));
    stage.become_ready_without_hooks(p(1, 1));
    stage.arrive_in(1, 1, affinity);
    stage.complete(1, p(1, 1));
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    stage
}

#[test]
fn a_session_is_handed_over_before_its_worker_leaves() {
    for affinity in [HINT, STRICT, AT_ONCE] {
        let mut stage = moving(affinity);
        assert_eq!(stage.status(1), Status::Running, "{affinity:?}");
        stage.saved(1, p(1, 1));
        assert_eq!(stage.take(), [ask(p(1, 1))], "{affinity:?}");
        assert_eq!(stage.steps(), [step(1, p(1, 1), BondStep::Saved)], "{affinity:?}");
        stage.leave(p(1, 1));
        stage.arrive_in(2, 1, affinity);
        assert_eq!(stage.take(), [finding(Restored, assign(2, p(2, 1)))], "{affinity:?}");
        let rebound = step(1, p(2, 1), BondStep::Rebound(Restored));
        assert_eq!(stage.steps(), [rebound], "{affinity:?}");
    }
}

#[test]
fn a_session_stays_where_it_is_until_the_successor_is_ready() {
    let mut stage = about_to_move(STRICT);
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [finding(Same, assign(2, p(1, 1)))]);
}

#[test]
fn a_strict_request_waits_until_its_session_is_handed_over() {
    let mut stage = moving(STRICT);
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), []);
    stage.saved(1, p(1, 1));
    assert_eq!(stage.take(), [finding(Restored, assign(2, p(2, 1))), ask(p(1, 1))]);
}

#[test]
fn a_hint_does_not_wait_for_a_session_that_is_handed_over() {
    let mut stage = moving(HINT);
    stage.arrive_in(2, 1, HINT);
    assert_eq!(stage.take(), [finding(Elsewhere, assign(2, p(2, 1)))]);
    stage.saved(1, p(1, 1));
    stage.complete(2, p(2, 1));
    stage.forget();
    stage.arrive_in(3, 1, HINT);
    assert_eq!(stage.take(), [finding(Restored, assign(3, p(2, 1)))]);
}

#[test]
fn one_that_does_not_wait_is_refused_while_its_session_is_handed_over() {
    let mut stage = moving(AT_ONCE);
    stage.arrive_in(2, 1, AT_ONCE);
    assert_eq!(stage.take(), [refuse(2, Refusal::WorkerBusy)]);
}

#[test]
fn those_who_waited_for_the_old_worker_follow_their_session() {
    let mut stage = about_to_move(STRICT);
    stage.arrive_in(2, 1, STRICT);
    stage.arrive_in(3, 1, STRICT);
    stage.forget();
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [], "something of it runs");
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), save(1, p(1, 1))]);
    stage.saved(1, p(1, 1));
    assert_eq!(stage.take(), [finding(Restored, assign(3, p(2, 1))), ask(p(1, 1))]);
}

#[test]
fn a_new_request_waits_while_an_older_one_runs_on_the_worker_that_leaves() {
    let mut stage = about_to_move(STRICT);
    stage.arrive_in(2, 1, STRICT);
    stage.become_ready(p(2, 1));
    stage.forget();
    stage.arrive_in(3, 1, STRICT);
    assert_eq!(stage.take(), [], "the successor is free, but knows nothing of it");
    stage.complete(2, p(1, 1));
    stage.saved(1, p(1, 1));
    assert!(stage.take().contains(&finding(Restored, assign(3, p(2, 1)))));
}

#[test]
fn what_could_not_be_handed_over_is_said_to_be_restarted() {
    for affinity in [HINT, STRICT, AT_ONCE] {
        let mut stage = moving(affinity);
        stage.not_saved(1, p(1, 1));
        assert_eq!(stage.take(), [ask(p(1, 1))], "{affinity:?}");
        assert_eq!(stage.steps(), [step(1, p(1, 1), BondStep::Released)], "{affinity:?}");
        stage.arrive_in(2, 1, affinity);
        assert_eq!(stage.take(), [finding(Restarted, assign(2, p(2, 1)))], "{affinity:?}");
    }
}

#[test]
fn one_that_knows_no_handing_over_lets_its_sessions_go_at_once() {
    for affinity in [HINT, STRICT, AT_ONCE] {
        let mut stage = moved_without_hooks(affinity);
        assert_eq!(stage.take(), [ask(p(1, 1))], "{affinity:?}");
        assert_eq!(stage.steps(), [step(1, p(1, 1), BondStep::Released)], "{affinity:?}");
        stage.leave(p(1, 1));
        stage.arrive_in(2, 1, affinity);
        let restarted = finding(Restarted, assign(2, p(2, 1)));
        assert_eq!(stage.take(), [restarted], "{affinity:?}: told, and not refused");
    }
}

#[test]
fn a_worker_has_its_time_to_hand_over_and_no_more() {
    let mut stage = moving(STRICT);
    stage.arrive_in(2, 1, STRICT);
    stage.advance(secs(5) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [finding(Restarted, assign(2, p(2, 1))), ask(p(1, 1))]);
}

#[test]
fn what_is_handed_over_too_late_is_dropped_and_counted() {
    let mut stage = moving(STRICT);
    stage.advance(secs(5));
    let stale = stage.stale();
    stage.forget();
    stage.saved(1, p(1, 1));
    assert_eq!((stage.take(), stage.stale()), (vec![], stale + 1));
    stage.leave(p(1, 1));
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [finding(Restarted, assign(2, p(2, 1)))]);
}

#[test]
fn what_is_handed_over_twice_counts_once() {
    let mut stage = moving(STRICT);
    stage.saved(1, p(1, 1));
    let stale = stage.stale();
    stage.not_saved(1, p(1, 1));
    stage.forget();
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [finding(Restored, assign(2, p(2, 1)))]);
    assert_eq!(stage.stale(), stale + 1);
}

#[test]
fn each_session_has_its_own_time_to_be_handed_over() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 2, STRICT);
    stage.complete(1, p(1, 1));
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
    stage.advance(secs(3));
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), save(2, p(1, 1))]);
    stage.advance(secs(2));
    assert_eq!(stage.steps(), [step(1, p(1, 1), BondStep::Released)]);
    assert_eq!(stage.take(), [], "the second may still be handed over");
    stage.advance(secs(3));
    assert_eq!(stage.steps(), [step(2, p(1, 1), BondStep::Released)]);
    assert_eq!(stage.take(), [ask(p(1, 1))]);
}

#[test]
fn a_session_with_nothing_to_do_does_not_wait_for_the_long_requests_of_others() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 2, STRICT);
    stage.complete(2, p(1, 1));
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [save(2, p(1, 1))]);
    stage.saved(2, p(1, 1));
    stage.arrive_in(3, 2, STRICT);
    assert_eq!(stage.take(), [finding(Restored, assign(3, p(2, 1)))]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), save(1, p(1, 1))]);
    stage.saved(1, p(1, 1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
}

#[test]
fn a_request_that_nobody_waits_for_holds_its_session_until_it_is_let_go_of() {
    let mut stage = about_to_move(STRICT);
    stage.arrive_in(2, 1, STRICT);
    stage.become_ready(p(2, 1));
    stage.cancel(2);
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), [], "it may still touch what the session keeps");
    stage.answer(2, 1, p(1, 1), ostler_core::Answer::Cancelled { started: true });
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
}

#[test]
fn a_process_that_dies_while_it_hands_over_is_a_loss_that_is_told() {
    let mut stage = moving(STRICT);
    stage.arrive_in(2, 1, STRICT);
    stage.exit(p(1, 1), Exit::Signal(11));
    assert_eq!(stage.take(), [refuse(2, Refusal::SessionWorkerLost)]);
    assert_eq!(stage.steps(), [step(1, p(1, 1), BondStep::Lost)]);
    stage.clear(p(1, 1));
    assert_eq!(stage.status(1), Status::Completed, "its successor is there");
    stage.arrive_in(3, 1, STRICT);
    assert_eq!(stage.take(), [finding(Bound, assign(3, p(2, 1)))]);
}

#[test]
fn a_hint_whose_process_dies_while_it_hands_over_starts_anew() {
    let mut stage = moving(HINT);
    stage.crash(p(1, 1));
    stage.forget();
    stage.arrive_in(2, 1, HINT);
    assert_eq!(stage.take(), [finding(Restarted, assign(2, p(2, 1)))]);
}

#[test]
fn a_session_that_ends_while_it_is_handed_over_holds_nobody_up() {
    let mut stage = moving(STRICT);
    stage.arrive_in(2, 1, STRICT);
    stage.end_session(1);
    assert_eq!(stage.take(), [assign(2, p(2, 1)), ask(p(1, 1))]);
    let stale = stage.stale();
    stage.saved(1, p(1, 1));
    assert_eq!((stage.take(), stage.stale()), (vec![], stale + 1));
}

#[test]
fn a_session_that_is_bound_by_hand_while_it_is_handed_over_goes_there() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive_in(1, 1, STRICT);
    stage.complete(1, p(1, 1));
    stage.recycle(1);
    stage.become_ready(p(3, 1));
    stage.arrive_in(2, 1, STRICT);
    stage.forget();
    let order = stage.bind(1, 2);
    let deeds = stage.take();
    assert!(deeds.contains(&finding(Restarted, assign(2, p(2, 1)))), "{deeds:?}");
    assert!(deeds.contains(&done(order, 2, Status::Running)), "{deeds:?}");
    assert!(deeds.contains(&ask(p(1, 1))), "{deeds:?}");
}

#[test]
fn a_session_is_not_handed_over_while_something_of_it_runs_though_it_was_bound_again() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive_in(1, 1, STRICT);
    stage.bind(1, 1);
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), []);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), save(1, p(1, 1))]);
}

#[test]
fn a_session_is_not_handed_over_while_something_of_it_runs_though_it_was_unbound() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive_in(1, 1, STRICT);
    stage.unbind(1);
    stage.arrive_in(2, 1, STRICT);
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), save(1, p(1, 1))]);
}

#[test]
fn a_worker_that_is_terminated_while_it_hands_over_is_a_loss() {
    let mut stage = moving(STRICT);
    stage.arrive_in(2, 1, STRICT);
    let order = stage.terminate(1);
    assert_eq!(stage.take(), [kill(p(1, 1))]);
    stage.crash(p(1, 1));
    let expected = [refuse(2, Refusal::SessionWorkerLost), done(order, 1, Status::Terminated)];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_worker_that_is_paused_while_it_hands_over_leaves_when_it_is_resumed() {
    let mut stage = moving(STRICT);
    stage.pause(1);
    stage.saved(1, p(1, 1));
    stage.arrive_in(2, 1, STRICT);
    let deeds = stage.take();
    assert!(deeds.contains(&finding(Restored, assign(2, p(2, 1)))), "{deeds:?}");
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), ask(p(1, 1))]);
}

#[test]
fn one_whose_worker_completes_by_order_is_handed_over_too() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive_in(1, 1, STRICT);
    stage.complete(1, p(1, 1));
    stage.forget();
    let order = stage.complete_worker(1);
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), []);
    stage.saved(1, p(1, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&done(order, 1, Status::Completed)), "{deeds:?}");
    assert!(deeds.contains(&finding(Restored, assign(2, p(2, 1)))), "{deeds:?}");
}

#[test]
fn a_worker_that_leaves_without_a_successor_hands_over_too() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive_in(1, 1, STRICT);
    stage.complete(1, p(1, 1));
    stage.advance(secs(1));
    stage.arrive_for(2, Target::Worker(ostler_core::WorkerId(2)));
    stage.complete(2, p(2, 1));
    stage.forget();
    stage.scale(1, 1);
    let deeds = stage.take();
    assert!(deeds.contains(&save(1, p(1, 1))), "the colder one goes: {deeds:?}");
    stage.saved(1, p(1, 1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.arrive_in(3, 1, STRICT);
    assert_eq!(stage.take(), [finding(Restored, assign(3, p(2, 1)))]);
}

#[test]
fn a_lease_does_not_keep_a_session_from_moving() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..no_prefetch(1) });
    stage.arrive_in(1, 1, STRICT);
    stage.complete(1, p(1, 1));
    stage.ask_lease(1, 1);
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
    stage.saved(1, p(1, 1));
    stage.arrive_for(2, Target::Lease(LeaseId(1), 0));
    assert_eq!(stage.take(), [assign(2, p(1, 1))]);
    stage.complete(2, p(1, 1));
    stage.release(1);
    assert!(stage.take().contains(&ask(p(1, 1))));
}

#[test]
fn a_process_that_asked_to_go_keeps_its_sessions_until_there_is_a_successor() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.arrive_in(1, 1, STRICT);
    stage.complete(1, p(1, 1));
    stage.feed(Event::RetireAsked { process: p(1, 1) });
    stage.forget();
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [], "nobody else has its state");
    stage.become_ready(p(3, 1));
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
    stage.saved(1, p(1, 1));
    let deeds = stage.take();
    let restored = |worker| finding(Restored, assign(2, p(worker, 1)));
    assert!(deeds.contains(&restored(2)) || deeds.contains(&restored(3)), "{deeds:?}");
}

#[test]
fn the_end_of_the_pool_waits_for_nothing_to_be_handed_over() {
    let mut stage = moving(STRICT);
    stage.shut_down();
    let deeds = stage.take();
    assert!(deeds.contains(&ask(p(1, 1))) && deeds.contains(&ask(p(2, 1))), "{deeds:?}");
    stage.saved(1, p(1, 1));
    stage.leave(p(1, 1));
    stage.leave(p(2, 1));
    assert_eq!(stage.take(), [ostler_core::Command::Stopped]);
}

#[test]
fn what_was_asked_of_a_worker_at_the_end_of_the_pool_may_run_out_of_time() {
    let mut stage = moving(STRICT);
    stage.arrive(2);
    stage.shut_down();
    stage.advance(secs(20));
    stage.complete(2, p(2, 1));
    stage.leave(p(1, 1));
    stage.leave(p(2, 1));
    assert!(stage.take().contains(&ostler_core::Command::Stopped));
}

#[test]
fn a_session_moves_on_from_every_successor() {
    let mut stage = moving(STRICT);
    stage.saved(1, p(1, 1));
    stage.leave(p(1, 1));
    for old in 2..6 {
        stage.arrive_in(old, 1, STRICT);
        stage.complete(old, p(old, 1));
        stage.recycle(old);
        stage.become_ready(p(old + 1, 1));
        assert!(stage.take().contains(&save(1, p(old, 1))), "{old}");
        stage.saved(1, p(old, 1));
        stage.leave(p(old, 1));
        let reason = Retirement::Ordered;
        let retiring = Notice::Retiring { worker: ostler_core::WorkerId(old), reason };
        assert_eq!(stage.told(&retiring), 1, "{old}");
    }
    stage.forget();
    stage.arrive_in(9, 1, STRICT);
    assert_eq!(stage.take(), [finding(Restored, assign(9, p(6, 1)))]);
}

#[test]
fn a_session_that_was_handed_over_twice_without_a_request_is_still_restored() {
    let mut stage = moving(STRICT);
    stage.saved(1, p(1, 1));
    stage.leave(p(1, 1));
    stage.recycle(2);
    stage.become_ready(p(3, 1));
    stage.leave(p(2, 1));
    stage.forget();
    stage.arrive_in(2, 1, STRICT);
    assert_eq!(stage.take(), [finding(Restored, assign(2, p(3, 1)))]);
}

#[test]
fn many_sessions_are_handed_over_a_few_at_a_time() {
    let mut stage = Stage::ready(no_prefetch(1));
    for session in 1..=40 {
        stage.arrive_in(session, session, STRICT);
        stage.complete(session, p(1, 1));
    }
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    let mut asked = 0;
    for session in 1..=40 {
        let saves = |deed: &ostler_core::Command| *deed != ask(p(1, 1));
        asked += stage.take().into_iter().filter(saves).count() as u64;
        assert_eq!(asked, (session + 15).min(40), "before {session} was handed over");
        stage.saved(session, p(1, 1));
    }
    assert_eq!(stage.take(), [ask(p(1, 1))]);
}

#[test]
fn who_waits_for_a_session_that_ends_is_served_and_leaves_no_binding_behind() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 1, STRICT);
    stage.forget();
    stage.end_session(1);
    stage.complete(1, p(1, 1));
    assert!(stage.take().contains(&assign(2, p(1, 1))));
    assert_eq!(stage.pool.binding(ostler_core::SessionId(1)), None);
}
