//! What outlives a server: sessions, and the [`ledger`] of jobs and workers. Both are in one place, a
//! file of SQLite or a database of PostgreSQL, or in memory.
//!
//! Of sessions, memory holds every one that lives, so reading one never touches the disk. All changes go
//! through one owner, the writer: it lets each operation decide on a draft, commits the drafts of
//! many at once, and only then shows them in memory and answers. So what the disk refused was never
//! seen by anybody, and what was acknowledged is there after the server was killed. Only when a
//! session was last used, and by which worker, is written some seconds late.
//!
//! ```text
//!  get, peek, list, enter ──▶ live (one lock) ◀──3 apply── writer ──4 tell──▶ watchers
//!  create, patch, put … ──1 decide on a draft──▶ writer ──2 commit──▶ disk
//! ```
//!
//! The store knows sessions by id and by number and knows nothing of pools, workers or HTTP.

mod checksum;
mod clock;
mod content;
mod decide;
mod disk;
mod draft;
mod error;
mod expiry;
mod kept;
pub mod ledger;
mod live;
mod metadata;
mod name;
mod notice;
mod session;
mod sessions;
mod settings;
mod sql;
mod store;
mod writer;

pub use content::{Content, Saved};
pub use error::{OpenError, SessionError};
pub use notice::SessionNotice;
pub use session::{Entered, NewSession, Patch, Program, ProgramInfo, Session, SessionStats};
pub use sessions::Sessions;
pub use settings::SessionSettings;
pub use store::{BackupError, Store, StoreReport, backup, check};

#[cfg(test)]
mod tests;
