//! A server made of a configuration: pools started, doors opened, signals heeded.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use ostler_runtime::{Directory, EVENTS_KEPT, EventLog, Pool, PoolSpec, StartError};
use ostler_server::{BindError, Server, ServerSettings};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing_subscriber::EnvFilter;

use crate::config::Config;
use crate::spec::spec;

/// Sets how much is logged, in the syntax of `tracing_subscriber`.
const LOG_VARIABLE: &str = "OSTLER_LOG";

#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    #[error(transparent)]
    Pool(#[from] StartError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("pool `{pool}` did not come up: {why}")]
    NotReady { pool: String, why: String },
}

#[derive(Debug)]
pub(crate) struct Daemon {
    pools: Vec<Pool>,
    server: Server,
    start_timeout: Duration,
}

impl Daemon {
    pub async fn start(config: &Config) -> Result<Daemon, DaemonError> {
        log_to_stderr();
        // The workers of one server may call each other's pools, and there is one log for all.
        let (directory, events) = (Directory::new(), Arc::new(EventLog::new(EVENTS_KEPT)));
        let mut pools = Vec::new();
        for pool in &config.pools {
            let spec = PoolSpec {
                directory: directory.clone(),
                events: Arc::clone(&events),
                ..spec(pool, &config.server)
            };
            pools.push(Pool::start(spec).await?);
        }
        let settings = ServerSettings {
            listen: config.server.listen,
            socket: config.server.socket.clone(),
            max_body: config.server.max_body,
            version: env!("CARGO_PKG_VERSION"),
        };
        let server = Server::bind(settings, pools.clone()).await?;
        tracing::info!("listening on http://{}", server.local_addr());
        let start_timeout = config.pools.iter().map(|pool| pool.start.timeout).max();
        Ok(Daemon { pools, server, start_timeout: start_timeout.unwrap_or_default() })
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
    pub async fn run(self) {
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
        let announcements = announce_readiness(&self.pools);
        self.server.run().await;
        drop(announcements);
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
