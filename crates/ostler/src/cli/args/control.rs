//! Arguments of the orders to pools and workers.

use std::time::Duration;

use super::super::scale::{self, Bounds};
use super::{ServerArg, timeout};

/// Give the workers of a pool nothing new; requests wait in the queue.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler pause hello
  ostler resume hello

What runs goes on. What waits keeps its deadlines, and `queue_timeout` ends its wait.")]
pub(in super::super) struct PauseArgs {
    /// The pool
    pub pool: String,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Undo a pause or a drain.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler resume hello")]
pub(in super::super) struct ResumeArgs {
    /// The pool
    pub pool: String,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Let nobody new into a pool, and wait until nothing is queued or running there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler drain hello                    wait for the end
  ostler drain hello --timeout 1m       wait that long, else end with 124
  ostler drain hello --no-wait
  ostler resume hello                   let them in again

New requests are refused with pool_draining. Ctrl-C only ends the wait; the pool drains on.")]
pub(in super::super) struct DrainArgs {
    /// The pool
    pub pool: String,

    /// Return at once
    #[arg(long)]
    pub no_wait: bool,

    /// How long to wait [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = timeout, conflicts_with = "no_wait")]
    pub timeout: Option<Duration>,

    /// Print the server's last answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Change how many workers a pool has.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler scale hello 4          four, neither more nor less
  ostler scale hello 1..8       one when there is nothing to do, up to eight when requests wait

A worker that is too many finishes what it has. The configuration stays as it is written.")]
pub(in super::super) struct ScaleArgs {
    /// The pool
    pub pool: String,

    /// How many, or the least and the most
    #[arg(value_name = "N|MIN..MAX", value_parser = scale::parse_bounds)]
    pub bounds: Bounds,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Replace a worker, or all workers of a pool, with fresh ones.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler recycle hello-2             one worker
  ostler recycle hello --rolling     all of a pool, and watch each of them

A worker leaves when its successor is ready, and finishes what it has begun; no request is lost.
Ctrl-C only ends the watching. Ends with 1 when the pool fails meanwhile.")]
pub(in super::super) struct RecycleArgs {
    /// The worker, or the pool
    #[arg(value_name = "WORKER|POOL")]
    pub what: String,

    /// Show each replacement, and return after the last one
    #[arg(long)]
    pub rolling: bool,

    /// Print the server's own answer, with --rolling the events that follow it
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Let the server read its configuration anew.
///
/// It starts one worker of each kind that is new, and only when all of those are ready it replaces
/// the old ones. Else everything stays as it was, and the command ends with 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler check && ostler reload
  ostler reload hello               only this pool
  ostler events -f --kind worker    watch the replacement")]
pub(in super::super) struct ReloadArgs {
    /// Only these pools
    #[arg(value_name = "POOL")]
    pub pools: Vec<String>,

    /// How long the new workers may take to prove themselves
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = timeout)]
    pub timeout: Duration,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}
