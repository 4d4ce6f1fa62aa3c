//! The way to a database, whichever it is: connections for the one who writes and for those who only
//! read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::database::{Address, Database};
use super::file::{StoreFile, connect_reader, open_error};
use super::link::Link;
use super::schema;
use super::trouble::Trouble;
use crate::error::OpenError;

/// Who writes. Each has a connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Sessions,
    Ledger,
}

/// Held by whoever writes; the database is this server's until the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) enum Door {
    File(Arc<StoreFile>),
    Database(Arc<Database>),
}

impl Door {
    pub async fn to_file(path: &Path) -> Result<Door, OpenError> {
        Ok(Door::File(Arc::new(StoreFile::open(path).await?)))
    }

    pub async fn to_database(url: &str) -> Result<Door, OpenError> {
        Ok(Door::Database(Arc::new(Database::open(url).await?)))
    }

    /// What to call it.
    pub fn name(&self) -> String {
        match self {
            Door::File(file) => file.path().display().to_string(),
            Door::Database(database) => database.name().to_owned(),
        }
    }

    /// For the first time: nobody else may have this part.
    pub async fn open(&self, part: Part) -> Result<Link, OpenError> {
        match self {
            Door::File(file) if !file.hand_out(part) => Err(file.locked()),
            Door::File(file) => file.connect().await.map_err(|trouble| self.refused(&trouble)),
            Door::Database(database) => database.enter(part).await,
        }
    }

    /// What could not be read while it was opened.
    pub fn refused(&self, trouble: &Trouble) -> OpenError {
        self.for_readers().refused(trouble)
    }

    /// For a reason that was said.
    pub fn refusing(&self, reason: String) -> OpenError {
        match self {
            Door::File(file) => OpenError::Refused { path: file.path().to_owned(), reason },
            Door::Database(database) => {
                OpenError::Unreachable { database: database.name().to_owned(), reason }
            }
        }
    }

    /// Again, after a connection was lost.
    pub async fn connect(&self, part: Part) -> Result<Link, Trouble> {
        match self {
            Door::File(file) => file.connect().await,
            Door::Database(database) => database.connect(part).await,
        }
    }

    /// Until it is dropped nobody else in this server begins to write.
    pub async fn turn(&self) -> Option<OwnedMutexGuard<()>> {
        match self {
            Door::File(file) => Some(Arc::clone(&file.turn).lock_owned().await),
            Door::Database(_) => None,
        }
    }

    /// In SQLite a transaction that reads first may find that it cannot write any more.
    pub fn begin(&self) -> &'static str {
        match self {
            Door::File(_) => "BEGIN IMMEDIATE",
            Door::Database(_) => "BEGIN",
        }
    }

    pub fn for_readers(&self) -> ReadDoor {
        match self {
            Door::File(file) => ReadDoor::File(file.path().to_owned()),
            Door::Database(database) => ReadDoor::Database(Arc::clone(database.address())),
        }
    }
}

/// The way in for those who only read: it does not keep the database from the next server.
#[derive(Debug, Clone)]
pub(crate) enum ReadDoor {
    File(PathBuf),
    Database(Arc<Address>),
}

impl ReadDoor {
    pub fn to_file(path: &Path) -> ReadDoor {
        ReadDoor::File(path.to_owned())
    }

    pub fn to_database(url: &str) -> Result<ReadDoor, OpenError> {
        Ok(ReadDoor::Database(Arc::new(Address::of(url)?)))
    }

    /// What to call it.
    pub fn name(&self) -> String {
        match self {
            ReadDoor::File(path) => path.display().to_string(),
            ReadDoor::Database(address) => address.name().to_owned(),
        }
    }

    /// For whoever does not know yet whether there is a store, and of which version.
    pub async fn open(&self) -> Result<Link, OpenError> {
        let mut link = self.connect().await.map_err(|trouble| self.refused(&trouble))?;
        match (self, &mut link) {
            (ReadDoor::File(path), Link::Sqlite(connection)) => {
                schema::must_be_current(path, connection).await?;
            }
            (ReadDoor::Database(address), link) => address.must_be_current(link).await?,
            _ => {}
        }
        Ok(link)
    }

    pub fn refused(&self, trouble: &Trouble) -> OpenError {
        match (self, trouble) {
            (ReadDoor::File(path), Trouble::Database(error)) => open_error(path, error),
            (ReadDoor::File(path), trouble) => {
                OpenError::Damaged { path: path.clone(), reason: trouble.to_string() }
            }
            (ReadDoor::Database(address), trouble) => address.unreachable(trouble),
        }
    }

    pub async fn connect(&self) -> Result<Link, Trouble> {
        match self {
            ReadDoor::File(path) => connect_reader(path).await,
            ReadDoor::Database(address) => address.connect_reader().await,
        }
    }
}
