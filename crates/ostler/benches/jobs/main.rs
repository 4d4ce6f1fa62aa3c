//! Jobs per second, from the first submission to the last end, as clients see it over HTTP.
//!
//! ```text
//! cargo bench -p ostler --bench jobs -- [--store sqlite|memory|postgres] [--jobs N] [--clients N]
//! ```
//!
//! The server is the built command in a process of its own. Every figure counts only what was
//! acknowledged and is there in the end: the last part kills the server in the middle of a run,
//! starts it again, and looks for every job that a client was told of.
//!
//! `memory` is SQLite on a file system without a disk: what is left when syncing costs nothing.
//! `postgres` takes the server that OSTLER_TEST_POSTGRES names.

mod client;
mod load;
mod server;

use std::time::Duration;

use clap::{Parser, ValueEnum};

use self::load::{Load, Run};
use self::server::{Place, Server};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const BATCH: usize = 100;

/// What one client alone submits: so many fewer, because it waits for every commit.
const ALONE: usize = 10;

#[derive(Debug, Parser)]
struct Args {
    #[arg(long, value_enum, default_value = "sqlite")]
    store: Store,
    /// Of each part.
    #[arg(long, default_value_t = 20_000)]
    jobs: usize,
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Said by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Store {
    Sqlite,
    Memory,
    Postgres,
}

fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&args))
}

async fn measure(args: &Args) -> Result<(), Failure> {
    let place = Place::of(args.store)?;
    let mut server = Server::start(&place).await?;
    println!("{:<28} {:>12} {:>18}", "", "submitted/s", "submitted→done/s");
    let alone = Load { queue: "alone", jobs: args.jobs / ALONE, clients: 1, batch: 1 };
    let alone = report("one client, one by one", alone.run(&server).await?, None);
    let single = Load { queue: "single", jobs: args.jobs, clients: args.clients, batch: 1 };
    report(
        &format!("{} clients, one by one", args.clients),
        single.run(&server).await?,
        Some(alone),
    );
    let batches = Load { queue: "batches", batch: BATCH, ..single };
    report(
        &format!("{} clients, by {BATCH}", args.clients),
        batches.run(&server).await?,
        Some(alone),
    );
    prove(&mut server, &single).await
}

/// What was submitted per second; beside it how many times that of one client alone.
fn report(what: &str, run: Run, alone: Option<f64>) -> f64 {
    let rate = |time: Duration| run.jobs as f64 / time.as_secs_f64();
    let (submitted, done) = (rate(run.submitted), rate(run.done));
    let ratio = alone.map_or_else(String::new, |alone| format!("  ×{:.1}", submitted / alone));
    println!("{what:<28} {submitted:>12.0} {done:>18.0}{ratio}");
    submitted
}

/// Kills the server while clients submit and jobs run. Whatever was acknowledged must come to its
/// end under the next one.
async fn prove(server: &mut Server<'_>, like: &Load) -> Result<(), Failure> {
    let load = Load { queue: "proof", ..*like };
    let acknowledged = load.cut_short(server).await?;
    let rest = load.settle(server).await?;
    let missing = acknowledged.iter().filter(|id| !rest.contains(*id)).count();
    println!(
        "kill -9 after {} acknowledged of {}: {} are there and completed, {missing} are missing",
        acknowledged.len(),
        load.jobs,
        acknowledged.len() - missing,
    );
    if missing > 0 { Err("acknowledged jobs are missing".into()) } else { Ok(()) }
}
