//! An owner with a long queue does not keep another one waiting for it.

use std::collections::VecDeque;

use ostler_core::{Answer, Command, ProcessId, RequestId, Settings};

use crate::support::*;

const A: u64 = 1;
const B: u64 = 2;
const HELD_BY_A: u64 = 1_000;
const FIRST_OF_B: u64 = 10_000;
const OF_B: u64 = 40;

/// Requests that have begun and are not answered, oldest first.
#[derive(Default)]
struct Running(VecDeque<(RequestId, u32, ProcessId)>);

impl Running {
    /// Takes in what the pool ordered; those that began, in their order.
    fn note(&mut self, deeds: Vec<Command>, stage: &Stage) -> Vec<u64> {
        let mut begun = Vec::new();
        for deed in deeds {
            let (request, process) = match deed {
                Command::Assign { request, process, prefetched: false, .. }
                | Command::Begin { request, process } => (request, process),
                _ => continue,
            };
            let (_, attempt) = stage.pool.request(request).expect("it just began");
            self.0.push_back((request, attempt, process));
            begun.push(request.0);
        }
        begun
    }

    fn answer_oldest(&mut self, stage: &mut Stage) {
        let (request, attempt, process) = self.0.pop_front().expect("a full pool runs something");
        stage.answer(request.0, attempt, process, Answer::Completed);
    }
}

/// How many of A's begin between B's arrival and the beginning of each of B's.
fn delays(settings: Settings) -> Vec<u64> {
    let mut stage = Stage::ready(Settings { queue_max: 2_000, ..settings });
    let mut running = Running::default();
    stage.arrive(1);
    running.note(stage.take(), &stage);
    running.answer_oldest(&mut stage);
    stage.forget();

    for id in 100..100 + HELD_BY_A {
        stage.arrive_as(id, |spec| spec.owner = A);
    }
    for id in FIRST_OF_B..FIRST_OF_B + OF_B {
        stage.arrive_as(id, |spec| spec.owner = B);
    }
    let before = running.note(stage.take(), &stage);
    assert!(before.iter().all(|id| *id < FIRST_OF_B), "A came first and filled the pool");

    let (mut of_a, mut delays) = (0, Vec::new());
    while (delays.len() as u64) < OF_B {
        running.answer_oldest(&mut stage);
        for begun in running.note(stage.take(), &stage) {
            if begun < FIRST_OF_B {
                of_a += 1;
            } else {
                assert_eq!(begun - FIRST_OF_B, delays.len() as u64, "in the order of arrival");
                delays.push(of_a);
            }
        }
    }
    delays
}

#[test]
fn the_kth_of_b_begins_after_at_most_k_and_the_capacity_of_a_s_thousand() {
    for (size, capacity) in [(1, 1), (2, 1), (8, 1), (1, 4), (3, 2)] {
        for prefetch in [0, 1] {
            let settings = Settings { capacity, prefetch, ..calm(size) };
            let places = u64::from(size * capacity);
            for (k, delay) in (1..).zip(delays(settings)) {
                assert!(
                    delay <= k + places,
                    "{size} x {capacity}, prefetch {prefetch}: the {k}-th of B after {delay} of A"
                );
            }
        }
    }
}

#[test]
fn a_third_owner_makes_each_turn_longer_by_one() {
    let mut stage = Stage::ready(Settings { prefetch: 0, ..calm(1) });
    stage.arrive_as(1, |spec| spec.owner = A);
    for (first, owner) in [(100, A), (200, B), (300, 3)] {
        for id in first..first + 3 {
            stage.arrive_as(id, |spec| spec.owner = owner);
        }
    }
    let mut running = Running::default();
    running.note(stage.take(), &stage);
    let mut order = Vec::new();
    for _ in 0..9 {
        running.answer_oldest(&mut stage);
        order.extend(running.note(stage.take(), &stage));
    }
    assert_eq!(order, [100, 200, 300, 101, 201, 301, 102, 202, 302]);
}

#[test]
fn owners_take_turns_within_a_priority_only() {
    let mut stage = Stage::ready(Settings { prefetch: 0, ..calm(1) });
    stage.arrive(1);
    for (id, owner, priority) in [(2, A, 1), (3, A, 1), (4, A, 1), (5, B, 0), (6, B, 1)] {
        stage.arrive_as(id, |spec| (spec.owner, spec.priority) = (owner, priority));
    }
    let mut running = Running::default();
    running.note(stage.take(), &stage);
    let mut order = Vec::new();
    for _ in 0..5 {
        running.answer_oldest(&mut stage);
        order.extend(running.note(stage.take(), &stage));
    }
    assert_eq!(order, [2, 6, 3, 4, 5]);
}
