//! A server made of a configuration: pools started, doors opened, signals heeded.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use ostler_jobs::{JobSettings, Jobs};
use ostler_runtime::store::ledger::{Ledger, LedgerSettings, Place};
use ostler_runtime::store::{OpenError, SessionSettings, Sessions, Store};
use ostler_runtime::{Directory, EVENTS_KEPT, EventLog, Pool, StartError, tell_of_sessions};
use ostler_server::{BindError, Server, ServerSettings};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing_subscriber::EnvFilter;

use crate::config::{self, Config};
use crate::reload::{Reloader, Source, Surroundings};

/// Sets how much is logged, in the syntax of `tracing_subscriber`.
const LOG_VARIABLE: &str = "OSTLER_LOG";

#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    #[error(transparent)]
    Pool(#[from] StartError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error("pool `{pool}` did not come up: {why}")]
    NotReady { pool: String, why: String },
}

#[derive(Debug)]
pub(crate) struct Daemon {
    pools: Vec<Pool>,
    sessions: Sessions,
    ledger: Ledger,
    reloader: Reloader,
    server: Server,
    start_timeout: Duration,
}

impl Daemon {
    pub async fn start(config: &Config, source: Source) -> Result<Daemon, DaemonError> {
        log_to_stderr();
        // Before the store, which would only say that it is in use.
        let path = &config.server.socket;
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(BindError::InUse { path: path.clone() }.into());
        }
        let kept_at = place(&config.store);
        let store = Store::open(&kept_at).await?;
        let sessions = store.sessions(settings(&config.sessions)).await?;
        let ledger = store.ledger(ledger_settings(config)).await?;
        // Both hold it as long as they live.
        drop(store);
        // The workers of one server may call each other's pools, and there is one log for all.
        let surroundings = Surroundings {
            directory: Directory::new().with_sessions(sessions.clone()),
            events: Arc::new(EventLog::new(EVENTS_KEPT)),
            ledger: ledger.clone(),
        };
        tell_of_sessions(&sessions, &surroundings.events);
        let mut pools = Vec::new();
        for pool in &config.pools {
            pools.push(Pool::start(surroundings.spec(pool, &config.server)).await?);
        }
        let settings = ServerSettings {
            listen: config.server.listen,
            socket: config.server.socket.clone(),
            max_body: config.server.max_body,
            default_pool: Some(config.default_pool().name.to_string()),
            version: env!("CARGO_PKG_VERSION"),
        };
        let jobs = Jobs::start(
            ledger.clone(),
            surroundings.directory.clone(),
            Arc::clone(&surroundings.events),
            job_settings(config),
        );
        let server = Server::bind(settings, pools.clone(), jobs).await?;
        server.stored_at(kept_at);
        let reloader = Reloader::new(source, surroundings, server.pools(), config.clone());
        let reload = reloader.clone();
        server.on_reload(move |pools| {
            let reload = reload.clone();
            async move { reload.reload(pools).await }
        });
        tracing::info!("listening on http://{}", server.local_addr());
        let start_timeout = config.pools.iter().map(|pool| pool.start.timeout).max();
        let start_timeout = start_timeout.unwrap_or_default();
        Ok(Daemon { pools, sessions, ledger, reloader, server, start_timeout })
    }

    /// Waits until every worker of every pool is ready.
    pub async fn all_ready(&self) -> Result<(), DaemonError> {
        for pool in &self.pools {
            let ready = tokio::time::timeout(self.start_timeout, pool.all_ready()).await;
            if ready.is_err() {
                let info = pool.info();
                let output = info.workers.iter().flat_map(|worker| worker.last_lines(1));
                let why = info.last_failure.or_else(|| output.last());
                let why = why.unwrap_or_else(|| "its workers are not ready in time".to_owned());
                return Err(DaemonError::NotReady { pool: info.name, why });
            }
        }
        Ok(())
    }

    /// Serves until a signal or a request ends it. The first signal drains, the second kills.
    /// `watch`: reload when a file changes.
    pub async fn run(self, watch: bool) {
        let stopper = self.server.stopper();
        let listening = tokio::spawn(async move {
            let (Ok(mut terminate), Ok(mut interrupt)) =
                (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
            else {
                return;
            };
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                tracing::info!("stopping; a second signal kills");
                stopper.stop();
            }
        });
        let mut beside = announce_readiness(&self.pools);
        // The server holds those that it serves; one that a reload takes away is to end.
        drop(self.pools);
        if watch {
            beside.spawn(self.reloader.clone().watch());
        }
        self.server.run().await;
        drop(beside);
        self.ledger.close().await;
        self.sessions.close().await;
        listening.abort();
        tracing::info!("stopped");
    }
}

/// Says when each pool has come up, as long as what it returns is kept.
fn announce_readiness(pools: &[Pool]) -> JoinSet<()> {
    let mut announcements = JoinSet::new();
    for pool in pools {
        let pool = pool.clone();
        announcements.spawn(async move {
            let started = std::time::Instant::now();
            pool.all_ready().await;
            let took = started.elapsed().as_secs_f64();
            let workers = pool.info().view.ready;
            tracing::info!(pool = pool.name(), workers, "ready after {took:.2} s");
        });
    }
    announcements
}

fn place(store: &config::Store) -> Place {
    match &store.place {
        config::Place::Sqlite(path) => Place::Sqlite(path.clone()),
        config::Place::Postgres(url) => Place::Postgres(url.reveal().to_owned()),
    }
}

fn ledger_settings(config: &Config) -> LedgerSettings {
    let (jobs, keys) = (&config.jobs, &config.idempotency);
    LedgerSettings {
        jobs_max: jobs.max.into(),
        payload_max: jobs.payload_max,
        result_max: jobs.result_max,
        events_max: jobs.events_max.into(),
        retention: jobs.retention,
        worker_retention: config.store.worker_retention,
        schedules_max: jobs.schedules_max.into(),
        key_ttl: keys.ttl,
        keys_max: keys.max.into(),
    }
}

fn job_settings(config: &Config) -> JobSettings {
    JobSettings {
        timeout: config.jobs.timeout,
        default_pool: Some(config.default_pool().name.to_string()),
        result_max: config.jobs.result_max,
    }
}

fn settings(sessions: &config::Sessions) -> SessionSettings {
    SessionSettings {
        max: sessions.max,
        ttl: sessions.ttl,
        auto_create: sessions.auto_create,
        metadata_max: sessions.metadata_max,
        programs_max: sessions.programs_max,
        program_bytes_max: sessions.program_bytes_max,
        memory_max: sessions.memory_max,
        sweep: sessions.sweep,
    }
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    // A second server in one process keeps the first one's log.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .try_init();
}
