//! Databases: a file of SQLite, or a server of PostgreSQL. Both hold the same tables, and nearly every
//! statement is written once for both.
//!
//! ```text
//!  ledger ──┐                  ┌── file (its lock, its versions) ──┐
//!           ├── door (which?) ─┤                                   ├── link: statements, rows
//!  sessions ┘                  └── database (its lock, …) ─────────┘
//! ```
//!
//! Nothing here knows what a row means.

mod database;
mod door;
mod file;
mod link;
mod lock;
mod place;
#[cfg(test)]
pub(crate) mod rig;
mod schema;
mod sessions;
mod table;
mod trouble;

pub(crate) use door::{Door, Part, ReadDoor};
pub(crate) use link::{Args, Cells, Dialect, Link, Record, Sink};
pub(crate) use sessions::{SqlDisk, check_sessions};
pub(crate) use table::{Again, Stored, Table, Texts, checked};
pub(crate) use trouble::{Kind, Trouble};
