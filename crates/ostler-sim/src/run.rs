//! Runs worlds and tells how they went. A panic inside the core is a finding like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::trace::Tracing;
use crate::violation::Violation;
use crate::world::{Tally, World};

/// Lines of the story that are shown with a failure.
const TAIL: usize = 60;

#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub events: u64,
    pub violation: Violation,
    pub tail: Vec<String>,
}

/// One world, to its end or to the first broken promise. A failing one is lived through a second
/// time, to tell its story.
pub fn run(seed: u64, events: u64, tracing: Tracing) -> Result<Tally, Box<Failure>> {
    let mut world = World::new(seed, tracing);
    match live(&mut world, events) {
        Ok(()) => Ok(world.tally()),
        Err(_) if tracing == Tracing::Off => {
            let failure = run(seed, events, Tracing::Tail(TAIL));
            assert!(failure.is_err(), "seed {seed} fails in one run and not in the next");
            failure
        }
        Err(violation) => Err(Box::new(Failure {
            seed,
            events: world.tally().events,
            violation,
            tail: world.trace.tail(),
        })),
    }
}

fn live(world: &mut World, events: u64) -> Result<(), Violation> {
    match catch_unwind(AssertUnwindSafe(|| world.run(events))) {
        Ok(verdict) => verdict,
        Err(panic) => Err(Violation { checker: "the core does not panic", text: message(&*panic) }),
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
