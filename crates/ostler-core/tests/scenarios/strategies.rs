//! Which of several open workers is given the next request.

use std::sync::Arc;

use ostler_core::{Candidate, Command, Rank, Ranking, Settings, Strategy};

use crate::support::*;

fn choosing(strategy: Strategy, size: u32, capacity: u32) -> Stage {
    Stage::ready(Settings { strategy, capacity, prefetch: 0, ..calm(size) })
}

/// The workers that were given something since the last look, in that order.
fn chosen(stage: &mut Stage) -> Vec<u64> {
    let deeds = stage.take().into_iter();
    let assigned = deeds.filter_map(|deed| match deed {
        Command::Assign { process, .. } => Some(process.worker.0),
        _ => None,
    });
    assigned.collect()
}

/// Lets requests arrive one after another, a millisecond apart.
fn arrive_apart(stage: &mut Stage, ids: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    for id in ids {
        stage.advance(ms(1));
        stage.arrive(id);
    }
    chosen(stage)
}

/// One request at a time, so that every worker is open at each choice.
fn one_at_a_time(stage: &mut Stage, ids: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    let mut order = Vec::new();
    for id in ids {
        let worker = arrive_apart(stage, id..=id)[0];
        stage.advance(ms(1));
        stage.complete(id, p(worker, 1));
        order.push(worker);
    }
    order
}

#[test]
fn least_loaded_is_the_default_and_keeps_to_the_warm_one() {
    assert_eq!(Settings::of_size(1).strategy, Strategy::LeastLoaded);
    let mut stage = choosing(Strategy::LeastLoaded, 3, 1);
    assert_eq!(one_at_a_time(&mut stage, 1..=4), [1, 1, 1, 1]);
}

#[test]
fn least_loaded_fills_the_workers_evenly() {
    let mut stage = choosing(Strategy::LeastLoaded, 3, 2);
    let order = arrive_apart(&mut stage, 1..=6);
    assert_eq!(order, [1, 2, 3, 3, 2, 1], "among equals the one used last");
}

#[test]
fn least_loaded_counts_a_leased_place_as_load() {
    let mut stage = choosing(Strategy::LeastLoaded, 2, 2);
    stage.ask_lease(1, 1);
    stage.forget();
    assert_eq!(arrive_apart(&mut stage, 1..=1), [2]);
}

#[test]
fn round_robin_gives_each_worker_its_turn() {
    let mut stage = choosing(Strategy::RoundRobin, 3, 1);
    assert_eq!(one_at_a_time(&mut stage, 1..=6), [1, 2, 3, 1, 2, 3]);
}

#[test]
fn round_robin_gives_each_worker_one_before_any_has_two() {
    let mut stage = choosing(Strategy::RoundRobin, 3, 2);
    assert_eq!(arrive_apart(&mut stage, 1..=6), [1, 2, 3, 1, 2, 3]);
}

#[test]
fn round_robin_keeps_its_order_whoever_is_done_first() {
    let mut stage = choosing(Strategy::RoundRobin, 3, 2);
    arrive_apart(&mut stage, 1..=6);
    for (id, worker) in [(3, 3), (2, 2), (1, 1)] {
        stage.advance(ms(1));
        stage.complete(id, p(worker, 1));
    }
    stage.forget();
    assert_eq!(arrive_apart(&mut stage, 7..=9), [1, 2, 3]);
}

#[test]
fn round_robin_passes_over_who_is_full_and_comes_back_to_it() {
    let mut stage = choosing(Strategy::RoundRobin, 3, 1);
    one_at_a_time(&mut stage, 1..=3);
    assert_eq!(arrive_apart(&mut stage, 4..=4), [1]);
    assert_eq!(one_at_a_time(&mut stage, 5..=7), [2, 3, 2]);
    stage.complete(4, p(1, 1));
    assert_eq!(one_at_a_time(&mut stage, 8..=9), [1, 3], "its turn was longest ago");
}

#[test]
fn lru_chooses_the_one_that_has_been_idle_longest() {
    let mut stage = choosing(Strategy::Lru, 3, 1);
    assert_eq!(one_at_a_time(&mut stage, 1..=4), [1, 2, 3, 1]);
}

#[test]
fn lru_counts_from_the_end_of_the_last_request() {
    let mut stage = choosing(Strategy::Lru, 3, 1);
    assert_eq!(arrive_apart(&mut stage, 1..=3), [1, 2, 3]);
    for (id, worker) in [(2, 2), (3, 3), (1, 1)] {
        stage.advance(ms(1));
        stage.complete(id, p(worker, 1));
    }
    stage.forget();
    assert_eq!(arrive_apart(&mut stage, 4..=6), [2, 3, 1]);
}

#[test]
fn lru_with_several_places_goes_round_as_well() {
    let mut stage = choosing(Strategy::Lru, 3, 2);
    assert_eq!(arrive_apart(&mut stage, 1..=6), [1, 2, 3, 1, 2, 3]);
}

#[test]
fn of_equals_the_worker_that_was_made_first_is_chosen() {
    for strategy in [Strategy::LeastLoaded, Strategy::RoundRobin, Strategy::Lru] {
        let mut stage = choosing(strategy.clone(), 3, 1);
        for id in 1..=3 {
            stage.arrive(id);
        }
        assert_eq!(chosen(&mut stage), [1, 2, 3], "{strategy:?}");
    }
}

/// Fills one worker before the next is touched, the last made first.
struct FullestLast;

impl Ranking for FullestLast {
    fn rank(&self, worker: &Candidate) -> Rank {
        Rank(u64::from(worker.capacity - worker.load), u64::MAX - worker.id.0)
    }
}

#[test]
fn a_strategy_of_one_s_own_decides() {
    let mut stage = choosing(Strategy::Own(Arc::new(FullestLast)), 3, 2);
    assert_eq!(arrive_apart(&mut stage, 1..=6), [3, 3, 2, 2, 1, 1]);
    stage.complete(4, p(2, 1));
    stage.complete(1, p(3, 1));
    stage.complete(2, p(3, 1));
    stage.forget();
    assert_eq!(arrive_apart(&mut stage, 7..=9), [2, 3, 3], "it sees what changed");
}

/// Has no opinion.
struct Indifferent;

impl Ranking for Indifferent {
    fn rank(&self, _: &Candidate) -> Rank {
        Rank(0, 0)
    }
}

#[test]
fn a_strategy_without_an_opinion_gets_the_worker_that_was_made_first() {
    let mut stage = choosing(Strategy::Own(Arc::new(Indifferent)), 2, 2);
    assert_eq!(arrive_apart(&mut stage, 1..=4), [1, 1, 2, 2]);
}

/// Who has answered least.
struct Fresh;

impl Ranking for Fresh {
    fn rank(&self, worker: &Candidate) -> Rank {
        Rank(worker.answered, worker.last_turn)
    }
}

#[test]
fn a_strategy_of_one_s_own_sees_what_a_worker_has_answered() {
    let mut stage = choosing(Strategy::Own(Arc::new(Fresh)), 2, 1);
    assert_eq!(one_at_a_time(&mut stage, 1..=4), [1, 2, 1, 2]);
}

#[test]
fn no_strategy_chooses_who_is_not_in_service() {
    let own: Arc<dyn Ranking> = Arc::new(FullestLast);
    for strategy in
        [Strategy::LeastLoaded, Strategy::RoundRobin, Strategy::Lru, Strategy::Own(own.clone())]
    {
        let mut stage = choosing(strategy.clone(), 5, 2);
        stage.pause(1);
        stage.taint(p(2, 1));
        stage.exit(p(3, 1), ostler_core::Exit::Code(1));
        stage.complete_worker(4);
        stage.forget();
        let order = arrive_apart(&mut stage, 1..=3);
        assert_eq!(order, [5, 5], "{strategy:?}: two places, and the third waits");
    }
}

#[test]
fn places_of_a_lease_go_by_the_strategy_too() {
    let mut stage = choosing(Strategy::RoundRobin, 3, 1);
    one_at_a_time(&mut stage, 1..=2);
    stage.forget();
    stage.ask_lease(1, 2);
    assert_eq!(stage.take(), [grant(1, &[p(3, 1), p(1, 1)])]);
}
