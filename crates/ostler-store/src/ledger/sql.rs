//! Rows in a database: SQLite or PostgreSQL, which [`crate::sql`] tells apart. A file for each noun
//! says how its rows are spelled and found; what they mean, nobody here knows.

mod batch;
mod job;
mod key;
mod query;
mod readers;
mod reads;
mod schedule;
mod task;
mod trail;
mod worker;

#[cfg(test)]
mod tests;

use std::mem;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::audit::AuditReport;
use super::backend::{Backend, Failed, Reader, Reply};
use super::id::JobId;
use super::row::Row;
use super::verify;
use crate::error::OpenError;
use crate::sql::{Cells, Door, Kind, Link, Part, Texts, Trouble};
use readers::{Lent, Readers, ReadersHandle};
use reads::Linked;

/// The one who writes.
#[derive(Debug)]
pub(crate) struct Sql {
    door: Door,
    /// None: it connects anew with the next transaction.
    link: Option<Link>,
    transaction: Transaction,
    /// A statement is under way. Seen from outside: somebody stopped waiting for it.
    asking: bool,
    /// Kept while a transaction is open.
    turn: Option<OwnedMutexGuard<()>>,
    texts: Texts,
    readers: Arc<Readers>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// It can only be rolled back.
    Failed,
}

impl Sql {
    /// Once for each door.
    pub async fn open(door: Door) -> Result<Sql, OpenError> {
        let link = door.open(Part::Ledger).await?;
        let readers = Arc::new(Readers::new(door.for_readers()));
        Ok(Sql {
            door,
            link: Some(link),
            transaction: Transaction::None,
            asking: false,
            turn: None,
            texts: Texts::default(),
            readers,
        })
    }

    /// For faults.
    #[cfg(test)]
    pub fn raw(&mut self) -> &mut Link {
        self.link.as_mut().expect("is open")
    }

    /// A connection that was lost while nothing was going on is not worth a refusal.
    async fn start(&mut self) -> Result<(), Failed> {
        if self.transaction != Transaction::None || self.asking {
            self.give_up().await;
        }
        self.turn = self.door.turn().await;
        let begun = match self.try_start().await {
            Err(trouble) if trouble.kind() == Kind::Lost => self.try_start().await,
            begun => begun,
        };
        if begun.is_err() {
            self.turn = None;
        }
        begun.map_err(|trouble| failed(&trouble, false))
    }

    async fn try_start(&mut self) -> Result<(), Trouble> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.door.connect(Part::Ledger).await?,
        };
        let args = link.args();
        match link.execute(self.door.begin(), args).await {
            Ok(_) => {
                self.link = Some(link);
                self.transaction = Transaction::Open;
                Ok(())
            }
            Err(trouble) => {
                if trouble.kind().leaves_the_connection() {
                    self.link = Some(link);
                } else {
                    link.drop_hard().await;
                }
                Err(trouble)
            }
        }
    }

    async fn put(&mut self, rows: &[Row]) -> Result<(), Failed> {
        self.must_be_open()?;
        let mut texts = mem::take(&mut self.texts);
        let written = batch::write(self.link().await?, &mut texts, rows).await;
        self.texts = texts;
        self.settled(written)
    }

    async fn finish(&mut self) -> Result<(), Failed> {
        self.must_be_open()?;
        let link = self.link().await?;
        let args = link.args();
        let committed = link.execute("COMMIT", args).await;
        self.asking = false;
        let Err(trouble) = committed else {
            self.transaction = Transaction::None;
            self.turn = None;
            return Ok(());
        };
        let refused = trouble.kind().refuses_a_commit();
        if refused {
            self.transaction = Transaction::Failed;
        } else {
            self.disconnect().await;
        }
        Err(failed(&trouble, !refused))
    }

    fn must_be_open(&self) -> Result<(), Failed> {
        match self.transaction {
            Transaction::Open => Ok(()),
            Transaction::None => Err(refusal("no transaction was begun")),
            Transaction::Failed => Err(refusal(FAILED_BEFORE)),
        }
    }

    async fn give_up(&mut self) {
        if !self.asking
            && let Some(link) = &mut self.link
            && rolled_back(link).await
        {
            self.transaction = Transaction::None;
            self.turn = None;
        } else {
            self.disconnect().await;
        }
    }

    /// Whatever was not committed is rolled back by its end.
    async fn disconnect(&mut self) {
        if let Some(link) = self.link.take() {
            link.drop_hard().await;
        }
        self.transaction = Transaction::None;
        self.asking = false;
        self.turn = None;
    }
}

const FAILED_BEFORE: &str = "the transaction failed before; the next change begins another";

fn refusal(reason: impl Into<String>) -> Failed {
    Failed { full: false, of_rows: false, doubtful: false, reason: reason.into() }
}

impl Linked for Sql {
    async fn link(&mut self) -> Result<&mut Link, Failed> {
        if self.asking || self.transaction == Transaction::Failed {
            return Err(refusal(FAILED_BEFORE));
        }
        let link = match self.link.take() {
            Some(link) => link,
            None if self.transaction == Transaction::Open => return Err(refusal(FAILED_BEFORE)),
            None => self.door.connect(Part::Ledger).await.map_err(|t| failed(&t, false))?,
        };
        self.asking = true;
        Ok(self.link.insert(link))
    }

    fn settled<T>(&mut self, done: Result<T, Trouble>) -> Result<T, Failed> {
        self.asking = false;
        if let Err(Trouble::Database(_)) = &done {
            match self.transaction {
                // PostgreSQL takes nothing more in a transaction in which something failed.
                Transaction::Open => self.transaction = Transaction::Failed,
                _ => self.link = None,
            }
        }
        done.map_err(|trouble| failed(&trouble, false))
    }

    /// What the transaction has written so far would be gone.
    fn worth_another_try(&self, trouble: &Trouble) -> bool {
        self.transaction == Transaction::None && trouble.kind() == Kind::Lost
    }
}

impl Backend for Sql {
    fn begin(&mut self) -> Reply<'_, ()> {
        Box::pin(self.start())
    }

    fn write(&mut self, rows: Vec<Row>) -> Reply<'_, ()> {
        Box::pin(async move { self.put(&rows).await })
    }

    fn commit(&mut self) -> Reply<'_, ()> {
        Box::pin(self.finish())
    }

    fn rollback(&mut self) -> Reply<'_, ()> {
        Box::pin(async move {
            if self.transaction != Transaction::None || self.asking {
                self.give_up().await;
            }
            Ok(())
        })
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(ReadersHandle(Arc::clone(&self.readers)))
    }

    fn backup<'a>(&'a mut self, to: &'a Path) -> Reply<'a, ()> {
        Box::pin(async move {
            let copied = crate::store::back_up(&self.door.for_readers(), to).await;
            copied.map_err(|error| refusal(error.to_string()))
        })
    }

    fn close(mut self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            self.readers.close().await;
            if self.transaction != Transaction::None || self.asking {
                self.give_up().await;
            }
            if let Some(link) = self.link.take()
                && let Err(error) = link.close().await
            {
                tracing::warn!(%error, store = self.door.name(), "closing the store");
            }
        })
    }
}

/// Some failures end the transaction by themselves.
async fn rolled_back(link: &mut Link) -> bool {
    let args = link.args();
    match link.execute("ROLLBACK", args).await {
        Ok(_) => true,
        Err(error) => error.to_string().contains("no transaction is active"),
    }
}

fn failed(trouble: &Trouble, doubtful: bool) -> Failed {
    let kind = trouble.kind();
    let of_rows = matches!(kind, Kind::Full | Kind::Rows | Kind::Damaged);
    let reason = match trouble {
        // Said by whoever knows which row it is.
        Trouble::Checksum => trouble.to_string(),
        _ => trouble.reason(),
    };
    Failed { full: kind == Kind::Full, of_rows, doubtful, reason }
}

/// The trail of every job and worker, as this connection shows it.
pub(crate) async fn audited(link: &mut Link) -> Result<AuditReport, String> {
    verify::replay(&mut Lent(link)).await.map_err(|failed| failed.reason)
}

fn job_id(cells: &mut Cells<'_>) -> Result<JobId, Trouble> {
    cells.parsed("job", |id| id.parse().ok())
}
