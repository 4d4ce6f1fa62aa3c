//! Calls made by requests that are themselves being worked on, and keep their place meanwhile.

use ostler_core::{Answer, Refusal, RequestId, Settings, Target, WorkerId};

use crate::support::*;

pub fn no_prefetch(size: u32) -> Settings {
    Settings { prefetch: 0, ..calm(size) }
}

/// A pool with that many requests running, numbered from 1, each on a worker of its own.
pub fn running(settings: Settings, requests: u64) -> Stage {
    let mut stage = Stage::ready(settings);
    for id in 1..=requests {
        stage.arrive(id);
    }
    stage.forget();
    stage
}

pub fn deadlock(request: u64) -> ostler_core::Command {
    refuse(request, Refusal::NestedDeadlock)
}

fn queued(stage: &Stage) -> usize {
    stage.pool.view(stage.now).queued
}

#[test]
fn a_call_into_its_own_pool_of_one_is_refused_at_once() {
    let mut stage = running(no_prefetch(1), 1);
    stage.arrive_from(2, &[1]);
    assert_eq!(stage.take(), [deadlock(2)]);
    assert_eq!((stage.pool.request(RequestId(2)), stage.counters().refused), (None, 1));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1)], "the one that made it goes on");
}

#[test]
fn a_call_that_finds_a_free_place_runs() {
    let mut stage = running(no_prefetch(2), 1);
    stage.arrive_from(2, &[1]);
    assert_eq!(stage.take(), [assign(2, p(2, 1))]);
}

#[test]
fn a_call_waits_for_a_place_that_somebody_else_will_give_back() {
    let mut stage = running(no_prefetch(2), 2);
    stage.arrive_from(3, &[1]);
    assert_eq!(stage.take(), []);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), assign(3, p(2, 1))]);
}

#[test]
fn of_two_parents_in_a_pool_of_two_the_second_is_refused_and_the_first_served() {
    let mut stage = running(no_prefetch(2), 2);
    stage.arrive_from(3, &[1]);
    stage.arrive_from(4, &[2]);
    assert_eq!(stage.take(), [deadlock(4)], "it would have closed the circle");
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), assign(3, p(2, 1))]);
    stage.complete(3, p(2, 1));
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(3), answered(1)]);
}

#[test]
fn one_parent_may_make_several_calls_at_a_time() {
    let mut stage = running(no_prefetch(2), 2);
    for id in 3..=5 {
        stage.arrive_from(id, &[1]);
    }
    assert_eq!((stage.take(), queued(&stage)), (vec![], 3));
    stage.cancel(3);
    stage.forget();
    stage.arrive_from(6, &[2]);
    assert_eq!(stage.take(), [deadlock(6)], "the first still waits for the other two");
}

#[test]
fn three_levels_need_three_places() {
    for (size, fits) in [(2, false), (3, true)] {
        let mut stage = running(no_prefetch(size), 1);
        stage.arrive_from(2, &[1]);
        stage.forget();
        stage.arrive_from(3, &[1, 2]);
        let expected = if fits { assign(3, p(3, 1)) } else { deadlock(3) };
        assert_eq!(stage.take(), [expected], "{size} workers");
    }
}

#[test]
fn the_grandchild_waits_where_a_stranger_holds_the_third_place() {
    let mut stage = running(no_prefetch(3), 2);
    stage.arrive_from(3, &[1]);
    stage.forget();
    stage.arrive_from(4, &[1, 3]);
    assert_eq!(stage.take(), []);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), assign(4, p(2, 1))]);
}

#[test]
fn the_places_of_one_large_worker_are_places_too() {
    let mut stage = Stage::ready(Settings { capacity: 3, ..no_prefetch(1) });
    stage.arrive(1);
    stage.arrive_from(2, &[1]);
    stage.arrive_from(3, &[1, 2]);
    stage.forget();
    stage.arrive_from(4, &[1, 2, 3]);
    assert_eq!(stage.take(), [deadlock(4)]);
}

#[test]
fn a_parent_that_was_cancelled_no_longer_counts() {
    let mut stage = running(no_prefetch(2), 2);
    stage.arrive_from(3, &[1]);
    stage.cancel(1);
    stage.forget();
    stage.arrive_from(4, &[2]);
    assert_eq!((stage.take(), queued(&stage)), (vec![], 2), "the cancelled one gives its place up");
    stage.cancel(3);
    stage.forget();
    stage.answer(1, 1, p(1, 1), Answer::Cancelled { started: true });
    assert_eq!(stage.take(), [assign(4, p(1, 1))]);
}

#[test]
fn a_parent_that_ran_out_of_time_no_longer_counts() {
    let mut stage = Stage::ready(no_prefetch(2));
    let by = stage.now.after(secs(1));
    stage.arrive_as(1, |spec| spec.deadline = by);
    stage.arrive(2);
    stage.arrive_from(3, &[1]);
    stage.advance(secs(1));
    stage.forget();
    stage.arrive_from(4, &[2]);
    assert_eq!(stage.take(), []);
}

#[test]
fn a_call_that_was_cancelled_no_longer_blocks_its_parent() {
    let mut stage = running(no_prefetch(2), 2);
    stage.arrive_from(3, &[1]);
    stage.cancel(3);
    stage.forget();
    stage.arrive_from(4, &[2]);
    assert_eq!(stage.take(), [], "the first parent waits for nothing in the queue any more");
    stage.arrive_from(5, &[1]);
    assert_eq!(stage.take(), [deadlock(5)]);
}

#[test]
fn a_call_that_expired_in_the_queue_no_longer_blocks_its_parent() {
    let mut stage = running(no_prefetch(2), 2);
    stage.arrive_from(3, &[1]);
    stage.forget();
    stage.advance(secs(10));
    assert_eq!(stage.take(), [refuse(3, Refusal::QueueTimeout)]);
    stage.arrive_from(4, &[2]);
    assert_eq!(stage.take(), []);
}

#[test]
fn one_that_is_called_from_within_is_never_put_behind_another() {
    let mut stage = Stage::ready(calm(2));
    stage.arrive(100);
    stage.complete(100, p(1, 1));
    stage.arrive(1);
    stage.arrive(2);
    stage.forget();
    stage.arrive_from(3, &[1]);
    assert_eq!(stage.take(), [], "it could end up behind its own parent");
    stage.arrive(4);
    assert_eq!(stage.take(), [], "and nobody passes it by");
    stage.complete(2, p(2, 1));
    assert_eq!(
        stage.take(),
        [answered(2), assign(3, p(2, 1)), assign_behind(4, p(1, 1))],
        "once it has its place, others may lie behind"
    );
}

#[test]
fn a_call_from_another_pool_s_request_is_as_any_other() {
    let mut stage = running(no_prefetch(1), 1);
    stage.arrive_from(2, &[77]);
    assert_eq!((stage.take(), queued(&stage)), (vec![], 1), "its parent keeps no place here");
    stage.complete(1, p(1, 1));
    assert_eq!(stage.take(), [answered(1), assign(2, p(1, 1))]);
}

#[test]
fn a_worker_that_has_no_process_just_now_is_a_place_to_wait_for() {
    let mut stage = running(no_prefetch(2), 1);
    stage.crash(p(2, 1));
    stage.forget();
    stage.arrive_from(2, &[1]);
    assert_eq!(stage.take(), []);
    stage.become_ready(p(2, 2));
    assert_eq!(stage.take(), [assign(2, p(2, 2))]);
}

#[test]
fn a_worker_that_is_about_to_take_the_place_of_another_is_one_to_wait_for() {
    let mut stage = Stage::ready(no_prefetch(1));
    let own = stage.add_dedicated();
    stage.arrive_for(1, Target::Worker(WorkerId(own)));
    stage.complete_worker(1);
    stage.forget();
    stage.arrive_from(2, &[1]);
    assert_eq!(stage.take(), [], "the old one has not left, and the new one is not made yet");
    stage.leave(p(1, 1));
    stage.become_ready(p(3, 1));
    assert_eq!(stage.take(), [spawn(p(3, 1)), assign(2, p(3, 1))]);
}

#[test]
fn a_call_whose_worker_crashed_is_refused_only_if_it_would_close_the_circle() {
    let mut stage = running(no_prefetch(2), 1);
    stage.arrive_as(2, |spec| (spec.ancestors, spec.idempotent) = (ids(&[1]), true));
    stage.forget();
    stage.crash(p(2, 1));
    stage.become_ready(p(2, 2));
    assert_eq!(stage.take(), [spawn(p(2, 2)), assign_again(2, 2, 1, p(2, 2))]);
}

#[test]
fn a_call_between_attempts_whose_place_was_taken_ends_with_its_error() {
    let mut stage = running(no_prefetch(2), 1);
    stage.arrive_as(2, |spec| (spec.ancestors, spec.idempotent) = (ids(&[1]), true));
    stage.answer(2, 1, p(2, 1), Answer::Failed { retryable: true });
    stage.arrive(3);
    stage.arrive_from(4, &[3]);
    stage.forget();
    stage.advance(ms(50));
    assert_eq!(stage.take(), [answered(2)], "both places are kept by ones that wait");
}

/// The first crash spends the budget, and its worker is not made up for soon.
fn without_budget(size: u32) -> Settings {
    Settings { restart_max: 0, ..no_prefetch(size) }
}

#[test]
fn a_call_in_the_queue_is_told_when_the_last_place_for_it_is_gone_for_good() {
    let mut stage = running(without_budget(2), 2);
    stage.arrive_from(3, &[1]);
    stage.crash(p(2, 1));
    let deeds = stage.take();
    assert!(deeds.contains(&deadlock(3)), "{deeds:?}");
    assert_eq!(queued(&stage), 0);
}

#[test]
fn of_several_calls_that_lost_their_place_the_youngest_makes_way() {
    let mut stage = running(without_budget(3), 3);
    stage.arrive_from(4, &[1]);
    stage.arrive_from(5, &[2]);
    stage.forget();
    stage.exit(p(3, 1), ostler_core::Exit::Signal(9));
    stage.forget();
    stage.clear(p(3, 1));
    assert_eq!(stage.take(), [deadlock(5)]);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), assign(4, p(2, 1))], "the older one can go on");
}
