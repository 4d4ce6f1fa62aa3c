//! The conformance tester: it starts a worker, plays the server, and says check by check whether
//! what came back is the protocol.
//!
//! ```text
//!  Plan ─▶ run ─▶ Bench (one per transport) ─▶ checks ─▶ Finding…
//!                   │
//!                   ├─ Launcher   contained processes over one transport
//!                   └─ Subject    one process that has said ready
//!                        └─ Ledger   what it was asked and what it answered
//! ```
//!
//! Separate from pools on purpose: a pool protects itself from a bad worker and replaces it, the
//! tester keeps it and looks closer. It shares with them the reading of the protocol
//! (`ostler-proto`) and the containment, and it knows nothing of the command line.

mod bench;
mod check;
mod checks;
mod finding;
mod launcher;
mod ledger;
mod meeting;
mod odd;
mod output;
mod schema;
mod stream;
mod subject;

use std::time::Duration;

use bytes::Bytes;
use ostler_proto::Limits;
use ostler_runtime::containment::{RootOptions, RootShim};
use ostler_runtime::{Profile, Program, PythonError};

pub(crate) use check::Group;
pub(crate) use finding::{Finding, Report, Verdict};

use bench::Bench;
use check::Check;
use launcher::Launcher;

/// What the worker is told of sizes. Small, so that a message near the limit costs little.
const LIMITS: Limits = Limits { max_frame: (1 << 20) + (4 << 10), max_line: 1 << 20 };

/// How the worker gets its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Inherited,
    Named,
}

impl Transport {
    pub const ALL: [Transport; 2] = [Transport::Inherited, Transport::Named];

    pub fn name(self) -> &'static str {
        match self {
            Transport::Inherited => "inherited",
            Transport::Named => "named",
        }
    }
}

/// A function and what to call it with. What is not given is found in `ready`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub function: Option<String>,
    pub payload: Option<Bytes>,
}

/// What to test, and how.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub program: Program,
    /// What the worker is told of how it is to run its functions.
    pub profile: Profile,
    pub transports: Vec<Transport>,
    pub call: Target,
    /// A call that yields chunks.
    pub stream: Option<Target>,
    /// A call that lasts longer than the timeout unless it is cancelled.
    pub slow: Option<Target>,
    /// For each single wait.
    pub timeout: Duration,
}

/// Why nothing could be tested.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotTest {
    #[error(transparent)]
    Python(#[from] PythonError),
    #[error("cannot start the root shim: {0}")]
    Root(std::io::Error),
    #[error("{0}")]
    Spawn(String),
    #[error("interrupted")]
    Interrupted,
}

/// Runs every check over every transport of the plan, unless `interrupted` comes first. Nothing of
/// the worker is left when it returns.
pub(crate) async fn run(
    plan: &Plan,
    interrupted: impl Future<Output = ()>,
) -> Result<Report, CannotTest> {
    let program = plan.program.resolve(&[]).await?;
    let options = RootOptions::new("conform").map_err(CannotTest::Root)?;
    let root = RootShim::start(options).await.map_err(CannotTest::Root)?;
    let report = tokio::select! {
        report = test(plan, Launcher::new(&root, &program, plan.profile)) => report,
        () = interrupted => Err(CannotTest::Interrupted),
    };
    root.close().await;
    report
}

async fn test(plan: &Plan, launcher: Launcher<'_>) -> Result<Report, CannotTest> {
    let mut report = Report::default();
    for transport in &plan.transports {
        let mut bench = Bench::new(plan, launcher.over(*transport));
        for check in Check::ALL {
            report.findings.push(bench.judge(check).await?);
        }
        bench.clear().await;
    }
    Ok(report)
}
