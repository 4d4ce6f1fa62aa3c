//! The disk of the sessions: their rows, written as they come and read all at once.

mod load;
mod rows;

use std::path::Path;

use super::door::{Door, Part};
use super::link::{Dialect, Link};
use super::table::Texts;
use super::trouble::{Kind, Trouble};
use crate::clock::Millis;
use crate::disk::{Disk, Refused, Row};
use crate::error::OpenError;
use crate::live::Live;
use rows::Kinds;

pub(crate) use load::check as check_sessions;

#[derive(Debug)]
pub(crate) struct SqlDisk {
    door: Door,
    /// None after a failure that leaves doubts.
    link: Option<Link>,
    texts: Texts,
}

impl SqlDisk {
    /// In a file that no ledger shares.
    pub async fn in_file(path: &Path) -> Result<SqlDisk, OpenError> {
        SqlDisk::open(Door::to_file(path).await?).await
    }

    /// Once for each door.
    pub async fn open(door: Door) -> Result<SqlDisk, OpenError> {
        let link = door.open(Part::Sessions).await?;
        Ok(SqlDisk { door, link: Some(link), texts: Texts::default() })
    }

    /// All that has not expired, and the next number.
    pub async fn load(&mut self, now: Millis) -> Result<(Live, u64), OpenError> {
        let link = self.link.as_mut().expect("it was just opened");
        load::load(link, now).await.map_err(|trouble| self.door.refused(&trouble))
    }

    #[cfg(test)]
    pub fn link(&mut self) -> &mut Link {
        self.link.as_mut().expect("is open")
    }

    /// As after a failure that leaves doubts.
    #[cfg(test)]
    pub async fn break_link(&mut self) {
        self.link.take().expect("is open").drop_hard().await;
    }

    async fn write(&mut self, rows: &[Row]) -> Result<(), Refused> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.reconnected().await?,
        };
        let Err((trouble, phase)) = self.transaction(&mut link, rows).await else {
            self.link = Some(link);
            return Ok(());
        };
        let kind = trouble.kind();
        let doubtful = phase == Phase::Commit && !kind.refuses_a_commit();
        if kind.leaves_the_connection() && rolled_back(&mut link).await {
            self.link = Some(link);
        } else {
            link.drop_hard().await;
        }
        Err(refused(&trouble, doubtful))
    }

    async fn reconnected(&self) -> Result<Link, Refused> {
        self.door.connect(Part::Sessions).await.map_err(|trouble| refused(&trouble, false))
    }

    async fn transaction(&mut self, link: &mut Link, rows: &[Row]) -> Result<(), (Trouble, Phase)> {
        let at = |phase| move |trouble| (trouble, phase);
        // A statement alone is a transaction by itself.
        if rows.len() == 1 && link.dialect() == Dialect::Sqlite {
            let written = Kinds::of(rows).write(link, &mut self.texts).await;
            return written.map_err(at(Phase::Commit));
        }
        let args = link.args();
        link.execute(self.door.begin(), args).await.map_err(at(Phase::Begin))?;
        Kinds::of(rows).write(link, &mut self.texts).await.map_err(at(Phase::Rows))?;
        let args = link.args();
        link.execute("COMMIT", args).await.map_err(at(Phase::Commit))?;
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    Rows,
    Commit,
}

impl Disk for SqlDisk {
    async fn commit(&mut self, rows: &[Row]) -> Result<(), Refused> {
        let _turn = self.door.turn().await;
        self.write(rows).await
    }

    async fn close(mut self) {
        if let Some(link) = self.link.take()
            && let Err(error) = link.close().await
        {
            tracing::warn!(%error, store = self.door.name(), "closing the store");
        }
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

fn refused(trouble: &Trouble, doubtful: bool) -> Refused {
    let kind = trouble.kind();
    Refused {
        full: kind == Kind::Full,
        of_rows: matches!(kind, Kind::Full | Kind::Rows),
        doubtful,
        reason: trouble.reason(),
    }
}
