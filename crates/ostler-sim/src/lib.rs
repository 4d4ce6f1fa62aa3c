//! A simulated world of lying workers, vanishing callers and failing stores, to judge the core by.
//!
//! A seed is a world: its settings, its load, its faults, and every coincidence in it. The world
//! plays the shell's part against the real core on a clock of its own, keeps a ledger of what
//! truly happened, and judges every command by that ledger alone. Nothing here is used by the
//! product; the core does not know that this crate exists.

mod agenda;
pub mod bench;
mod ledger;
mod own;
mod prng;
mod profile;
pub mod run;
mod stateful;
mod trace;
mod violation;
mod world;

pub use profile::Profile;
pub use stateful::{Deed, Saving, Stateful};
pub use trace::{Trace, Tracing};
pub use violation::{Verdict, Violation};
pub use world::{Tally, World};
