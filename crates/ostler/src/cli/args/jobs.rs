//! Arguments of `ostler jobs`.

use std::ffi::OsString;
use std::time::Duration;

use super::super::jobs::{self, Backoff};
use super::{OrderArg, ServerArg, key_text, session_id, timeout};

/// Submit durable work and see what becomes of it.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  ostler jobs                                      the last ones
  ostler jobs --status FAILED --pool video
  ostler jobs submit video encode '{\"file\": \"a.mov\"}' --follow
  ostler jobs submit video encode @args.json --run-at 2h --max-attempts 5
  ostler jobs show j_019a…
  ostler jobs follow j_019a…
  ostler jobs cancel j_019a… --reason \"wrong file\"
  ostler jobs pause nightly                        and resume

A job survives the server: once its id is printed it is stored."
)]
pub(in super::super) struct JobsArgs {
    #[command(subcommand)]
    pub action: Option<JobsAction>,

    #[command(flatten)]
    pub list: JobsListArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(in super::super) enum JobsAction {
    Submit(Box<JobsSubmitArgs>),
    List(Box<JobsListArgs>),
    Show(JobsShowArgs),
    Follow(JobsFollowArgs),
    /// Cancel a job and all that it has submitted
    ///
    /// One that runs is CANCELED once its work has let go. Ends with 1 when it is not known, and
    /// with 5 when it had ended.
    Cancel(JobsOrderArgs),
    /// Submit a job again that failed or was cancelled. Prints the id of the new one
    ///
    /// Ends with 1 when it is not known, and with 5 when it runs or has completed.
    Retry(JobsOrderArgs),
    /// Start no more jobs of a queue; those that run go on
    Pause(JobsQueueArgs),
    /// Let the jobs of a queue go on
    Resume(JobsQueueArgs),
    Queues(JobsQueuesArgs),
}

/// Submit a job. Prints its id, or with --wait its result.
///
/// With --wait or --follow it ends as the job does: 0 completed, 1 failed, 5 cancelled, 124 out of
/// time. Ctrl-C ends the waiting only.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler jobs submit video encode '{\"file\": \"a.mov\"}'
  ostler jobs submit video encode @args.json --wait
  ostler jobs submit video split '[\"a.mov\"]' --workers 4 --follow
  ostler jobs submit mail digest --unique-key today --run-at 2030-01-31T06:00:00Z
  ostler jobs submit mail send '[\"ann\"]' --key order-17      the same again is no second job")]
pub(in super::super) struct JobsSubmitArgs {
    /// The pool
    pub pool: String,

    #[command(flatten)]
    pub job: JobArgs,

    /// Not before: a moment such as 2030-01-31T12:00:00Z, or from now: 10m
    #[arg(long, value_name = "WHEN", value_parser = jobs::parse_when)]
    pub run_at: Option<jiff::Timestamp>,

    /// The job that it is a part of
    #[arg(long, value_name = "JOB")]
    pub parent: Option<String>,

    /// An idempotency key: the same command again makes no second job
    #[arg(long, value_name = "KEY", value_parser = key_text)]
    pub key: Option<String>,

    /// Wait for its end, or that long, and print its result
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, value_parser = timeout, conflicts_with = "follow")]
    pub wait: Option<Option<Duration>>,

    /// Show what it says and what becomes of it, then its result
    #[arg(long)]
    pub follow: bool,

    /// Print the server's own answer, with --follow each event
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// What is to be done, once or by a schedule.
#[derive(Debug, clap::Args)]
pub(in super::super) struct JobArgs {
    /// The function
    pub function: String,

    /// JSON, or `-` for standard input, or `@FILE`
    #[arg(value_name = "JSON|-|@FILE", allow_negative_numbers = true)]
    pub payload: Vec<OsString>,

    /// The queue, which can be paused
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,

    /// -100 (last) to 100 (first)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub priority: Option<i8>,

    /// From its start to its end, attempts and children included [default: that of [jobs]]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub timeout: Option<Duration>,

    /// How often it is tried; 1: never twice, whatever happens [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_attempts: Option<u32>,

    /// Try again after any exception, not only after a crash or what calls itself retryable
    #[arg(long)]
    pub retry_on_error: bool,

    /// Wait between attempts: the first, and the most that it is doubled to
    #[arg(long, value_name = "TIME[..TIME]", value_parser = jobs::parse_backoff)]
    pub backoff: Option<Backoff>,

    /// How many workers it has at once, each with its shard [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub workers: Option<u32>,

    /// While a job of this function with this key has no end, it is the one
    #[arg(long, value_name = "KEY")]
    pub unique_key: Option<String>,

    /// Of the jobs with this key only --concurrency-limit run at a time
    #[arg(long, value_name = "KEY")]
    pub concurrency_key: Option<String>,

    /// How many of them [default: 1]
    #[arg(long, value_name = "N", requires = "concurrency_key", value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency_limit: Option<u32>,

    /// A name and a value to find it by; several times for several
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = jobs::parse_tag)]
    pub tags: Vec<(String, String)>,

    /// What it is about, for people
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// The session that its calls belong to
    #[arg(long, value_name = "ID", value_parser = session_id)]
    pub session: Option<String>,

    /// The workspace that it belongs to
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,

    /// Do not wait for the jobs that it submits
    #[arg(long)]
    pub ignore_children: bool,
}

/// List them, the youngest first.
#[derive(Debug, clap::Args)]
pub(in super::super) struct JobsListArgs {
    /// Only SUBMITTED, PENDING, RUNNING, COMPLETED, FAILED or CANCELED ones
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,

    /// Only of this pool
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,

    /// Only of this queue
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,

    /// Only calls of this function
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,

    /// Only of this workspace
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,

    /// Only children of this job
    #[arg(long, value_name = "JOB")]
    pub parent: Option<String>,

    /// Only this job and all below it
    #[arg(long, value_name = "JOB")]
    pub root: Option<String>,

    /// Only those that this schedule submitted, by its id
    #[arg(long, value_name = "ID")]
    pub schedule: Option<String>,

    /// Only with this tag
    #[arg(long, value_name = "NAME=VALUE", value_parser = jobs::parse_tag)]
    pub tag: Option<(String, String)>,

    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: u32,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show one: what it is to do, its attempts, its result, and every change of its status.
///
/// Ends with 1 when it is not known.
#[derive(Debug, clap::Args)]
pub(in super::super) struct JobsShowArgs {
    /// The job
    pub id: String,

    /// Print the server's own answer, and the attempts in `attempt_history`
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show what a job says and what becomes of it, from its beginning to its end, then its result.
///
/// A lost connection is made anew, and nothing is missed. Ends as the job does: 0 completed, 1
/// failed, 5 cancelled, 124 out of time.
#[derive(Debug, clap::Args)]
pub(in super::super) struct JobsFollowArgs {
    /// The job
    pub id: String,

    /// Print each event as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

#[derive(Debug, clap::Args)]
pub(in super::super) struct JobsOrderArgs {
    /// The job
    pub id: String,

    #[command(flatten)]
    pub order: OrderArg,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

#[derive(Debug, clap::Args)]
pub(in super::super) struct JobsQueueArgs {
    /// The queue
    #[arg(default_value = "default")]
    pub queue: String,

    #[command(flatten)]
    pub order: OrderArg,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show the queues that are paused or have jobs without an end.
#[derive(Debug, clap::Args)]
pub(in super::super) struct JobsQueuesArgs {
    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}
