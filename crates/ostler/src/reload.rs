//! The configuration, read anew while the server runs. A new kind of worker proves itself before
//! anything changes in its pool; what cannot be read changes nothing at all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_core::Action;
use ostler_runtime::store::ledger::Ledger;
use ostler_runtime::{Directory, EventLog, Followed, Pool, PoolSpec};
use ostler_server::{Changed, PoolChange, Pools, ReloadProblem, ReloadReport};
use tokio::sync::Mutex;

use crate::config::{self, Config, Program, What};
use crate::spec::spec;
use crate::watch::Watch;

/// Reads the configuration anew, as the server was told to read it when it started.
pub(crate) type Source = Arc<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// What the pools of one server have in common.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub directory: Directory,
    pub events: Arc<EventLog>,
    pub ledger: Ledger,
}

impl Surroundings {
    pub fn spec(&self, pool: &config::Pool, server: &config::Server) -> PoolSpec {
        PoolSpec {
            directory: self.directory.clone(),
            events: Arc::clone(&self.events),
            ledger: Some(self.ledger.clone()),
            ..spec(pool, server)
        }
    }
}

#[derive(Clone)]
pub(crate) struct Reloader {
    shared: Arc<Shared>,
}

struct Shared {
    source: Source,
    surroundings: Surroundings,
    pools: Pools,
    /// What is in force.
    config: Mutex<Config>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reloader")
    }
}

impl Reloader {
    pub fn new(source: Source, surroundings: Surroundings, pools: Pools, config: Config) -> Self {
        let shared = Shared { source, surroundings, pools, config: Mutex::new(config) };
        Reloader { shared: Arc::new(shared) }
    }

    /// `only`: these pools; all of them if none is named.
    pub async fn reload(&self, only: Vec<String>) -> Result<ReloadReport, ReloadProblem> {
        let mut current = self.shared.config.lock().await;
        let new = (self.shared.source)()
            .map_err(|detail| ReloadProblem::InvalidConfiguration { detail })?;
        check_names(&only, &current, &new)?;
        self.check_pools(&only, &current, &new)?;
        let difference = current.difference(&new);
        let mut report = ReloadReport { changes: Vec::new(), restart_needed: difference.outside };
        for change in difference.pools {
            let name = change.pool.as_str();
            if !only.is_empty() && !only.iter().any(|named| named == name) {
                continue;
            }
            let (what, rolled) = match change.what {
                What::Added => (Changed::Added, false),
                What::Removed => (Changed::Removed, false),
                What::Changed { .. } => (Changed::Changed, true),
                What::Unchanged => (Changed::Unchanged, true),
            };
            let done = self.carry_out(what, name, &current, &new).await;
            done.map_err(|detail| failed(name, &detail, &report.changes))?;
            current.take_pool(&change.pool, &new);
            let pool = name.to_owned();
            report.changes.push(PoolChange { pool, what, keys: change.keys, rolled });
        }
        Ok(report)
    }

    /// What is known beforehand to be impossible is refused before anything is done.
    fn check_pools(
        &self,
        only: &[String],
        current: &Config,
        new: &Config,
    ) -> Result<(), ReloadProblem> {
        let meant = |name: &str| only.is_empty() || only.iter().any(|named| named == name);
        for described in new.pools.iter().filter(|pool| meant(pool.name.as_str())) {
            let name = described.name.as_str();
            let Some(pool) = self.shared.pools.find(name) else { continue };
            let spec = self.shared.surroundings.spec(described, &current.server);
            pool.may_become(&spec).map_err(|error| failed(name, &error.to_string(), &[]))?;
        }
        Ok(())
    }

    async fn carry_out(
        &self,
        what: Changed,
        name: &str,
        current: &Config,
        new: &Config,
    ) -> Result<(), String> {
        let Shared { surroundings, pools, .. } = &*self.shared;
        let described = new.pools.iter().find(|pool| pool.name.as_str() == name);
        let served = pools.find(name);
        match (what, described, served) {
            (Changed::Removed, ..) => {
                if let Some(pool) = pools.remove(name) {
                    tokio::spawn(let_go(pool));
                }
                Ok(())
            }
            (_, Some(described), Some(pool)) => {
                let spec = surroundings.spec(described, &current.server);
                pool.reload(spec).await.map_err(|error| error.to_string())
            }
            (_, Some(described), None) => {
                let spec = surroundings.spec(described, &current.server);
                let pool = prove(spec, described.start.timeout).await?;
                pools.add(pool);
                Ok(())
            }
            (_, None, _) => Err("it is not in the configuration".to_owned()),
        }
    }

    /// Reloads whenever a file of the pools or the configuration changes. Never ends.
    pub async fn watch(self) {
        let mut paths = self.watched().await;
        loop {
            let mut watch = match Watch::new(paths.clone()) {
                Ok(watch) => watch,
                Err(error) => return tracing::error!("{error}; files are not watched"),
            };
            // The same one as long as it can be: it knows what changes during a reload.
            while paths == self.watched().await {
                let changed = watch.changed().await;
                self.reload_for(&changed).await;
            }
            paths = self.watched().await;
        }
    }

    async fn reload_for(&self, changed: &[PathBuf]) {
        let pools = self.concerned(changed).await;
        let first = changed.first().map(|path| path.display().to_string());
        tracing::info!(changed = first, "reloading");
        match self.reload(pools).await {
            Ok(report) => {
                let pools: Vec<&str> = report.changes.iter().map(|change| &*change.pool).collect();
                tracing::info!("reloaded {}", pools.join(", "));
            }
            Err(problem) => tracing::error!("not reloaded: {}", words(&problem)),
        }
    }

    async fn watched(&self) -> Vec<PathBuf> {
        let config = self.shared.config.lock().await;
        let homes = config.pools.iter().filter_map(home).map(Path::to_owned);
        homes.chain(config.file.clone()).collect()
    }

    /// The pools whose files are among those that changed; all if the configuration is.
    async fn concerned(&self, changed: &[PathBuf]) -> Vec<String> {
        let config = self.shared.config.lock().await;
        if changed.iter().any(|path| config.file.as_ref() == Some(path)) {
            return Vec::new();
        }
        let touched = |pool: &&config::Pool| {
            home(pool).is_some_and(|home| changed.iter().any(|path| path.starts_with(home)))
        };
        config.pools.iter().filter(touched).map(|pool| pool.name.to_string()).collect()
    }
}

/// Those inside are served, then it ends. If the server ends first, it ends this one too.
async fn let_go(pool: Pool) {
    let mut events = pool.events();
    pool.order(Action::DrainPool).await;
    while !pool.info().view.drained {
        if events.next().await == Followed::Ended {
            break;
        }
    }
    pool.shut_down(false);
    pool.stopped().await;
}

fn words(problem: &ReloadProblem) -> String {
    match problem {
        ReloadProblem::InvalidConfiguration { detail } => detail.clone(),
        ReloadProblem::PoolNotFound { pool, .. } => format!("there is no pool `{pool}`"),
        ReloadProblem::Failed { detail, .. } => detail.clone(),
        ReloadProblem::Underway => "another reload is under way".to_owned(),
    }
}

/// The directory of a pool's code, as far as it is known.
fn home(pool: &config::Pool) -> Option<&Path> {
    match &pool.program {
        Program::Python { file, .. } => file.parent(),
        Program::Command { .. } => None,
    }
}

fn check_names(only: &[String], current: &Config, new: &Config) -> Result<(), ReloadProblem> {
    let known = |name: &String| {
        let pools = current.pools.iter().chain(&new.pools);
        pools.into_iter().any(|pool| pool.name.as_str() == name)
    };
    match only.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => Err(ReloadProblem::PoolNotFound {
            pool: name.clone(),
            known: new.pools.iter().map(|pool| pool.name.to_string()).collect(),
        }),
    }
}

/// What was done before is said too: it stays done.
fn failed(pool: &str, detail: &str, done: &[PoolChange]) -> ReloadProblem {
    let done: Vec<&str> = done.iter().map(|change| &*change.pool).collect();
    let detail = match done.is_empty() {
        true => detail.to_owned(),
        false => format!("{detail}\n(reloaded before that: {})", done.join(", ")),
    };
    ReloadProblem::Failed { pool: Some(pool.to_owned()), detail }
}

/// A pool that has a worker that serves.
async fn prove(spec: PoolSpec, limit: Duration) -> Result<Pool, String> {
    let pool = Pool::start(spec).await.map_err(|error| error.to_string())?;
    if tokio::time::timeout(limit, pool.ready()).await.is_ok() {
        return Ok(pool);
    }
    let why = pool.info().last_failure;
    pool.shut_down(true);
    pool.stopped().await;
    Err(why.unwrap_or_else(|| "its workers did not become ready in time".to_owned()))
}
