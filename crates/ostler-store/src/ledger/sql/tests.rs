//! What every backend must do, on real databases; and what only a real database can do wrong.

mod faults;
mod plans;
mod restarts;
mod rows;

use tempfile::TempDir;

use super::Sql;
use crate::ledger::backend::Backend;
use crate::ledger::suite::{Ground, Opening, conform};
use crate::sql::{Door, rig::TestDatabase};

pub(super) struct SqliteGround(TempDir);

impl SqliteGround {
    fn new() -> Self {
        SqliteGround(TempDir::new().expect("a directory"))
    }
}

impl Ground for SqliteGround {
    fn open(&self) -> Opening<'_> {
        Box::pin(async move {
            let door = Door::to_file(&self.0.path().join("ostler.db")).await.expect("it opens");
            Box::new(Sql::open(door).await.expect("it opens")) as Box<dyn Backend>
        })
    }
}

pub(super) struct PostgresGround(TestDatabase);

impl Ground for PostgresGround {
    fn open(&self) -> Opening<'_> {
        Box::pin(async move {
            let door = Door::to_database(&self.0.url()).await.expect("it opens");
            Box::new(Sql::open(door).await.expect("it opens")) as Box<dyn Backend>
        })
    }
}

conform!(sqlite, async { SqliteGround::new() });
conform!(postgres, async { PostgresGround(TestDatabase::new().await) });
