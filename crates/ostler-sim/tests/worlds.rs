//! Worlds by the hundred. `OSTLER_SIM_EVENTS` sets how many events the long test lives through,
//! `OSTLER_SIM_SEED` where it begins.

use ostler_core::{Admission, Affinity, CapacityFrom, Evict, Strategy};
use ostler_sim::run::{Failure, run};
use ostler_sim::{Deed, Profile, Tracing};

const EVENTS: u64 = 10_000_000;
const EVENTS_PER_WORLD: u64 = 8_000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| {
        value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}"))
    })
}

fn story(failure: &Failure) -> String {
    format!(
        "{}\nseed {} after {} events: {}\nagain: cargo run --release -p ostler-sim -- run --seed {} --events {EVENTS_PER_WORLD}",
        failure.tail.join("\n"),
        failure.seed,
        failure.events,
        failure.violation,
        failure.seed
    )
}

#[test]
fn no_promise_is_broken_in_any_world() {
    let wanted = setting("OSTLER_SIM_EVENTS", EVENTS);
    let mut seed = setting("OSTLER_SIM_SEED", 0);
    let mut events = 0;
    while events < wanted {
        match run(seed, EVENTS_PER_WORLD, Tracing::Off) {
            Ok(tally) => events += tally.events,
            Err(failure) => panic!("{}", story(&failure)),
        }
        seed += 1;
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in 0..6 {
        let one = run(seed, 3_000, Tracing::Hash).map_err(|failure| story(&failure));
        let other = run(seed, 3_000, Tracing::Hash).map_err(|failure| story(&failure));
        assert_eq!(one, other, "seed {seed}");
    }
}

#[test]
fn another_seed_tells_another_story() {
    let digest = |seed| run(seed, 1_000, Tracing::Hash).map(|tally| tally.digest).ok();
    assert_ne!(digest(1), digest(2));
}

#[test]
fn the_worlds_differ_in_what_they_ask() {
    let profiles: Vec<Profile> = (0..200).map(Profile::draw).collect();
    let some = |holds: fn(&Profile) -> bool| profiles.iter().any(holds);
    assert!(some(|world| world.settings.max == 1) && some(|world| world.settings.max > 10));
    assert!(some(|world| world.settings.capacity > 1) && some(|world| world.settings.prefetch > 1));
    assert!(some(|world| world.settings.queue_max == 0));
    assert!(some(|world| world.settings.heartbeat.is_none()));
    assert!(some(|world| world.faults.mischief.is_empty()), "some worlds are calm");
    assert!(some(|world| world.faults.mischief.len() > 5), "some are not");
    assert!(some(|world| world.settings.checkup.is_none()));
    assert!(some(|world| world.settings.heartbeat.is_some_and(|beat| beat.independent)));
    for strategy in [Strategy::LeastLoaded, Strategy::RoundRobin, Strategy::Lru] {
        assert!(profiles.iter().any(|world| world.settings.strategy == strategy), "{strategy:?}");
    }
    assert!(some(|world| matches!(world.settings.strategy, Strategy::Own(_))));
    for capacity in [CapacityFrom::Pool, CapacityFrom::Worker, CapacityFrom::Min] {
        let same = |world: &Profile| world.settings.capacity_from == capacity;
        assert!(profiles.iter().any(same), "{capacity:?}");
    }
    assert!(some(|world| world.settings.admission == Admission::Deadline));
    assert!(some(|world| world.settings.quarantine.is_zero()));
    assert!(some(|world| world.load.nested > 0.0) && some(|world| world.faults.poison > 0.0));
    assert!(some(|world| world.faults.falls_unwell > 0.0 && world.settings.checkup.is_some()));
    assert!(some(|world| world.store.doubts > 0.0) && some(|world| world.store.refuses > 0.0));
}

#[test]
fn the_worlds_differ_in_their_sessions_keys_and_sizes() {
    let profiles: Vec<Profile> = (0..400).map(Profile::draw).collect();
    let some = |holds: fn(&Profile) -> bool| profiles.iter().any(holds);
    assert!(some(|world| world.state.sessions == 0 && world.state.deeds.is_empty()));
    for affinity in [Affinity::Hint, Affinity::StrictQueue, Affinity::StrictFailFast] {
        let has = |world: &Profile| world.state.affinities.contains(&affinity);
        assert!(
            profiles.iter().any(|world| world.state.bonded > 0.0 && has(world)),
            "{affinity:?}"
        );
    }
    assert!(some(|world| world.state.hooks == 0.0) && some(|world| world.state.hooks == 1.0));
    assert!(some(|world| world.state.saving.never_answers > 0.0 && world.state.bonded > 0.0));
    for evict in [Evict::Lru, Evict::Oldest, Evict::LeastUsed] {
        let same = |world: &Profile| world.settings.keyed.is_some_and(|keyed| keyed.evict == evict);
        assert!(profiles.iter().any(same), "{evict:?}");
    }
    assert!(some(|world| world.state.keys > world.settings.max));
    assert!(some(|world| world.settings.min == 0) && some(|world| world.settings.min > 1));
    assert!(some(|world| world.settings.ttl.is_some() && world.settings.max_requests.is_some()));
    assert!(some(|world| world.settings.max_memory_hard.is_some()));
    assert!(some(|world| world.settings.retire_max == 2));
    assert!(some(
        |world| world.state.deeds.contains(&Deed::Reload) && world.state.bad_reloads > 0.5
    ));
}
