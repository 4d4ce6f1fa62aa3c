//! The built command as a server in a directory of its own, killed and started again there.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::Client;
use super::{Failure, Store};

const LOOK: Duration = Duration::from_millis(5);
const START_MAX: Duration = Duration::from_secs(60);

const WORK: &str = "\
import ostler

@ostler.function
def nothing(number: int) -> int:
    return number
";

/// A directory, and what `[store]` says in it.
#[derive(Debug)]
pub(crate) struct Place {
    directory: tempfile::TempDir,
    store: String,
    /// A database that was made for this run: the server it is on, and its name.
    database: Option<(String, String)>,
}

impl Place {
    pub fn of(store: Store) -> Result<Self, Failure> {
        let prefix = "ostler-bench-jobs.";
        let directory = match store {
            Store::Memory => tempfile::Builder::new().prefix(prefix).tempdir_in("/dev/shm")?,
            Store::Sqlite | Store::Postgres => tempfile::Builder::new().prefix(prefix).tempdir()?,
        };
        let mut place =
            Place { directory, store: r#"path = "jobs.db""#.to_owned(), database: None };
        if store == Store::Postgres {
            place.make_database()?;
        }
        Ok(place)
    }

    fn make_database(&mut self) -> Result<(), Failure> {
        let server = std::env::var("OSTLER_TEST_POSTGRES")
            .map_err(|_| "OSTLER_TEST_POSTGRES must name a PostgreSQL server: postgres://…")?;
        let name = format!("ostler_bench_{}", std::process::id());
        sql(&server, &format!("CREATE DATABASE {name}"))?;
        self.store = format!(r#"url = "{}""#, within(&server, &name));
        self.database = Some((server, name));
        Ok(())
    }

    fn config(&self) -> String {
        let Self { store, .. } = self;
        format!(
            "version = 1\n[server]\nlisten = \"127.0.0.1:0\"\n[store]\n{store}\n\
             [pools.work]\npython = \"work.py\"\n"
        )
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.database
            && let Err(error) = sql(server, &format!("DROP DATABASE {name} WITH (FORCE)"))
        {
            eprintln!("the database {name} is left: {error}");
        }
    }
}

/// The same server's address with another database in it.
fn within(server: &str, name: &str) -> String {
    let (address, options) = server.split_once('?').unwrap_or((server, ""));
    let end = address.find("://").map_or(0, |at| at + 3);
    let host = address[end..].find('/').map_or(address.len(), |at| end + at);
    let joint = if options.is_empty() { "" } else { "?" };
    format!("{}/{name}{joint}{options}", &address[..host])
}

fn sql(server: &str, statement: &str) -> Result<(), Failure> {
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "-q", "-d", server, "-c", statement]).stdin(Stdio::null());
    match psql.status()?.success() {
        true => Ok(()),
        false => Err(format!("psql refused: {statement}").into()),
    }
}

/// It is killed when this is dropped; its workers go with it.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    place: &'a Place,
    child: Child,
    address: SocketAddr,
}

impl<'a> Server<'a> {
    pub async fn start(place: &'a Place) -> Result<Self, Failure> {
        std::fs::write(place.directory.path().join("work.py"), WORK)?;
        std::fs::write(place.directory.path().join("ostler.toml"), place.config())?;
        let (child, address) = launch(place).await?;
        Ok(Self { place, child, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn kill_and_start(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        (self.child, self.address) = launch(self.place).await?;
        Ok(())
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Started, and ready for work.
async fn launch(place: &Place) -> Result<(Child, SocketAddr), Failure> {
    let log = std::fs::File::create(place.log())?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
    command.args(["serve", "--wait"]).current_dir(place.directory.path());
    command.env_remove("OSTLER_CONFIG").env("OSTLER_LOG", "info");
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut child = command.spawn()?;
    match ready(place, &mut child).await {
        Ok(address) => Ok((child, address)),
        Err(failure) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(failure)
        }
    }
}

async fn ready(place: &Place, child: &mut Child) -> Result<SocketAddr, Failure> {
    let began = Instant::now();
    while began.elapsed() < START_MAX && child.try_wait()?.is_none() {
        if let Some(address) = announced(place)?
            && let Ok(mut client) = Client::connect(address).await
            && client.get::<serde_json::Value>("/readyz").await.is_ok()
        {
            return Ok(address);
        }
        tokio::time::sleep(LOOK).await;
    }
    let log = std::fs::read_to_string(place.log())?;
    Err(format!("the server did not become ready:\n{log}").into())
}

fn announced(place: &Place) -> Result<Option<SocketAddr>, Failure> {
    let log = std::fs::read_to_string(place.log())?;
    let text = log.split("listening on http://").nth(1);
    // The line may be half written.
    Ok(text
        .filter(|text| text.contains('\n'))
        .and_then(|text| text.split_whitespace().next()?.parse().ok()))
}
