//! The place where sessions and the ledger are kept, both together: held by one server at a time,
//! looked at and copied by anybody.

mod backup;
mod check;

use std::path::Path;

use crate::clock::{Clock, MachineClock};
use crate::error::OpenError;
use crate::ledger::sql::Sql;
use crate::ledger::{Ledger, LedgerSettings, Place};
use crate::sql::{Door, ReadDoor, SqlDisk};
use crate::{SessionSettings, Sessions};

pub use backup::BackupError;
pub(crate) use backup::back_up;
pub use check::{StoreReport, check};

/// A place that is this server's, until this and all that was opened from it is closed or dropped.
#[derive(Debug)]
pub struct Store {
    /// None: memory.
    door: Option<Door>,
}

impl Store {
    /// Makes what is not there, and brings what is there to this version.
    ///
    /// # Errors
    /// If another server has it, it is of a newer version, it is damaged, or the place refuses.
    pub async fn open(place: &Place) -> Result<Store, OpenError> {
        let door = match place {
            Place::Memory => None,
            Place::Sqlite(path) => Some(Door::to_file(path).await?),
            Place::Postgres(url) => Some(Door::to_database(url).await?),
        };
        Ok(Store { door })
    }

    /// Once.
    pub async fn sessions(&self, settings: SessionSettings) -> Result<Sessions, OpenError> {
        self.sessions_by(settings, MachineClock::new()).await
    }

    pub(crate) async fn sessions_by(
        &self,
        settings: SessionSettings,
        clock: impl Clock,
    ) -> Result<Sessions, OpenError> {
        match &self.door {
            None => Ok(Sessions::in_memory(settings)),
            Some(door) => Sessions::on(SqlDisk::open(door.clone()).await?, settings, clock).await,
        }
    }

    /// Once. What servers before this one held is settled first.
    pub async fn ledger(&self, settings: LedgerSettings) -> Result<Ledger, OpenError> {
        self.ledger_by(settings, MachineClock::new()).await
    }

    pub(crate) async fn ledger_by(
        &self,
        settings: LedgerSettings,
        clock: impl Clock,
    ) -> Result<Ledger, OpenError> {
        let Some(door) = &self.door else { return Ok(Ledger::in_memory(settings)) };
        let backend = Box::new(Sql::open(door.clone()).await?);
        let started = Ledger::start(backend, settings, clock).await;
        started.map_err(|error| door.refusing(error.to_string()))
    }
}

/// A copy of the store at this place, which may be in use. SQLite only.
///
/// # Errors
/// If the target exists or cannot be written, or the store cannot be read.
pub async fn backup(place: &Place, to: &Path) -> Result<(), BackupError> {
    let door = match place {
        Place::Memory => return Err(BackupError::Memory),
        Place::Sqlite(path) => ReadDoor::to_file(path),
        Place::Postgres(url) => return Err(BackupError::Database(shown(url))),
    };
    back_up(&door, to).await
}

fn shown(url: &str) -> String {
    ReadDoor::to_database(url).map_or_else(|error| error.to_string(), |door| door.name())
}
