//! A database of PostgreSQL for one test. The server is `tests/postgres`, started by whoever runs the
//! tests; making a database takes it a second, so they are used again, emptied, by one test at a time.

use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};

const SERVER: &str = "OSTLER_TEST_POSTGRES";

/// Of the two numbers of an advisory lock, the first; the second is the database's.
const CLASS: i32 = 0x7465_7374;

/// Nobody else's until it is dropped.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
    /// Holds the lock.
    _hold: PgConnection,
}

impl TestDatabase {
    /// # Panics
    /// If there is no server to test with.
    pub async fn new() -> TestDatabase {
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!("{SERVER} is not set: run the tests with `tests/postgres run COMMAND…`")
        });
        TestDatabase::at(&server).await
    }

    pub async fn at(server: &str) -> TestDatabase {
        let mut hold = connect(server).await;
        let number = first_free(&mut hold).await;
        let (server, name) = (server.to_owned(), format!("test_{number}"));
        let known: Option<i32> = sqlx::query_scalar("SELECT 1 FROM pg_database WHERE datname = $1")
            .bind(&name)
            .fetch_optional(&mut hold)
            .await
            .expect("databases are listed");
        let database = TestDatabase { server, name, _hold: hold };
        match known {
            Some(_) => order(&mut connect(&database.url()).await, EMPTY.to_owned()).await,
            None => order(&mut connect(&database.server).await, database.creation()).await,
        }
        database
    }

    fn creation(&self) -> String {
        format!("CREATE DATABASE {}", self.name)
    }

    pub fn url(&self) -> String {
        let (before, after) = self.server.split_once("/postgres?").expect("as tests/postgres says");
        format!("{before}/{}?{after}", self.name)
    }
}

async fn first_free(hold: &mut PgConnection) -> i32 {
    for number in 0.. {
        let free: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1, $2)")
            .bind(CLASS)
            .bind(number)
            .fetch_one(&mut *hold)
            .await
            .expect("the server answers");
        if free {
            return number;
        }
    }
    unreachable!("there are as many as there are tests")
}

/// Rows are removed one by one: of the few that a test leaves that is quicker than anything else. What
/// still belongs to the test before is ended first.
const EMPTY: &str = "
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    DO $$ DECLARE one record; BEGIN
        IF to_regclass('ostler.schema_version') IS NULL
        OR (SELECT max(version) > 50 FROM ostler.schema_version) THEN
            DROP SCHEMA IF EXISTS ostler CASCADE;
        END IF;
        FOR one IN SELECT tablename AS name FROM pg_tables WHERE schemaname = 'ostler'
        AND tablename NOT IN ('schema_version', 'session_number') LOOP
            EXECUTE format('DELETE FROM ostler.%I', one.name);
        END LOOP;
    END $$";

async fn connect(url: &str) -> PgConnection {
    let options = PgConnectOptions::from_str(url).expect("a URL");
    options.connect().await.expect("the server of the tests answers")
}

async fn order(connection: &mut PgConnection, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.expect("the server obeys");
}
