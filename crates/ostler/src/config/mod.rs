//! The configuration: `ostler.toml`, or the little that `ostler serve FILE.py` says.
//!
//! Reading is pure: the text and the facts around it go in, a typed [`Config`] or every problem of
//! the file comes out. Only [`load`] and [`discover`] touch the disk. Nothing here knows how a pool
//! works; a setting is accepted only if something obeys it.

mod binding;
mod bounds;
mod declared;
mod difference;
mod discover;
mod document;
mod environment;
mod error;
mod health;
mod idempotency;
mod jobs;
mod key;
mod name;
mod pool;
mod postgres;
mod profile;
mod program;
#[cfg(test)]
mod reference;
mod retire;
mod scaling;
mod schema;
mod section;
mod server;
mod sessions;
mod source;
mod store;
mod substitute;
mod suggest;
mod supervision;
#[cfg(test)]
mod tests;
pub mod units;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use binding::{Affinity, Binding, Evict, Keyed, KeyedBy};
pub use bounds::{Admission, Backoff, Queue, Request, Restart, Start};
pub use declared::Choice;
pub use difference::{Difference, PoolChange, What};
pub use discover::{CONFIG_FILE, DEFAULT_SOCKET, discover};
pub use document::read;
pub use error::{Invalid, LoadError, Problem};
pub use health::{Check, Health, Heartbeat};
pub use idempotency::Idempotency;
pub use jobs::Jobs;
pub use name::PoolName;
pub use pool::{Containment, OnDisconnect, Pool, SIZE_MAX, Strategy, WorkerSocket};
pub use postgres::PostgresUrl;
pub use profile::{
    CapacityFrom, DEFAULT_CONCURRENCY, DEFAULT_THREADS, Profile, Sharing, ThreadSafety,
};
pub use program::{DEFAULT_INTERPRETER, Program};
pub use retire::Retire;
pub use scaling::Scaling;
pub use schema::schema;
pub use server::{BODY_CEILING, DEFAULT_LISTEN, Server, parse_listen};
pub use sessions::Sessions;
pub use source::{Position, Source};
pub use store::{DEFAULT_STORE, Place, Store};
pub use suggest::nearest;
pub use supervision::Supervision;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// A configuration larger than this is a mistake.
const FILE_MAX: u64 = 1 << 20;

/// Everything that a server needs to know before it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The file this came from; `None` when the command line said it all.
    pub file: Option<PathBuf>,
    /// The directory that relative paths begin at.
    pub root: PathBuf,
    pub server: Server,
    pub sessions: Sessions,
    pub store: Store,
    pub jobs: Jobs,
    pub idempotency: Idempotency,
    /// In the order of the file; never empty.
    pub pools: Vec<Pool>,
    /// The file as it was written, to name the keys of a difference.
    written: toml::Table,
}

impl Config {
    /// One pool for one Python file, with the default of everything.
    pub fn of_python_file(file: &Path, root: &Path, cores: u32) -> Self {
        let program = Program::python(root.join(file));
        let pool = Pool::defaults(PoolName::of_file(file), program, root, cores);
        Self {
            file: None,
            root: root.to_owned(),
            server: Server::defaults(root),
            sessions: Sessions::default(),
            store: Store::defaults(root),
            jobs: Jobs::default(),
            idempotency: Idempotency::default(),
            pools: vec![pool],
            written: toml::Table::new(),
        }
    }

    /// The pool that is meant where none is named: the setting, or the first in the file.
    pub fn default_pool(&self) -> &Pool {
        let named = self.server.default_pool.as_deref();
        self.pools.iter().find(|pool| Some(pool.name.as_str()) == named).unwrap_or(&self.pools[0])
    }
}

/// The facts that reading depends on.
pub struct Surroundings<'a> {
    /// The directory that relative paths begin at, absolute.
    pub root: &'a Path,
    pub cores: u32,
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub exists: &'a dyn Fn(&Path) -> bool,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("root", &self.root)
            .field("cores", &self.cores)
            .finish_non_exhaustive()
    }
}

/// Reads and checks a configuration file of this machine.
pub fn load(path: &Path) -> Result<Config, LoadError> {
    let (path, source) = open(path)?;
    let config = with_surroundings(&path, |around| read(&source, around))?;
    Ok(Config { file: Some(path), ..config })
}

/// Reads only `[server]`: all that a client needs, whatever is wrong with the pools.
pub fn load_server(path: &Path) -> Result<Server, LoadError> {
    let (path, source) = open(path)?;
    Ok(with_surroundings(&path, |around| document::read_server(&source, around))?)
}

/// Reads only `[store]`: all that is needed to look at what is kept there.
pub fn load_store(path: &Path) -> Result<Store, LoadError> {
    let (path, source) = open(path)?;
    Ok(with_surroundings(&path, |around| document::read_store(&source, around))?)
}

/// The number of cores that this process may use.
pub fn cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores).unwrap_or(SIZE_MAX).min(SIZE_MAX)
}

fn open(path: &Path) -> Result<(PathBuf, Source), LoadError> {
    let unreadable = |cause| LoadError::Unreadable { path: path.to_owned(), cause };
    let absolute = std::path::absolute(path).map_err(unreadable)?;
    let bytes = discover::read_bounded(&absolute, FILE_MAX)
        .map_err(unreadable)?
        .ok_or_else(|| LoadError::TooLarge { path: path.to_owned(), limit: FILE_MAX })?;
    let text = String::from_utf8(bytes).map_err(|error| LoadError::NotText {
        path: path.to_owned(),
        at: error.utf8_error().valid_up_to(),
    })?;
    Ok((absolute, Source::new(path.display().to_string(), text)))
}

fn with_surroundings<T>(file: &Path, then: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    then(&Surroundings {
        root: file.parent().unwrap_or(Path::new("/")),
        cores: cores(),
        variable: &|name| std::env::var(name).ok(),
        exists: &Path::exists,
    })
}
