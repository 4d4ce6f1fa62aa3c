//! What the writer asks of a disk: to write rows, all or none of them. A disk knows no rules about
//! sessions.

use std::future::Future;
use std::sync::Arc;

use crate::content::Content;
use crate::error::SessionError;
use crate::kept::{Kept, Seen};
use crate::session::Program;

/// One row.
#[derive(Debug, Clone)]
pub(crate) enum Row {
    /// The session itself, without programs and saved state.
    Session(Arc<Kept>, Seen),
    /// The session and all that belongs to it.
    NoSession(u64),
    Program(u64, Arc<str>, Arc<Program>),
    NoProgram(u64, Arc<str>),
    /// By pool.
    Saved(u64, Arc<str>, Arc<Content>),
    NoSaved(u64, Arc<str>),
    /// When and where it was used last.
    Seen(u64, Seen),
}

impl Row {
    /// The session that it belongs to.
    pub fn number(&self) -> u64 {
        match self {
            Row::Session(kept, _) => kept.number,
            Row::NoSession(number)
            | Row::Program(number, ..)
            | Row::NoProgram(number, _)
            | Row::Saved(number, ..)
            | Row::NoSaved(number, _)
            | Row::Seen(number, _) => *number,
        }
    }
}

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub full: bool,
    /// It lies with these rows: others may be taken.
    pub of_rows: bool,
    /// The rows may be there all the same.
    pub doubtful: bool,
    pub reason: String,
}

impl From<&Refused> for SessionError {
    fn from(refused: &Refused) -> Self {
        let reason = refused.reason.clone();
        if refused.full {
            SessionError::StoreFull { reason }
        } else {
            SessionError::StoreUnavailable { reason }
        }
    }
}

pub(crate) trait Disk: Send + 'static {
    /// Returns when the rows will be there after whatever happens next.
    fn commit(&mut self, rows: &[Row]) -> impl Future<Output = Result<(), Refused>> + Send;

    fn close(self) -> impl Future<Output = ()> + Send;
}

/// For sessions that end with the server.
#[derive(Debug)]
pub(crate) struct NoDisk;

impl Disk for NoDisk {
    async fn commit(&mut self, _: &[Row]) -> Result<(), Refused> {
        Ok(())
    }

    async fn close(self) {}
}
