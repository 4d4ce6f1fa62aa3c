//! Pools in which each key has a worker of its own.

use std::time::Duration;

use ostler_core::{
    Affinity, BondStep, Continuity, Evict, Exit, KeyId, Keyed, Notice, Occupancy, Refusal, Reply,
    Retirement, Settings, SpawnFailure, Status, StopReason, Target, WorkerId,
};

use crate::support::*;
use Continuity::{Bound, Restarted, Restored, Same};

/// A pool for so many keys, none of which stays for being young.
fn keyed(max: u32) -> Settings {
    evicting(Evict::Lru, max)
}

fn evicting(evict: Evict, max: u32) -> Settings {
    let keyed = Some(Keyed { evict, evict_min_age: Duration::ZERO });
    Settings { min: 0, max, keyed, prefetch: 0, idle_ttl: None, ..calm(max) }
}

/// Keys 1 to `count` have a worker each, with the same number, used in that order.
fn with_keys(settings: Settings, count: u64) -> Stage {
    let mut stage = Stage::ready(settings);
    for key in 1..=count {
        stage.arrive_of(1_000 + key, key);
        stage.become_ready(p(key, 1));
        stage.complete(1_000 + key, p(key, 1));
        stage.advance(secs(1));
    }
    stage.forget();
    stage
}

/// The same, with a strict session for each key.
fn with_sessions(settings: Settings, count: u64) -> Stage {
    let mut stage = Stage::ready(settings);
    for key in 1..=count {
        stage.arrive_keyed(1_000 + key, key, STRICT);
        stage.become_ready(p(key, 1));
        stage.complete(1_000 + key, p(key, 1));
        stage.advance(secs(1));
    }
    stage.forget();
    stage
}

fn retiring(worker: u64, reason: Retirement) -> Notice {
    Notice::Retiring { worker: WorkerId(worker), reason }
}

fn keys(stage: &Stage) -> Vec<(u64, Option<u64>)> {
    stage.pool.workers().map(|worker| (worker.id.0, worker.key.map(|key| key.0))).collect()
}

#[test]
fn a_worker_is_made_for_a_key_when_it_is_first_asked_for() {
    let mut stage = Stage::ready(keyed(2));
    assert_eq!(stage.pool.workers().count(), 0);
    stage.arrive_of(1, 7);
    assert_eq!(stage.take(), [spawn(p(1, 1))]);
    stage.become_ready(p(1, 1));
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    assert_eq!(stage.view(1).key, Some(KeyId(7)));
}

#[test]
fn requests_of_one_key_go_to_one_worker_and_those_of_another_to_another() {
    let mut stage = Stage::ready(keyed(2));
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 1);
    stage.arrive_of(3, 2);
    assert_eq!(stage.take(), [spawn(p(1, 1)), spawn(p(2, 1))], "one for each key");
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(3, p(2, 1))]);
    stage.become_ready(p(1, 1));
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    stage.complete(3, p(2, 1));
    assert_eq!(stage.take(), [answered(3)], "the second of the first key waits for its own");
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), assign(2, p(1, 1))]);
}

#[test]
fn a_request_without_a_key_is_refused() {
    let mut stage = with_keys(keyed(2), 1);
    stage.arrive(1);
    assert_eq!(stage.take(), [refuse(1, Refusal::KeyRequired)]);
    stage.arrive_for(2, Target::Worker(WorkerId(1)));
    assert_eq!(stage.take(), [assign(2, p(1, 1))], "whoever names the worker needs no key");
}

#[test]
fn a_key_in_a_plain_pool_means_nothing() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive_of(1, 7);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    assert_eq!(stage.view(1).key, None);
}

#[test]
fn workers_of_a_keyed_pool_are_neither_lent_nor_bound_by_hand() {
    let mut stage = with_keys(keyed(2), 1);
    stage.ask_lease(1, 1);
    assert_eq!(stage.take(), [refuse_lease(1, Refusal::NotInKeyedPool)]);
    let order = stage.bind(1, 1);
    assert_eq!(stage.take(), [reply(order, Reply::NotInKeyedPool)]);
}

#[test]
fn at_capacity_the_longest_unused_leaves_for_a_new_key() {
    let mut stage = with_keys(keyed(3), 3);
    stage.arrive_of(1, 1);
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.arrive_of(2, 4);
    assert_eq!(stage.take(), [ask(p(2, 1))]);
    assert_eq!(stage.told(&retiring(2, Retirement::Evicted)), 1);
    stage.leave(p(2, 1));
    assert_eq!(stage.take(), [spawn(p(4, 1))], "not before the old one is gone");
    assert_eq!(stage.status(2), Status::Completed);
    stage.become_ready(p(4, 1));
    assert_eq!(stage.take(), [assign(2, p(4, 1))]);
}

#[test]
fn the_first_made_leaves_where_that_is_the_rule() {
    let mut stage = with_keys(evicting(Evict::Oldest, 3), 3);
    stage.arrive_of(1, 1);
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.arrive_of(2, 4);
    assert_eq!(stage.take(), [ask(p(1, 1))]);
}

#[test]
fn the_least_used_leaves_where_that_is_the_rule() {
    let mut stage = with_keys(evicting(Evict::LeastUsed, 3), 3);
    for (id, key) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 1), (7, 1)] {
        stage.arrive_of(id, key);
        stage.complete(id, p(key, 1));
    }
    stage.forget();
    stage.arrive_of(8, 4);
    assert_eq!(stage.take(), [ask(p(2, 1))], "both others were used as much or later");
}

#[test]
fn a_busy_one_never_leaves_and_a_new_key_waits_for_the_first_that_is_done() {
    let mut stage = with_keys(keyed(2), 2);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 2);
    stage.arrive_of(3, 3);
    assert_eq!(stage.take(), [assign(1, p(1, 1)), assign(2, p(2, 1))]);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), ask(p(2, 1))]);
    stage.leave(p(2, 1));
    assert_eq!(stage.take(), [spawn(p(3, 1))]);
}

#[test]
fn one_that_others_wait_for_does_not_leave() {
    let mut stage = with_keys(keyed(1), 1);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 1);
    stage.arrive_of(3, 2);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), assign(2, p(1, 1))]);
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), ask(p(1, 1))]);
}

#[test]
fn a_young_one_does_not_leave_before_its_time() {
    let keyed_for = |max| Settings {
        keyed: Some(Keyed { evict: Evict::Lru, evict_min_age: secs(30) }),
        ..keyed(max)
    };
    let mut stage = with_keys(Settings { queue_timeout: secs(60), ..keyed_for(2) }, 2);
    stage.arrive_of(1, 3);
    stage.advance(secs(28) - ms(1));
    assert_eq!(stage.take(), [], "the first of them was ready two seconds ago");
    stage.advance(ms(1));
    assert_eq!(stage.take(), [ask(p(1, 1))], "nothing else had to happen");
}

#[test]
fn one_whose_key_is_asked_for_while_it_leaves_is_made_anew_when_it_is_gone() {
    let mut stage = with_keys(keyed(2), 2);
    stage.arrive_of(1, 3);
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.arrive_of(2, 1);
    assert_eq!(stage.take(), [ask(p(2, 1))], "its key needs a place too");
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(3, 1))]);
    stage.leave(p(2, 1));
    assert_eq!(stage.take(), [spawn(p(4, 1))]);
    assert_eq!(keys(&stage), [(3, Some(3)), (4, Some(1))]);
}

#[test]
fn as_many_leave_as_keys_wait() {
    let mut stage = with_keys(keyed(4), 4);
    stage.arrive_of(1, 5);
    stage.arrive_of(2, 5);
    assert_eq!(stage.take(), [ask(p(1, 1))], "one key needs one place");
    stage.arrive_of(3, 6);
    assert_eq!(stage.take(), [ask(p(2, 1))]);
}

#[test]
fn a_busy_one_on_its_way_out_makes_no_new_key_wait() {
    let mut stage = with_keys(keyed(2), 2);
    stage.arrive_of(1, 1);
    stage.end_key(1);
    stage.forget();
    stage.arrive_of(2, 3);
    assert_eq!(stage.take(), [ask(p(2, 1))], "the other one is idle");
}

#[test]
fn a_full_queue_refuses_keys_that_have_to_wait() {
    let mut stage = with_keys(Settings { queue_max: 1, ..keyed(1) }, 1);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 2);
    stage.forget();
    stage.arrive_of(3, 3);
    let refused = stage.take();
    let [ostler_core::Command::Refuse { refusal: Refusal::Saturated { queued: 1, .. }, .. }] =
        refused[..]
    else {
        panic!("{refused:?}")
    };
    stage.advance(secs(10));
    assert_eq!(stage.take(), [refuse(2, Refusal::QueueTimeout)]);
}

#[test]
fn a_key_whose_last_request_gave_up_gets_no_worker() {
    let mut stage = with_keys(keyed(1), 1);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 2);
    stage.cancel(2);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)]);
    assert_eq!(keys(&stage), [(1, Some(1))]);
}

#[test]
fn a_request_of_higher_priority_gets_the_next_place() {
    let mut stage = with_keys(keyed(1), 1);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 2);
    stage.arrive_as(3, |spec| (spec.key, spec.priority) = (Some(KeyId(3)), 1));
    stage.complete(1, p(1, 1));
    stage.leave(p(1, 1));
    assert_eq!(keys(&stage), [(2, Some(3))]);
}

#[test]
fn occupancy_is_idle_active_and_at_capacity() {
    let mut stage = Stage::ready(keyed(2));
    let occupancy = |stage: &Stage| stage.pool.view(stage.now).occupancy;
    assert_eq!(occupancy(&stage), Occupancy::Idle);
    stage.arrive_of(1, 1);
    stage.become_ready(p(1, 1));
    assert_eq!(occupancy(&stage), Occupancy::Active);
    stage.complete(1, p(1, 1));
    stage.arrive_of(2, 2);
    stage.become_ready(p(2, 1));
    assert_eq!(occupancy(&stage), Occupancy::AtCapacity);
}

#[test]
fn a_worker_whose_process_crashed_keeps_its_key() {
    let mut stage = with_keys(keyed(2), 1);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 1);
    stage.forget();
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [crashed(1, Exit::Signal(11)), spawn(p(1, 2))]);
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [assign(2, p(1, 2))]);
    assert_eq!(keys(&stage), [(1, Some(1))]);
}

#[test]
fn a_strict_session_of_a_key_is_told_of_a_crash() {
    let mut stage = with_sessions(keyed(2), 1);
    stage.arrive_keyed(1, 1, STRICT);
    stage.arrive_keyed(2, 1, STRICT);
    stage.forget();
    stage.crash(p(1, 1));
    let expected =
        [refuse(2, Refusal::SessionWorkerLost), crashed(1, Exit::Signal(11)), spawn(p(1, 2))];
    assert_eq!(stage.take(), expected);
    stage.become_ready(p(1, 2));
    stage.forget();
    stage.arrive_keyed(3, 1, STRICT);
    assert_eq!(stage.take(), [finding(Bound, assign(3, p(1, 2)))]);
}

#[test]
fn keys_that_kill_their_workers_open_the_breaker_and_all_are_refused() {
    let settings = Settings { restart_max: 0, ..keyed(2) };
    let mut stage = Stage::ready(settings);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 2);
    stage.forget();
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [refuse(1, Refusal::PoolFailed)], "the other one may yet live");
    stage.arrive_of(3, 3);
    assert_eq!(stage.take(), [refuse(3, Refusal::PoolFailed)]);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(2, p(2, 1))]);
    stage.arrive_of(4, 4);
    assert_eq!(stage.take(), [], "no new worker now, but perhaps soon");
    stage.advance(secs(30));
    assert!(!stage.take().contains(&spawn(p(3, 1))), "its time in the queue was over");
    stage.arrive_of(5, 5);
    assert_eq!(stage.take(), [spawn(p(3, 1))]);
}

#[test]
fn a_key_whose_worker_the_system_refuses_waits_for_it() {
    let mut stage = Stage::ready(keyed(2));
    stage.arrive_of(1, 1);
    stage.forget();
    stage.fail_spawn(p(1, 1), SpawnFailure::Exhausted);
    stage.advance(ms(200));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
    stage.become_ready(p(1, 2));
    assert_eq!(stage.take(), [assign(1, p(1, 2))]);
}

#[test]
fn a_successor_takes_over_the_key_when_it_is_ready() {
    let mut stage = with_keys(keyed(1), 1);
    stage.arrive_of(1, 1);
    stage.recycle(1);
    stage.arrive_of(2, 1);
    stage.forget();
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(2, p(2, 1))], "no session ties it to the old one");
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    stage.leave(p(1, 1));
    assert_eq!(keys(&stage), [(2, Some(1))]);
}

#[test]
fn a_session_of_a_key_moves_to_the_successor_with_all_that_was_kept() {
    for mode in [HINT, STRICT] {
        let mut stage = Stage::ready(keyed(1));
        stage.arrive_keyed(1, 1, mode);
        stage.become_ready(p(1, 1));
        stage.recycle(1);
        stage.arrive_keyed(2, 1, mode);
        stage.forget();
        stage.become_ready(p(2, 1));
        assert_eq!(stage.take(), [], "{mode:?}: the old one still works for it");
        stage.arrive_keyed(3, 1, mode);
        assert_eq!(stage.take(), [], "{mode:?}");
        stage.complete(1, p(1, 1));
        assert_eq!(stage.take(), [answered(1), save(1, p(1, 1))], "{mode:?}");
        stage.arrive_keyed(4, 1, mode);
        assert_eq!(stage.take(), [], "{mode:?}: it is being handed over");
        stage.saved(1, p(1, 1));
        let restored = finding(Restored, assign(2, p(2, 1)));
        assert_eq!(stage.take(), [restored, ask(p(1, 1))], "{mode:?}");
        stage.complete(2, p(2, 1));
        assert_eq!(stage.take(), [answered(2), finding(Same, assign(3, p(2, 1)))], "{mode:?}");
        stage.complete(3, p(2, 1));
        assert_eq!(stage.take(), [answered(3), finding(Same, assign(4, p(2, 1)))], "{mode:?}");
    }
}

#[test]
fn a_successor_takes_the_key_also_when_the_old_worker_is_gone_before() {
    type End = fn(&mut Stage);
    let ends: [End; 2] = [
        |stage| {
            stage.terminate(1);
            stage.crash(p(1, 1));
        },
        |stage| {
            stage.complete_worker(1);
            stage.leave(p(1, 1));
        },
    ];
    for end in ends {
        let mut stage = with_keys(keyed(1), 1);
        stage.recycle(1);
        end(&mut stage);
        stage.forget();
        stage.arrive_of(1, 1);
        assert_eq!(stage.take(), [], "one is on its way");
        stage.become_ready(p(2, 1));
        assert_eq!(stage.take(), [assign(1, p(2, 1))]);
        assert_eq!(keys(&stage), [(2, Some(1))]);
    }
}

#[test]
fn a_successor_that_is_terminated_leaves_the_old_worker_its_key() {
    let mut stage = with_keys(keyed(1), 1);
    stage.recycle(1);
    stage.terminate(2);
    stage.crash(p(2, 1));
    stage.forget();
    stage.arrive_of(1, 1);
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
    assert_eq!(keys(&stage), [(1, Some(1))]);
}

#[test]
fn a_successor_is_not_replaced_before_it_has_taken_over() {
    let mut stage = with_keys(Settings { retire_max: 2, ..keyed(1) }, 1);
    stage.recycle(1);
    stage.forget();
    let order = stage.recycle(2);
    assert_eq!(stage.take(), [reply(order, Reply::InTransition)]);
    stage.become_ready(p(2, 1));
    stage.leave(p(1, 1));
    stage.forget();
    let order = stage.recycle(2);
    assert_eq!(stage.take(), [done(order, 2, Status::Running), spawn(p(3, 1))]);
    stage.become_ready(p(3, 1));
    stage.leave(p(2, 1));
    assert_eq!(keys(&stage), [(3, Some(1))]);
}

#[test]
fn one_that_is_being_replaced_does_not_leave_for_another_key() {
    let mut stage = with_keys(keyed(2), 2);
    stage.recycle(1);
    stage.forget();
    stage.arrive_of(1, 3);
    assert_eq!(stage.take(), [ask(p(2, 1))], "though it was used later");
}

#[test]
fn a_pool_of_one_key_that_is_being_replaced_makes_another_key_wait() {
    let mut stage = with_keys(keyed(1), 1);
    stage.recycle(1);
    stage.arrive_of(1, 2);
    stage.forget();
    stage.become_ready(p(2, 1));
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [ask(p(1, 1)), ask(p(2, 1))], "first the one, then the other");
    stage.leave(p(2, 1));
    assert_eq!(keys(&stage), [(3, Some(2))]);
}

#[test]
fn the_worker_of_an_ended_key_leaves_when_it_has_nothing_to_do() {
    let mut stage = with_sessions(keyed(2), 1);
    stage.arrive_keyed(1, 1, STRICT);
    stage.forget();
    stage.end_session(1);
    stage.end_key(1);
    assert_eq!(stage.take(), []);
    assert_eq!(stage.told(&retiring(1, Retirement::KeyEnded)), 1);
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    let reason = StopReason::Retired(Retirement::KeyEnded);
    assert_eq!(stage.told(&Notice::Stopping { process: p(1, 1), reason }), 1);
    stage.leave(p(1, 1));
    assert_eq!(stage.pool.workers().count(), 0);
}

#[test]
fn the_end_of_an_unknown_key_is_no_news() {
    let mut stage = with_keys(keyed(2), 1);
    stage.end_key(9);
    assert_eq!((stage.take(), stage.notices()), (vec![], vec![]));
}

#[test]
fn a_key_that_ends_twice_ends_once() {
    let mut stage = with_keys(keyed(2), 1);
    stage.end_key(1);
    stage.end_key(1);
    assert_eq!(stage.told(&retiring(1, Retirement::KeyEnded)), 1);
    assert_eq!(stage.take(), [ask(p(1, 1))]);
}

#[test]
fn those_who_wait_for_an_ended_key_are_served_all_the_same() {
    let mut stage = with_keys(keyed(2), 1);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 1);
    stage.end_key(1);
    stage.forget();
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), ask(p(1, 1))]);
    stage.leave(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(2, 1))], "they were let in");
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(2, p(2, 1))]);
}

#[test]
fn a_key_that_ends_before_its_worker_is_ready_takes_it_along() {
    let mut stage = Stage::ready(keyed(2));
    stage.arrive_of(1, 1);
    stage.cancel(1);
    stage.forget();
    stage.end_key(1);
    assert_eq!(stage.take(), [term(p(1, 1))]);
    stage.leave(p(1, 1));
    assert_eq!(stage.pool.workers().count(), 0);
}

#[test]
fn a_key_that_ends_while_its_worker_is_being_replaced_leaves_nobody() {
    let mut stage = with_keys(keyed(2), 1);
    stage.recycle(1);
    stage.forget();
    stage.end_key(1);
    stage.leave(p(1, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&term(p(2, 1))), "the successor goes too: {deeds:?}");
    stage.leave(p(2, 1));
    assert_eq!(keys(&stage), []);
}

#[test]
fn an_evicted_session_takes_what_was_kept_of_it_along() {
    let mut stage = with_sessions(keyed(1), 1);
    stage.arrive_of(1, 2);
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
    stage.saved(1, p(1, 1));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.leave(p(1, 1));
    stage.become_ready(p(2, 1));
    stage.complete(1, p(2, 1));
    stage.forget();
    stage.arrive_keyed(2, 1, STRICT);
    stage.leave(p(2, 1));
    stage.become_ready(p(3, 1));
    assert!(stage.take().contains(&finding(Restored, assign(2, p(3, 1)))));
}

/// The only worker of a keyed pool, with a strict session that it cannot hand over, is evicted.
fn evicted_without_hooks(mode: Affinity) -> Stage {
    let mut stage = Stage::ready(keyed(1));
    stage.arrive_keyed(1, 1, mode);
    stage.become_ready_without_hooks(p(1, 1));
    stage.complete(1, p(1, 1));
    stage.arrive_of(2, 2);
    stage
}

#[test]
fn an_evicted_strict_session_that_could_not_be_handed_over_is_told_once() {
    let mut stage = evicted_without_hooks(STRICT);
    assert_eq!(stage.told(&step(1, p(1, 1), BondStep::Lost)), 1);
    stage.leave(p(1, 1));
    stage.forget();
    stage.arrive_keyed(3, 1, STRICT);
    assert_eq!(stage.take(), [refuse(3, Refusal::SessionWorkerLost)]);
    stage.arrive_keyed(4, 1, STRICT);
    assert_eq!(stage.take(), [], "it waits for a place of its own");
}

#[test]
fn an_evicted_hint_that_could_not_be_handed_over_starts_anew() {
    let mut stage = evicted_without_hooks(HINT);
    assert_eq!(stage.told(&step(1, p(1, 1), BondStep::Released)), 1);
    stage.leave(p(1, 1));
    stage.become_ready(p(2, 1));
    stage.complete(2, p(2, 1));
    stage.arrive_keyed(3, 1, HINT);
    stage.leave(p(2, 1));
    stage.become_ready(p(3, 1));
    assert!(stage.take().contains(&finding(Restarted, assign(3, p(3, 1)))));
}

#[test]
fn all_who_wait_are_told_when_an_evicted_session_could_not_be_handed_over() {
    let mut stage = with_sessions(keyed(1), 1);
    stage.arrive_of(1, 2);
    stage.arrive_keyed(2, 1, STRICT);
    stage.arrive_keyed(3, 1, STRICT);
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
    stage.not_saved(1, p(1, 1));
    let told = |id| refuse(id, Refusal::SessionWorkerLost);
    assert_eq!(stage.take(), [told(2), told(3), ask(p(1, 1))]);
}

#[test]
fn idle_keys_leave_after_their_time_and_a_keyed_pool_may_become_empty() {
    let mut stage = with_keys(Settings { idle_ttl: Some(secs(300)), ..keyed(2) }, 2);
    stage.advance(secs(298));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.advance(secs(1));
    assert_eq!(stage.take(), [ask(p(2, 1))]);
    assert_eq!(stage.told(&retiring(2, Retirement::Idle)), 1);
}

#[test]
fn memory_pressure_stops_new_keys_but_not_the_first() {
    let mut stage = Stage::ready(keyed(3));
    stage.feed(ostler_core::Event::PressureChanged { high: true });
    stage.arrive_of(1, 1);
    assert_eq!(stage.take(), [spawn(p(1, 1))]);
    stage.arrive_of(2, 2);
    stage.arrive_of(3, 3);
    assert_eq!(stage.take(), []);
    assert_eq!(stage.told(&Notice::GrowthHeld), 1);
    stage.feed(ostler_core::Event::PressureChanged { high: false });
    assert_eq!(stage.take(), [spawn(p(2, 1)), spawn(p(3, 1))]);
}

#[test]
fn a_smaller_keyed_pool_lets_the_coldest_go() {
    let mut stage = with_keys(keyed(3), 3);
    stage.scale(0, 2);
    assert!(stage.take().contains(&ask(p(1, 1))));
    stage.leave(p(1, 1));
    assert_eq!(keys(&stage), [(2, Some(2)), (3, Some(3))]);
}

#[test]
fn a_larger_keyed_pool_serves_those_who_wait() {
    let mut stage = with_keys(keyed(1), 1);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 2);
    stage.forget();
    let order = stage.scale(0, 2);
    assert_eq!(stage.take(), [reply(order, Reply::PoolDone), spawn(p(2, 1))]);
}

#[test]
fn paused_or_not_a_key_has_one_worker() {
    let mut stage = with_keys(keyed(2), 1);
    stage.pause(1);
    stage.arrive_of(1, 1);
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), [], "nobody else takes its place");
    let order = stage.resume(1);
    assert_eq!(stage.take(), [done(order, 1, Status::Running), assign(1, p(1, 1))]);
}

#[test]
fn the_end_of_the_pool_refuses_keys_that_wait() {
    let mut stage = with_keys(keyed(1), 1);
    stage.arrive_of(1, 1);
    stage.arrive_of(2, 2);
    stage.forget();
    stage.shut_down();
    assert_eq!(stage.take(), [refuse(2, Refusal::ShuttingDown)]);
    stage.complete(1, p(1, 1));
    stage.leave(p(1, 1));
    let expected = [answered(1), ask(p(1, 1)), ostler_core::Command::Stopped];
    assert_eq!(stage.take(), expected, "nobody is made for it");
}

#[test]
fn a_key_asked_for_in_the_middle_of_an_eviction_survives_the_crash_of_the_one_that_leaves() {
    let mut stage = with_sessions(keyed(1), 1);
    stage.arrive_of(1, 2);
    assert_eq!(stage.take(), [save(1, p(1, 1))]);
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(2, 1))], "the place is free, however it came to be");
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(1, p(2, 1))]);
}
