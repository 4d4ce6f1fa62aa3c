//! A database of PostgreSQL that this server holds. Its tables are in a schema of their own.
//!
//! Each part (sessions, ledger) writes through one connection, and that connection holds the part's
//! advisory lock: whatever it commits, it commits as the owner, and a lock that was had again proves
//! that the connection before has ended, with whatever it was about to commit. With one writer there
//! is nothing to serialise, so transactions are plain (`READ COMMITTED`). The lock alone would not
//! tell that somebody else came and went between two connections; the owner's name in the tables does.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, SqlSafeStr};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::door::Part;
use super::file::STATEMENTS;
use super::link::Link;
use super::trouble::Trouble;
use crate::error::OpenError;

/// `ostl`: of the two numbers of an advisory lock, the first.
const CLASS: i32 = 0x6f73_746c;
/// A server that is just ending has this long to let go.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// 15.0, as the server writes it.
const OLDEST: i64 = 150_000;

/// Each leads from one version to the next; none is ever changed once it was released.
const STEPS: [&str; 1] = [include_str!("../../migrations/postgres/0001_store.sql")];

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Sessions => "sessions",
            Part::Ledger => "ledger",
        }
    }

    fn lock(self) -> i32 {
        match self {
            Part::Sessions => 1,
            Part::Ledger => 2,
        }
    }
}

/// Where it is, and as whom to go there.
#[derive(Debug)]
pub(crate) struct Address {
    options: PgConnectOptions,
    name: String,
}

impl Address {
    pub fn of(url: &str) -> Result<Address, OpenError> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(OpenError::Url { reason: "it must begin with `postgres://`".to_owned() });
        }
        let options = PgConnectOptions::from_str(url)
            .map_err(|error| OpenError::Url { reason: error.to_string() })?;
        let options = options.statement_cache_capacity(STATEMENTS).disable_statement_logging();
        let place = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        let name = format!("postgres://{}@{place}/{database}", options.get_username());
        Ok(Address { options, name })
    }

    async fn connect(&self, called: &str) -> Result<Link, Trouble> {
        let options = self.options.clone().application_name(called);
        let connecting = timeout(CONNECT_PATIENCE, options.connect()).await;
        let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, "it does not answer");
        let connection: PgConnection = connecting.map_err(|_| sqlx::Error::Io(late()))??;
        let mut link = Link::Postgres(connection);
        let ways = "SET search_path TO ostler; SET synchronous_commit TO on; \
                    SET client_min_messages TO warning; \
                    SET tcp_keepalives_idle TO 10; SET tcp_keepalives_interval TO 5; \
                    SET tcp_keepalives_count TO 3";
        link.script(ways.into_sql_str()).await?;
        Ok(link)
    }

    pub async fn connect_reader(&self) -> Result<Link, Trouble> {
        let mut link = self.connect("ostler-reader").await?;
        let ways = "SET default_transaction_read_only TO on";
        link.script(ways.into_sql_str()).await?;
        Ok(link)
    }

    /// Of its tables; 0 if there are none.
    async fn version(&self, link: &mut Link) -> Result<usize, OpenError> {
        let refused = |trouble| self.unreachable(&trouble);
        let args = link.args();
        let server = link.number("SELECT current_setting('server_version_num')::bigint", args);
        let server = server.await.map_err(refused)?;
        if server < OLDEST {
            let version = format!("{}.{}", server / 10_000, server % 10_000);
            return Err(OpenError::OldServer { database: self.name.clone(), version });
        }
        let (found, known) = (version(link).await.map_err(refused)?, STEPS.len() as i64);
        if found > known {
            return Err(OpenError::NewerTables { database: self.name.clone(), found, known });
        }
        Ok(found as usize)
    }

    /// For those who do not write.
    pub async fn must_be_current(&self, link: &mut Link) -> Result<(), OpenError> {
        match self.version(link).await? == STEPS.len() {
            true => Ok(()),
            false => Err(OpenError::TooOld { place: self.name.clone() }),
        }
    }

    pub fn unreachable(&self, trouble: &Trouble) -> OpenError {
        OpenError::Unreachable { database: self.name.clone(), reason: trouble.to_string() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

#[derive(Debug)]
pub(crate) struct Database {
    address: Arc<Address>,
    /// This opening's name in the tables, and of its connections.
    boot: String,
}

impl Database {
    /// Its tables are of this version from now on.
    pub async fn open(url: &str) -> Result<Database, OpenError> {
        let address = Arc::new(Address::of(url)?);
        let database = Database { address, boot: Uuid::now_v7().simple().to_string() };
        let refused = |trouble| database.address.unreachable(&trouble);
        let mut link = database.address.connect("ostler-opening").await.map_err(refused)?;
        database.prepare(&mut link).await?;
        link.close().await.map_err(|error| refused(error.into()))?;
        Ok(database)
    }

    pub fn address(&self) -> &Arc<Address> {
        &self.address
    }

    pub fn name(&self) -> &str {
        &self.address.name
    }

    async fn prepare(&self, link: &mut Link) -> Result<(), OpenError> {
        let refused = |trouble| self.address.unreachable(&trouble);
        let found = self.address.version(link).await?;
        if found == STEPS.len() {
            return Ok(());
        }
        // Not under the feet of an older server. The locks end with this connection.
        for part in [Part::Sessions, Part::Ledger] {
            self.lock(link, part).await?;
        }
        for (done, step) in STEPS.iter().enumerate().skip(found) {
            take(link, step, done + 1).await.map_err(refused)?;
        }
        Ok(())
    }

    async fn lock(&self, link: &mut Link, part: Part) -> Result<(), OpenError> {
        match try_lock(link, part).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(OpenError::Taken { database: self.name().to_owned() }),
            Err(trouble) => Err(self.address.unreachable(&trouble)),
        }
    }

    /// The part is this run's from now on.
    pub async fn enter(&self, part: Part) -> Result<Link, OpenError> {
        let refused = |trouble| self.address.unreachable(&trouble);
        let mut link = self.address.connect(&self.called(part)).await.map_err(refused)?;
        self.lock(&mut link, part).await?;
        let args = link.args().with_text(part.name()).with_text(&self.boot);
        const SIGN: &str = "INSERT INTO owner (part, id) VALUES ($1, $2) \
                            ON CONFLICT (part) DO UPDATE SET id = excluded.id";
        link.execute(SIGN, args).await.map_err(refused)?;
        Ok(link)
    }

    /// Again.
    pub async fn connect(&self, part: Part) -> Result<Link, Trouble> {
        let mut link = self.address.connect(&self.called(part)).await?;
        self.end_the_one_before(&mut link, part).await?;
        if !try_lock(&mut link, part).await? {
            return Err(Trouble::Taken(self.name().to_owned()));
        }
        let args = link.args().with_text(part.name());
        let owner = link.fetch_first("SELECT id FROM owner WHERE part = $1", args).await?;
        let owner = owner.map(|record| record.cells().string()).transpose()?;
        if owner.as_ref() != Some(&self.boot) {
            return Err(Trouble::Taken(self.name().to_owned()));
        }
        Ok(link)
    }

    /// A connection that was lost here may live on there, with the lock and a transaction.
    async fn end_the_one_before(&self, link: &mut Link, part: Part) -> Result<(), Trouble> {
        let args = link.args().with_text(&self.called(part));
        const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                           WHERE application_name = $1 AND pid <> pg_backend_pid()";
        link.fetch(END, args).await.map(drop)
    }

    fn called(&self, part: Part) -> String {
        format!("ostler-{}-{}", part.name(), self.boot)
    }
}

/// False: another connection has it, and keeps it.
async fn try_lock(link: &mut Link, part: Part) -> Result<bool, Trouble> {
    let last_try = Instant::now() + LOCK_PATIENCE;
    loop {
        let args = link.args().with_int(CLASS.into()).with_int(part.lock().into());
        const TRY: &str = "SELECT pg_try_advisory_lock($1::int4, $2::int4)::int::bigint";
        if link.number(TRY, args).await? == 1 {
            return Ok(true);
        }
        if Instant::now() >= last_try {
            return Ok(false);
        }
        sleep(LOCK_PAUSE).await;
    }
}

/// 0: there are no tables yet.
async fn version(link: &mut Link) -> Result<i64, Trouble> {
    let args = link.args();
    let there = "SELECT count(*) FROM pg_tables \
                 WHERE schemaname = 'ostler' AND tablename = 'schema_version'";
    if link.number(there, args).await? == 0 {
        return Ok(0);
    }
    let args = link.args();
    link.number("SELECT coalesce(max(version), 0) FROM schema_version", args).await
}

/// The step and its mark, or neither.
async fn take(link: &mut Link, step: &str, version: usize) -> Result<(), Trouble> {
    let script = format!(
        "BEGIN;\nCREATE SCHEMA IF NOT EXISTS ostler;\n\
         CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY);\n{step}\n\
         INSERT INTO schema_version VALUES ({version});\nCOMMIT;"
    );
    link.script(AssertSqlSafe(script).into_sql_str()).await
}
