//! How much one process is given at a time, and whose word counts.

use ostler_core::{CapacityFrom, Event, Occupancy, Ready, Settings};

use crate::support::*;

fn with_capacity(capacity: u32, capacity_from: CapacityFrom, size: u32) -> Settings {
    Settings { capacity, capacity_from, prefetch: 0, ..calm(size) }
}

#[test]
fn the_word_that_counts_is_the_setting_s() {
    use CapacityFrom::{Min, Pool, Worker};
    assert_eq!(Settings::of_size(1).capacity_from, Min);
    let table = [
        (Pool, 2, None, 2),
        (Pool, 2, Some(4), 2),
        (Pool, 4, Some(2), 4),
        (Pool, 2, Some(0), 2),
        (Worker, 2, None, 2),
        (Worker, 2, Some(4), 4),
        (Worker, 4, Some(2), 2),
        (Worker, 2, Some(0), 1),
        (Min, 2, None, 2),
        (Min, 2, Some(4), 2),
        (Min, 4, Some(2), 2),
        (Min, 2, Some(0), 1),
        (Pool, 0, None, 1),
    ];
    for (whose, pool, says, expected) in table {
        let mut stage = Stage::started(with_capacity(pool, whose, 1));
        stage.become_ready_for(says, p(1, 1));
        stage.forget();
        assert_eq!(stage.view(1).capacity, expected, "{whose:?}: {pool}, {says:?}");
        for id in 0..6 {
            stage.arrive(id);
        }
        assert_eq!(stage.take().len() as u32, expected, "{whose:?}: {pool}, {says:?}");
    }
}

#[test]
fn processes_of_one_pool_may_differ() {
    let mut stage = Stage::started(with_capacity(1, CapacityFrom::Worker, 2));
    stage.become_ready_for(Some(1), p(1, 1));
    stage.become_ready_for(Some(3), p(2, 1));
    stage.forget();
    for id in 1..=5 {
        stage.arrive(id);
    }
    let loads = [1, 2].map(|worker| stage.view(worker).load);
    assert_eq!((loads, stage.pool.view(stage.now).queued), ([1, 3], 1));
}

#[test]
fn the_next_incarnation_has_its_own_word() {
    let mut stage = Stage::started(with_capacity(1, CapacityFrom::Worker, 1));
    stage.become_ready_for(Some(3), p(1, 1));
    stage.crash(p(1, 1));
    stage.become_ready_for(None, p(1, 2));
    assert_eq!(stage.view(1).capacity, 1, "the last one's word is not this one's");
}

#[test]
fn the_pool_knows_how_full_it_is() {
    let mut stage = Stage::started(with_capacity(2, CapacityFrom::Min, 2));
    let fill = |stage: &Stage| {
        let view = stage.pool.view(stage.now);
        (view.capacity, view.running, view.occupancy)
    };
    assert_eq!(fill(&stage), (0, 0, Occupancy::Idle), "nobody serves yet");
    stage.become_ready(p(1, 1));
    assert_eq!(fill(&stage), (2, 0, Occupancy::Active));
    stage.arrive(1);
    stage.arrive(2);
    assert_eq!(fill(&stage), (2, 2, Occupancy::AtCapacity));
    stage.become_ready(p(2, 1));
    assert_eq!(fill(&stage), (4, 2, Occupancy::Active));
    stage.arrive(3);
    stage.ask_lease(1, 1);
    assert_eq!(fill(&stage), (4, 4, Occupancy::AtCapacity), "a leased place is in use");
    stage.exit(p(2, 1), ostler_core::Exit::Code(1));
    assert_eq!(fill(&stage), (2, 2, Occupancy::AtCapacity));
}

#[test]
fn what_lies_behind_others_does_not_count_as_a_place_in_use() {
    let mut stage = Stage::ready(calm(1));
    stage.arrive(1);
    stage.complete(1, p(1, 1));
    stage.arrive(2);
    stage.arrive(3);
    assert_eq!(stage.view(1).load, 2);
    let view = stage.pool.view(stage.now);
    assert_eq!((view.capacity, view.running), (1, 1));
}

#[test]
fn a_dedicated_worker_is_no_part_of_the_pool_s_capacity() {
    let mut stage = Stage::ready(calm(1));
    stage.add_dedicated();
    assert_eq!(stage.pool.view(stage.now).capacity, 1);
}

#[test]
fn processes_that_boast_do_not_break_the_sums() {
    let mut stage = Stage::started(with_capacity(1, CapacityFrom::Worker, 3));
    for worker in 1..=3 {
        stage.become_ready_for(Some(u32::MAX), p(worker, 1));
    }
    let view = stage.pool.view(stage.now);
    assert_eq!((view.running, view.occupancy), (0, Occupancy::Active));
    stage.arrive(1);
    stage.arrive_from(2, &[1]);
    assert_eq!(stage.pool.view(stage.now).running, 2);
}

#[test]
fn a_late_word_on_capacity_changes_nothing() {
    let mut stage = Stage::started(with_capacity(2, CapacityFrom::Worker, 1));
    stage.become_ready_for(Some(2), p(1, 1));
    stage.feed(Event::ProcessReady {
        process: p(1, 1),
        ready: Ready { capacity: Some(5), ..READY },
    });
    assert_eq!((stage.view(1).capacity, stage.stale()), (2, 1));
}
