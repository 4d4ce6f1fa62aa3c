//! A database of PostgreSQL for one test.

#[path = "../../src/sql/rig.rs"]
mod rig;

pub use rig::TestDatabase;
