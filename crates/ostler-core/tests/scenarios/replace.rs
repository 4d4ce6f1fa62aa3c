//! Planned replacement: the new one first.

use ostler_core::{
    Answer, Event, Exit, LeaseId, Notice, Retirement, Settings, Status, StopReason, Target,
    WorkerId,
};

use crate::support::*;

fn blamed(stage: &mut Stage) -> bool {
    stage.notices().into_iter().any(|notice| matches!(notice, Notice::Crashed { .. }))
}

#[test]
fn the_old_worker_leaves_when_its_successor_is_ready() {
    let mut stage = Stage::ready(calm(2));
    let order = stage.recycle(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), spawn(p(3, 1))]);
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))], "it serves until then");
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.become_ready(p(3, 1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    let reason = StopReason::Retired(Retirement::Ordered);
    assert!(stage.notices().contains(&Notice::Stopping { process: p(1, 1), reason }));
    assert_eq!(stage.status(1), Status::Completed);
    stage.leave(p(1, 1));
    stage.advance(secs(60));
    assert_eq!(stage.take(), [], "nothing is made in its place");
    assert!(!blamed(&mut stage));
    assert_eq!(stage.pool.workers().map(|worker| worker.id.0).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_busy_old_worker_finishes_and_gets_nothing_new() {
    let mut stage = Stage::ready(Settings { capacity: 2, ..calm(1) });
    stage.arrive(1);
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Running));
    stage.arrive(2);
    stage.arrive(3);
    assert_eq!(stage.take(), [assign(2, p(2, 1)), assign(3, p(2, 1))]);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
}

#[test]
fn one_is_replaced_at_a_time() {
    let mut stage = Stage::ready(calm(2));
    stage.recycle(1);
    stage.forget();
    let second = stage.recycle(2);
    assert_eq!(stage.take(), [done(second, 2, Status::Running)]);
    stage.become_ready(p(3, 1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(4, 1))]);
    stage.become_ready(p(4, 1));
    assert_eq!(stage.take(), [ask(p(2, 1))]);
}

#[test]
fn asking_twice_replaces_once() {
    let mut stage = Stage::ready(calm(2));
    stage.recycle(1);
    stage.recycle(1);
    stage.recycle(2);
    stage.recycle(2);
    stage.forget();
    for (new, old) in [(3, 1), (4, 2)] {
        stage.become_ready(p(new, 1));
        stage.leave(p(old, 1));
    }
    assert_eq!(stage.take(), [ask(p(1, 1)), spawn(p(4, 1)), ask(p(2, 1))]);
}

#[test]
fn a_successor_that_crashes_is_tried_again_while_the_old_one_serves() {
    let mut stage = Stage::ready(calm(1));
    stage.recycle(1);
    stage.forget();
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [spawn(p(2, 2))]);
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
}

#[test]
fn a_successor_that_fails_for_good_leaves_the_old_one_in_service() {
    let mut stage = Stage::ready(Settings { restart_max: 0, ..calm(1) });
    stage.recycle(1);
    stage.crash(p(2, 1));
    assert_eq!((stage.status(2), stage.status(1)), (Status::Failed, Status::Running));
    stage.forget();
    stage.advance(secs(29));
    stage.arrive(1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    assert!(!stage.view(1).retiring);
}

#[test]
fn a_successor_that_is_terminated_leaves_the_old_one_in_service() {
    let mut stage = Stage::ready(calm(1));
    stage.recycle(1);
    stage.terminate(2);
    stage.crash(p(2, 1));
    stage.forget();
    stage.arrive(1);
    stage.advance(secs(1));
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
}

#[test]
fn a_process_that_asks_to_retire_gets_nothing_new_and_a_successor() {
    let mut stage = Stage::ready(Settings { prefetch: 0, ..calm(1) });
    stage.arrive(1);
    stage.forget();
    stage.feed(Event::RetireAsked { process: p(1, 1) });
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
    stage.arrive(2);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(2, p(2, 1)), ask(p(1, 1))]);
}

#[test]
fn what_a_retiring_process_has_not_begun_goes_elsewhere() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1_000);
    stage.complete(1_000, p(1, 1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.feed(Event::RetireAsked { process: p(1, 1) });
    assert_eq!(stage.take(), [withdraw(2, p(1, 1)), spawn(p(2, 1))]);
    stage.answer(2, 1, p(1, 1), Answer::Cancelled { started: false });
    assert_eq!(stage.take(), []);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign_again(2, 2, 0, p(2, 1))]);
}

#[test]
fn a_process_that_asked_to_retire_serves_again_when_its_successor_fails() {
    let mut stage = Stage::ready(Settings { restart_max: 0, ..calm(1) });
    stage.feed(Event::RetireAsked { process: p(1, 1) });
    stage.arrive(1);
    stage.forget();
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [assign(1, p(1, 1))], "better a tired worker than none");
}

#[test]
fn an_old_worker_that_crashes_before_its_successor_is_ready_is_restarted() {
    let mut stage = Stage::ready(Settings { start_batch: 2, ..calm(1) });
    stage.recycle(1);
    stage.forget();
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    stage.become_ready(p(1, 2));
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [ask(p(1, 2))]);
    stage.leave(p(1, 2));
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Completed));
}

#[test]
fn an_old_worker_that_crashes_after_its_successor_is_ready_is_not_restarted() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.recycle(1);
    stage.become_ready(p(2, 1));
    stage.forget();
    stage.crash(p(1, 1));
    stage.advance(secs(60));
    assert_eq!(stage.take(), [crashed(1, Exit::Signal(11))]);
    assert_eq!(stage.status(1), Status::Completed);
}

#[test]
fn an_old_worker_that_waits_for_its_backoff_does_not_start_again() {
    let mut stage = Stage::ready(Settings { start_batch: 2, ..calm(1) });
    stage.recycle(1);
    stage.crash(p(1, 1));
    stage.crash(p(1, 2));
    stage.forget();
    stage.become_ready(p(2, 1));
    stage.advance(secs(60));
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Completed));
}

#[test]
fn an_old_worker_that_waits_for_its_batch_does_not_start_again() {
    let mut stage = Stage::ready(Settings { start_batch: 1, ..calm(2) });
    stage.recycle(1);
    stage.crash(p(2, 1));
    stage.forget();
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [], "the second one starts just now");
    stage.become_ready(p(3, 1));
    assert_eq!((stage.take(), stage.status(1)), (vec![], Status::Completed));
}

#[test]
fn a_successor_that_takes_its_time_keeps_nobody_from_starting() {
    let mut stage = Stage::ready(Settings { start_batch: 1, ..calm(2) });
    stage.recycle(1);
    stage.forget();
    stage.crash(p(2, 1));
    assert_eq!(stage.take(), [spawn(p(2, 2))]);
}

#[test]
fn an_old_worker_that_is_terminated_meanwhile_is_made_up_for_by_its_successor() {
    let mut stage = Stage::ready(calm(1));
    stage.recycle(1);
    stage.forget();
    let order = stage.terminate(1);
    stage.crash(p(1, 1));
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [kill(p(1, 1)), done(order, 1, Status::Terminated)]);
    assert_eq!(stage.pool.workers().count(), 1);
}

#[test]
fn another_worker_that_ends_during_a_replacement_is_made_up_for() {
    let mut stage = Stage::ready(calm(2));
    stage.recycle(1);
    stage.forget();
    let order = stage.terminate(2);
    stage.crash(p(2, 1));
    let expected = [kill(p(2, 1)), done(order, 2, Status::Terminated), spawn(p(4, 1))];
    assert_eq!(stage.take(), expected);
}

#[test]
fn a_leased_old_worker_stays_until_the_lease_is_given_back() {
    let mut stage = Stage::ready(calm(1));
    stage.ask_lease(1, 1);
    stage.recycle(1);
    stage.forget();
    stage.become_ready(p(2, 1));
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [assign(1, p(1, 1)), answered(1)]);
    stage.release(1);
    assert!(stage.take().contains(&ask(p(1, 1))));
}

#[test]
fn a_dedicated_worker_is_recycled_by_a_new_process_of_its_own() {
    let mut stage = Stage::ready(calm(1));
    let own = stage.add_dedicated();
    let order = stage.recycle(own);
    let deeds = stage.take();
    assert!(deeds.contains(&done(order, own, Status::Running)), "{deeds:?}");
    assert!(deeds.contains(&ask(p(own, 1))), "{deeds:?}");
    stage.leave(p(own, 1));
    assert_eq!(stage.take(), [spawn(p(own, 2))]);
    assert!(!blamed(&mut stage));
}

#[test]
fn a_worker_that_asked_to_retire_and_was_paused_is_replaced_after_all() {
    let mut stage = Stage::ready(calm(2));
    stage.recycle(1);
    stage.feed(Event::RetireAsked { process: p(2, 1) });
    stage.pause(2);
    stage.forget();
    stage.become_ready(p(3, 1));
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [ask(p(1, 1))], "not while it is paused");
    let order = stage.resume(2);
    assert_eq!(stage.take(), [done(order, 2, Status::Running), spawn(p(4, 1))]);
    stage.become_ready(p(4, 1));
    assert_eq!(stage.take(), [ask(p(2, 1))]);
}

#[test]
fn a_paused_old_worker_completes_when_it_is_resumed() {
    let mut stage = Stage::ready(calm(1));
    stage.recycle(1);
    stage.pause(1);
    stage.become_ready(p(2, 1));
    stage.forget();
    let order = stage.order(ostler_core::Action::Resume(WorkerId(1)));
    assert_eq!(stage.take(), [done(order, 1, Status::Running), ask(p(1, 1))]);
}
