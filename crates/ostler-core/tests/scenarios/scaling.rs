//! How many workers there are: more when requests wait, fewer when workers idle, and by order.

use ostler_core::{
    Event, Exit, Lifecycle, Notice, Occupancy, Refusal, Reply, Retirement, Settings, Status,
    Target, WorkerId,
};

use crate::support::*;

/// A pool of `min..max` in which nothing is laid behind anything.
fn elastic(min: u32, max: u32) -> Settings {
    Settings { min, prefetch: 0, ..calm(max) }
}

fn scaled(from: u32, to: u32) -> Notice {
    Notice::Scaled { from, to }
}

fn workers(stage: &Stage) -> Vec<u64> {
    stage.pool.workers().map(|worker| worker.id.0).collect()
}

fn press(stage: &mut Stage, high: bool) {
    stage.feed(Event::PressureChanged { high });
}

/// A pool of one to three that has grown to three, all idle, used in the order of their ids.
fn grown() -> Stage {
    let mut stage = Stage::ready(elastic(1, 3));
    for id in 1..=3 {
        stage.arrive(id);
    }
    stage.advance(ms(50));
    stage.become_ready(p(2, 1));
    stage.become_ready(p(3, 1));
    for id in 1..=3 {
        stage.complete(id, p(id, 1));
        stage.advance(secs(1));
    }
    stage.forget();
    assert_eq!(workers(&stage), [1, 2, 3]);
    stage
}

#[test]
fn a_pool_begins_with_the_workers_that_it_keeps() {
    let mut stage = Stage::started(elastic(2, 5));
    assert_eq!(stage.take(), [spawn(p(1, 1)), spawn(p(2, 1))]);
    stage.become_ready(p(1, 1));
    stage.become_ready(p(2, 1));
    assert_eq!((stage.told(&Notice::FirstReady), stage.told(&Notice::AllReady)), (1, 1));
}

#[test]
fn another_worker_is_made_when_a_request_has_waited_long_enough() {
    let mut stage = Stage::ready(elastic(1, 3));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.advance(ms(50) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
    assert_eq!(stage.told(&scaled(1, 2)), 1);
    stage.become_ready(p(2, 1));
    assert_eq!(stage.take(), [assign(2, p(2, 1))]);
}

#[test]
fn a_request_that_was_served_in_time_makes_no_worker() {
    let mut stage = Stage::ready(elastic(1, 3));
    stage.arrive(1);
    stage.arrive(2);
    stage.advance(ms(40));
    stage.complete(1, p(1, 1));
    stage.arrive(3);
    stage.forget();
    stage.advance(ms(40));
    assert_eq!(stage.take(), [], "the third has waited for 40 ms");
    stage.advance(ms(10));
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
}

#[test]
fn a_request_that_gave_up_makes_no_worker() {
    let mut stage = Stage::ready(elastic(1, 3));
    stage.arrive(1);
    stage.arrive(2);
    stage.cancel(2);
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), []);
}

#[test]
fn as_many_are_made_as_wait_but_no_more_at_a_time_than_may_start_at_a_time() {
    let mut stage = Stage::ready(Settings { start_batch: 2, ..elastic(1, 6) });
    for id in 1..=9 {
        stage.arrive(id);
    }
    stage.forget();
    stage.advance(ms(50));
    assert_eq!(stage.take(), [spawn(p(2, 1)), spawn(p(3, 1))]);
    stage.advance(secs(1));
    assert_eq!(stage.take(), [], "those have to show up first");
    stage.become_ready(p(2, 1));
    stage.become_ready(p(3, 1));
    stage.forget();
    stage.advance(ms(50));
    assert_eq!(stage.take(), [spawn(p(4, 1)), spawn(p(5, 1))]);
    stage.become_ready(p(4, 1));
    stage.become_ready(p(5, 1));
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), [spawn(p(6, 1))], "never more than the pool may have");
}

#[test]
fn one_that_is_on_its_way_is_not_made_again() {
    let mut stage = Stage::ready(elastic(1, 4));
    stage.arrive(1);
    stage.arrive(2);
    stage.advance(ms(50));
    stage.forget();
    stage.advance(secs(2));
    assert_eq!(stage.take(), []);
    stage.arrive(3);
    stage.advance(ms(50));
    assert_eq!(stage.take(), [spawn(p(3, 1))], "one for the second that waits");
}

#[test]
fn a_worker_that_takes_several_at_a_time_is_made_for_several() {
    let mut stage = Stage::ready(Settings { capacity: 4, ..elastic(1, 8) });
    for id in 1..=10 {
        stage.arrive(id);
    }
    stage.forget();
    stage.advance(ms(50));
    assert_eq!(stage.take(), [spawn(p(2, 1)), spawn(p(3, 1))], "six wait, four fit into one");
}

#[test]
fn whoever_waits_for_one_worker_alone_makes_no_other() {
    let mut stage = Stage::ready(elastic(1, 3));
    stage.arrive_in(1, 1, STRICT);
    stage.arrive_in(2, 1, STRICT);
    stage.arrive_for(3, Target::Worker(WorkerId(1)));
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), []);
}

#[test]
fn a_lease_that_waits_makes_the_workers_that_it_wants() {
    let mut stage = Stage::ready(elastic(1, 4));
    stage.ask_lease(1, 3);
    stage.advance(ms(50));
    let deeds = stage.take();
    assert!(deeds.contains(&spawn(p(2, 1))) && deeds.contains(&spawn(p(3, 1))), "{deeds:?}");
    stage.become_ready(p(2, 1));
    stage.become_ready(p(3, 1));
    let deeds = stage.take();
    assert!(deeds.iter().any(|deed| matches!(deed, ostler_core::Command::Grant { .. })));
}

#[test]
fn a_pool_that_keeps_nobody_is_ready_as_it_is() {
    let mut stage = Stage::started(elastic(0, 2));
    assert_eq!((stage.take(), workers(&stage)), (vec![], vec![]));
    assert_eq!((stage.told(&Notice::FirstReady), stage.told(&Notice::AllReady)), (1, 1));
    assert_eq!(stage.pool.lifecycle(), Lifecycle::Running);
    assert_eq!(stage.pool.view(stage.now).occupancy, Occupancy::Idle);
}

#[test]
fn a_pool_that_keeps_nobody_makes_a_worker_for_the_first_request_at_once() {
    let mut stage = Stage::ready(elastic(0, 2));
    stage.arrive(1);
    assert_eq!(stage.take(), [spawn(p(1, 1))]);
    stage.become_ready(p(1, 1));
    assert_eq!(stage.take(), [assign(1, p(1, 1))]);
}

#[test]
fn a_pool_that_keeps_nobody_is_empty_again_after_a_while() {
    let mut stage = Stage::ready(elastic(0, 2));
    stage.arrive(1);
    stage.become_ready(p(1, 1));
    stage.complete(1, p(1, 1));
    stage.forget();
    stage.advance(secs(300));
    assert_eq!(stage.take(), [ask(p(1, 1))]);
    stage.leave(p(1, 1));
    assert_eq!(workers(&stage), []);
    assert_eq!(stage.told(&scaled(1, 0)), 1);
    stage.arrive(2);
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
}

#[test]
fn a_request_that_comes_while_the_last_one_leaves_gets_a_new_one() {
    for (max, at_once) in [(1, false), (2, true)] {
        let mut stage = Stage::ready(elastic(0, max));
        stage.arrive(1);
        stage.become_ready(p(1, 1));
        stage.complete(1, p(1, 1));
        stage.advance(secs(300));
        stage.forget();
        stage.arrive(2);
        assert_eq!(!stage.take().is_empty(), at_once, "{max}");
        stage.leave(p(1, 1));
        stage.become_ready(p(2, 1));
        assert!(stage.take().contains(&assign(2, p(2, 1))), "{max}");
    }
}

#[test]
fn workers_above_the_least_leave_when_they_were_idle_long_enough() {
    let mut stage = grown();
    stage.advance(secs(297) - ms(1));
    assert_eq!(stage.take(), []);
    stage.advance(ms(1));
    assert_eq!(stage.take(), [ask(p(1, 1))], "it was used first");
    let reason = Retirement::Idle;
    assert_eq!(stage.told(&Notice::Retiring { worker: WorkerId(1), reason }), 1);
    stage.leave(p(1, 1));
    stage.advance(secs(1));
    assert_eq!(stage.take(), [ask(p(2, 1))]);
    stage.leave(p(2, 1));
    stage.advance(secs(1_000));
    assert_eq!((stage.take(), workers(&stage)), (vec![], vec![3]), "the least stays");
}

#[test]
fn spare_workers_grow_cold_because_the_last_used_is_used_again() {
    let mut stage = grown();
    for id in 10..20 {
        stage.arrive(id);
        stage.complete(id, p(3, 1));
        stage.advance(secs(40));
    }
    assert!(stage.take().contains(&ask(p(1, 1))));
    stage.leave(p(1, 1));
    assert!(!stage.view(3).retiring);
}

#[test]
fn a_pool_of_a_fixed_size_never_shrinks() {
    let mut stage = Stage::ready(calm(2));
    stage.advance(secs(3_000));
    assert_eq!((stage.take(), workers(&stage)), (vec![], vec![1, 2]));
}

#[test]
fn a_busy_worker_is_not_idle_however_long_it_takes() {
    let mut stage = grown();
    for id in 10..13 {
        stage.arrive(id);
    }
    stage.forget();
    stage.advance(secs(1_000));
    assert_eq!((stage.take(), workers(&stage)), (vec![], vec![1, 2, 3]));
}

#[test]
fn a_leased_worker_is_not_idle() {
    let mut stage = grown();
    stage.feed(Event::LeaseRequested {
        lease: ostler_core::LeaseId(1),
        spec: ostler_core::LeaseSpec { workers: 3, ttl: secs(3_000), deadline: FAR },
    });
    stage.forget();
    stage.advance(secs(1_000));
    assert_eq!(stage.take(), []);
}

#[test]
fn a_worker_that_leaves_and_crashes_on_its_way_is_not_made_again() {
    let mut stage = grown();
    stage.advance(secs(297));
    stage.forget();
    stage.crash(p(1, 1));
    stage.advance(secs(10));
    assert_eq!(stage.status(1), Status::Completed);
    assert_eq!(workers(&stage).first(), Some(&2));
    assert_eq!(stage.told(&Notice::Crashed { process: p(1, 1), exit: Exit::Signal(11) }), 0);
}

#[test]
fn a_grown_worker_that_ends_is_made_up_for() {
    let mut stage = grown();
    stage.terminate(2);
    stage.crash(p(2, 1));
    assert!(stage.take().contains(&spawn(p(4, 1))), "the pool wants three");
}

#[test]
fn while_memory_is_short_the_pool_does_not_grow_and_says_so_once() {
    let mut stage = Stage::ready(elastic(1, 3));
    press(&mut stage, true);
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.advance(secs(1));
    assert_eq!((stage.take(), stage.told(&Notice::GrowthHeld)), (vec![], 1));
    assert!(stage.pool.view(stage.now).strained);
    press(&mut stage, false);
    stage.advance(ms(50));
    assert_eq!(stage.take(), [spawn(p(2, 1))]);
    press(&mut stage, true);
    stage.arrive(3);
    stage.advance(secs(1));
    assert_eq!(stage.told(&Notice::GrowthHeld), 2, "that is news again");
}

#[test]
fn while_memory_is_short_the_first_worker_is_made_all_the_same() {
    let mut stage = Stage::ready(elastic(0, 3));
    press(&mut stage, true);
    stage.arrive(1);
    assert_eq!(stage.take(), [spawn(p(1, 1))]);
    assert_eq!(stage.told(&Notice::GrowthHeld), 0);
}

#[test]
fn while_memory_is_short_a_worker_that_dies_is_made_up_for() {
    let mut stage = Stage::ready(elastic(2, 3));
    press(&mut stage, true);
    stage.crash(p(1, 1));
    assert_eq!(stage.take(), [spawn(p(1, 2))]);
}

#[test]
fn an_open_breaker_stops_growth() {
    let mut stage = Stage::ready(Settings { restart_max: 0, ..elastic(2, 4) });
    stage.crash(p(1, 1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), []);
}

#[test]
fn a_larger_pool_makes_what_it_lacks_at_once() {
    let mut stage = Stage::ready(Settings { start_batch: 4, ..elastic(1, 1) });
    let order = stage.scale(3, 4);
    assert_eq!(stage.take(), [reply(order, Reply::PoolDone), spawn(p(2, 1)), spawn(p(3, 1))]);
    assert_eq!(stage.told(&scaled(1, 3)), 1);
    let view = stage.pool.view(stage.now);
    assert_eq!((view.min, view.max, view.target), (3, 4, 3));
}

#[test]
fn a_smaller_pool_lets_the_coldest_idle_ones_go() {
    let mut stage = Stage::ready(elastic(4, 4));
    for (id, worker) in [(1, 3), (2, 1)] {
        stage.arrive_for(id, Target::Worker(WorkerId(worker)));
        stage.advance(secs(1));
    }
    stage.complete(2, p(1, 1));
    stage.forget();
    stage.scale(2, 2);
    let deeds = stage.take();
    assert!(deeds.contains(&ask(p(2, 1))) && deeds.contains(&ask(p(4, 1))), "{deeds:?}");
    let reason = Retirement::Scaled;
    assert_eq!(stage.told(&Notice::Retiring { worker: WorkerId(2), reason }), 1);
}

#[test]
fn a_smaller_pool_lets_busy_ones_finish() {
    let mut stage = Stage::ready(elastic(2, 2));
    stage.arrive(1);
    stage.arrive(2);
    stage.arrive(3);
    stage.forget();
    let order = stage.scale(1, 1);
    assert_eq!(stage.take(), [reply(order, Reply::PoolDone)]);
    stage.complete(1, p(1, 1));
    stage.complete(2, p(2, 1));
    let deeds = stage.take();
    let served = [1, 2].into_iter().all(|id| deeds.contains(&answered(id)));
    let left = [1, 2].into_iter().filter(|worker| deeds.contains(&ask(p(*worker, 1)))).count();
    assert_eq!((served, left), (true, 1), "{deeds:?}");
    let stays = if deeds.contains(&ask(p(1, 1))) { 2 } else { 1 };
    assert!(deeds.contains(&assign(3, p(stays, 1))), "{deeds:?}");
}

#[test]
fn a_smaller_pool_lets_those_go_first_that_are_not_ready() {
    let mut stage = Stage::started(elastic(3, 3));
    stage.become_ready(p(2, 1));
    stage.forget();
    stage.scale(1, 1);
    let deeds = stage.take();
    assert!(deeds.contains(&term(p(1, 1))) && deeds.contains(&term(p(3, 1))), "{deeds:?}");
    stage.leave(p(1, 1));
    stage.leave(p(3, 1));
    assert_eq!(workers(&stage), [2]);
}

#[test]
fn a_pool_that_was_made_smaller_and_larger_again_has_its_workers() {
    let mut stage = Stage::ready(elastic(3, 3));
    stage.scale(1, 1);
    stage.scale(3, 3);
    for worker in [1, 2] {
        stage.leave(p(worker, 1));
    }
    stage.become_ready(p(4, 1));
    stage.become_ready(p(5, 1));
    assert_eq!(workers(&stage).len(), 3);
    stage.forget();
    stage.advance(secs(120));
    assert_eq!(stage.take(), []);
}

#[test]
fn a_new_least_is_kept_and_a_new_most_is_not_exceeded() {
    let mut stage = grown();
    stage.scale(2, 3);
    stage.forget();
    stage.advance(secs(297));
    stage.leave(p(1, 1));
    stage.advance(secs(1_000));
    assert_eq!(workers(&stage), [2, 3]);
    stage.scale(0, 1);
    stage.leave(p(2, 1));
    assert_eq!(workers(&stage), [3]);
}

#[test]
fn a_pool_of_nobody_by_order_may_still_have_one() {
    let mut stage = Stage::ready(elastic(1, 1));
    stage.scale(0, 0);
    let view = stage.pool.view(stage.now);
    assert_eq!((view.min, view.max), (0, 1));
    stage.scale(5, 2);
    let view = stage.pool.view(stage.now);
    assert_eq!((view.min, view.max), (2, 2), "the least is not more than the most");
}

#[test]
fn a_smaller_pool_does_not_keep_those_whose_replacement_was_under_way() {
    let mut stage = Stage::ready(Settings { retire_max: 2, ..elastic(2, 2) });
    stage.recycle(1);
    stage.recycle(2);
    stage.scale(1, 1);
    stage.become_ready(p(3, 1));
    stage.become_ready(p(4, 1));
    for worker in 1..=4 {
        if stage.pool.workers().any(|known| known.id.0 == worker && known.stopping.is_some()) {
            stage.leave(p(worker, 1));
        }
    }
    stage.advance(secs(1));
    for worker in 1..=4 {
        if stage.pool.workers().any(|known| known.id.0 == worker && known.stopping.is_some()) {
            stage.leave(p(worker, 1));
        }
    }
    assert_eq!(workers(&stage).len(), 1);
}

#[test]
fn a_smaller_pool_lets_the_other_go_while_one_is_being_replaced() {
    let mut stage = Stage::ready(elastic(2, 2));
    stage.recycle(1);
    stage.forget();
    let order = stage.scale(1, 1);
    assert_eq!(stage.take(), [reply(order, Reply::PoolDone), ask(p(2, 1))]);
    stage.leave(p(2, 1));
    stage.become_ready(p(3, 1));
    stage.leave(p(1, 1));
    assert_eq!(workers(&stage), [3]);
}

#[test]
fn one_whose_turn_to_be_replaced_comes_when_there_are_too_many_just_leaves() {
    let mut stage = Stage::ready(elastic(2, 2));
    stage.recycle(1);
    stage.recycle(2);
    stage.scale(1, 1);
    stage.forget();
    stage.leave(p(2, 1));
    stage.become_ready(p(3, 1));
    stage.leave(p(1, 1));
    stage.advance(secs(1));
    assert_eq!(workers(&stage), [3]);
}

#[test]
fn a_pool_does_not_grow_for_those_who_leave_it_meanwhile() {
    let mut stage = grown();
    for id in 10..=13 {
        stage.arrive(id);
    }
    stage.scale(1, 1);
    stage.forget();
    stage.advance(secs(1));
    assert_eq!(stage.take(), [], "the fourth waits for the one that stays");
    for id in 10..=12 {
        let (process, _) = stage.pool.request(ostler_core::RequestId(id)).expect("it runs");
        stage.complete(id, process.expect("it runs"));
    }
    let deeds = stage.take();
    let assigned = deeds.iter().any(
        |deed| matches!(deed, ostler_core::Command::Assign { request, .. } if request.0 == 13),
    );
    assert!(assigned, "{deeds:?}");
}

#[test]
fn a_pool_that_ends_neither_grows_nor_shrinks() {
    let mut stage = grown();
    for id in 10..=14 {
        stage.arrive(id);
    }
    stage.shut_down();
    stage.forget();
    stage.advance(secs(29));
    assert_eq!((stage.take(), stage.notices()), (vec![], vec![]));
    let order = stage.scale(1, 1);
    assert_eq!(stage.take(), [reply(order, Reply::ShuttingDown)]);
}

#[test]
fn a_full_queue_is_full_though_more_workers_are_on_their_way() {
    let mut stage = Stage::ready(Settings { queue_max: 1, ..elastic(1, 2) });
    stage.arrive(1);
    stage.arrive(2);
    stage.advance(ms(50));
    stage.forget();
    stage.arrive(3);
    let deeds = stage.take();
    let refused = |deed: &ostler_core::Command| {
        let saturated = |refusal: &Refusal| matches!(refusal, Refusal::Saturated { .. });
        matches!(deed, ostler_core::Command::Refuse { refusal, .. } if saturated(refusal))
    };
    assert!(deeds.iter().all(refused) && deeds.len() == 1, "{deeds:?}");
}
