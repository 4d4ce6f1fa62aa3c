//! What must be true after any crash: jobs and their attempts, schedules, the status of workers,
//! the audit trail of both, and what was answered under which idempotency key.
//!
//! One [`Ledger`] is a handle to one owner, the clerk: it takes operations as they come, lets each
//! decide on rows inside one transaction, commits many at once, and only then answers and tells
//! those who watch. So what was acknowledged is stored, and what was refused changed nothing. The
//! rules are written once, over rows; where rows are kept (memory, SQLite, PostgreSQL) is a
//! `Backend` that knows no rules.
//!
//! ```text
//!  submit, claim, finish, cancel … ──▶ clerk ──decide──▶ rows of one transaction ──commit──▶ backend
//!                                        └──after the commit──▶ answers, notices
//!  job, list, transitions, events … ───────────read──────────────────────────────────▶ backend
//! ```
//!
//! The ledger knows pools and workers by name only, and nothing of processes or HTTP.

pub mod audit;
pub(crate) mod backend;
mod clerk;
mod cron;
mod decide;
mod doubt;
mod draft;
mod error;
mod handle;
mod id;
pub mod job;
pub mod key;
mod memory;
mod notice;
mod overlay;
mod ready;
pub mod row;
pub mod schedule;
mod settings;
mod shown;
mod spec;
pub(crate) mod sql;
#[cfg(test)]
mod suite;
mod verify;
pub mod worker;

pub use error::LedgerError;
pub use handle::Ledger;
pub use id::{JobId, ScheduleId};
pub use notice::Notice;
pub use settings::{LedgerSettings, Place};
