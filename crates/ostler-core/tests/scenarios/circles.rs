//! Calls that wait for one worker or one leased place, and circles that go through them: whose
//! place counts, whose does not, and who will go on after all.

use ostler_core::{LeaseId, Target, WorkerId};

use crate::nesting::{deadlock, no_prefetch, running};
use crate::support::*;

#[test]
fn a_call_to_the_worker_that_its_parent_is_on_is_refused() {
    let mut stage = running(no_prefetch(2), 1);
    stage.arrive_as(2, |spec| {
        (spec.ancestors, spec.target) = (ids(&[1]), Target::Worker(WorkerId(1)));
    });
    assert_eq!(stage.take(), [deadlock(2)], "that another worker is free does not help");
}

#[test]
fn a_call_to_another_worker_waits_for_it() {
    let mut stage = running(no_prefetch(2), 2);
    stage.arrive_as(3, |spec| {
        (spec.ancestors, spec.target) = (ids(&[1]), Target::Worker(WorkerId(2)));
    });
    assert_eq!(stage.take(), []);
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), assign(3, p(2, 1))]);
}

#[test]
fn two_that_call_each_other_s_worker_are_not_left_to_wait_for_ever() {
    let mut stage = running(no_prefetch(2), 2);
    let to = |stage: &mut Stage, id, parent, worker| {
        stage.arrive_as(id, |spec| {
            (spec.ancestors, spec.target) = (ids(&[parent]), Target::Worker(WorkerId(worker)));
        });
    };
    to(&mut stage, 3, 1, 2);
    assert_eq!(stage.take(), []);
    to(&mut stage, 4, 2, 1);
    assert_eq!(stage.take(), [deadlock(4)]);
}

#[test]
fn a_call_on_the_leased_place_of_its_parent_is_refused() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.ask_lease(1, 2);
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    stage.forget();
    let on_place = |stage: &mut Stage, id, place| {
        stage.arrive_as(id, |spec| {
            (spec.ancestors, spec.target) = (ids(&[1]), Target::Lease(LeaseId(1), place));
        });
    };
    on_place(&mut stage, 2, 0);
    assert_eq!(stage.take(), [deadlock(2)]);
    on_place(&mut stage, 3, 1);
    assert_eq!(stage.take(), [assign(3, p(2, 1))], "the other place is free");
}

#[test]
fn two_that_call_each_other_s_leased_place_are_not_left_to_wait_for_ever() {
    let mut stage = Stage::ready(no_prefetch(2));
    stage.ask_lease(1, 2);
    for (id, place) in [(1, 0), (2, 1)] {
        stage.arrive_for(id, Target::Lease(LeaseId(1), place));
    }
    stage.forget();
    let to = |stage: &mut Stage, id, parent, place| {
        stage.arrive_as(id, |spec| {
            (spec.ancestors, spec.target) = (ids(&[parent]), Target::Lease(LeaseId(1), place));
        });
    };
    to(&mut stage, 3, 1, 1);
    assert_eq!(stage.take(), []);
    to(&mut stage, 4, 2, 0);
    assert_eq!(stage.take(), [deadlock(4)]);
}

#[test]
fn a_call_to_one_who_waits_for_a_stranger_s_place_waits_too() {
    let mut stage = running(no_prefetch(2), 2);
    let own = stage.add_dedicated();
    stage.arrive_for(3, Target::Worker(WorkerId(own)));
    stage.arrive_from(4, &[1]);
    stage.forget();
    stage.arrive_as(5, |spec| {
        (spec.ancestors, spec.target) = (ids(&[3]), Target::Worker(WorkerId(1)));
    });
    assert_eq!(stage.take(), [], "the stranger ends, then 4, then 1, then it is its turn");
    stage.complete(2, p(2, 1));
    stage.complete(4, p(2, 1));
    stage.complete(1, p(1, 1));
    let turns = [answered(2), assign(4, p(2, 1)), answered(4), answered(1), assign(5, p(1, 1))];
    assert_eq!(stage.take(), turns);
}

#[test]
fn a_parent_on_a_leased_place_keeps_it() {
    let mut stage = Stage::ready(no_prefetch(1));
    stage.ask_lease(1, 1);
    stage.arrive_for(1, Target::Lease(LeaseId(1), 0));
    stage.forget();
    stage.arrive_from(2, &[1]);
    assert_eq!(stage.take(), [deadlock(2)]);
}

#[test]
fn a_parent_on_a_worker_of_its_own_takes_no_place_of_the_pool() {
    let mut stage = Stage::ready(no_prefetch(1));
    let own = stage.add_dedicated();
    stage.arrive_for(1, Target::Worker(WorkerId(own)));
    stage.arrive(2);
    stage.forget();
    stage.arrive_from(3, &[1]);
    assert_eq!(stage.take(), [], "a stranger has the place, and gives it back");
    stage.complete(2, p(1, 1));
    assert_eq!(stage.take(), [answered(2), assign(3, p(1, 1))]);
}

#[test]
fn a_parent_on_a_retiring_worker_takes_no_place_of_those_that_stay() {
    let mut stage = running(no_prefetch(1), 1);
    stage.recycle(1);
    stage.become_ready(p(2, 1));
    stage.arrive(2);
    assert!(stage.view(1).retiring);
    stage.forget();
    stage.arrive_from(3, &[1]);
    assert_eq!(stage.take(), [], "a stranger has the successor's place");
    stage.complete(2, p(2, 1));
    assert_eq!(stage.take(), [answered(2), assign(3, p(2, 1))]);
}

#[test]
fn an_idle_worker_of_somebody_s_own_is_no_place_for_others() {
    let mut stage = running(no_prefetch(1), 1);
    stage.add_dedicated();
    stage.arrive_from(2, &[1]);
    assert_eq!(stage.take(), [deadlock(2)]);
}

#[test]
fn a_retiring_worker_is_no_place_for_others_whoever_it_works_for() {
    let mut stage = running(no_prefetch(1), 1);
    stage.recycle(1);
    stage.become_ready(p(2, 1));
    stage.arrive(2);
    stage.forget();
    stage.arrive_from(3, &[2]);
    assert_eq!(stage.take(), [deadlock(3)], "1 ends, but its worker takes nobody any more");
}

#[test]
fn a_call_waits_for_one_whose_own_call_waits_for_a_stranger() {
    let mut stage = running(no_prefetch(2), 2);
    let own = stage.add_dedicated();
    let to_own = Target::Worker(WorkerId(own));
    stage.arrive_for(3, to_own);
    stage.arrive_as(4, |spec| (spec.ancestors, spec.target) = (ids(&[1]), to_own));
    stage.forget();
    stage.arrive_from(5, &[2]);
    assert_eq!(stage.take(), [], "the stranger ends, then 4, then 1, then it is its turn");
    stage.complete(3, p(own, 1));
    stage.complete(4, p(own, 1));
    stage.complete(1, p(1, 1));
    let turns = [answered(3), assign(4, p(own, 1)), answered(4), answered(1), assign(5, p(1, 1))];
    assert_eq!(stage.take(), turns);
}
