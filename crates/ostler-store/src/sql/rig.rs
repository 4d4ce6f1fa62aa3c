//! A database of PostgreSQL for one test. The server is `tests/postgres`, started by whoever runs the
//! tests.

use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use uuid::Uuid;

const SERVER: &str = "OSTLER_TEST_POSTGRES";

/// Gone when it is dropped.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
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
        let name = format!("t_{}", Uuid::now_v7().simple());
        order(server, format!("CREATE DATABASE {name}")).await.expect("a database is made");
        TestDatabase { server: server.to_owned(), name }
    }

    pub fn url(&self) -> String {
        let (before, after) = self.server.split_once("/postgres?").expect("as tests/postgres says");
        format!("{before}/{}?{after}", self.name)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        // A test has a runtime, but may not be let back into it here.
        let gone = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(order(&server, drop)).map_err(std::io::Error::other)
        });
        // The server may be down: a test of just that, and all of it goes away with its directory.
        let _ = gone.join();
    }
}

async fn order(server: &str, sql: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnectOptions::from_str(server)?.connect().await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}
