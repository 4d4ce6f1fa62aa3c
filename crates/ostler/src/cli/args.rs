//! The arguments as they are typed. What they mean is decided by each command.

mod call;
mod control;
mod jobs;
mod schedules;
mod sessions;
mod trail;
mod workers;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use super::bench::QUEUED_MAX;
use super::init;
use crate::config::{PoolName, SIZE_MAX, parse_listen, units};

pub(super) use call::{CallArgs, CalledArgs};
pub(super) use control::{DrainArgs, PauseArgs, RecycleArgs, ReloadArgs, ResumeArgs, ScaleArgs};
pub(super) use jobs::{
    JobArgs, JobsAction, JobsArgs, JobsFollowArgs, JobsListArgs, JobsOrderArgs, JobsQueueArgs,
    JobsQueuesArgs, JobsShowArgs, JobsSubmitArgs,
};
pub(super) use schedules::{
    SchedulesAction, SchedulesAddArgs, SchedulesArgs, SchedulesDeleteArgs, SchedulesListArgs,
    SchedulesOrderArgs, SchedulesShowArgs,
};
pub(super) use sessions::{
    SessionsAction, SessionsArgs, SessionsCreateArgs, SessionsDeleteArgs, SessionsListArgs,
    SessionsShowArgs, SessionsStatsArgs, SessionsSweepArgs,
};
pub(super) use trail::{
    AuditAction, AuditArgs, AuditOfArgs, AuditVerifyArgs, StoreAction, StoreArgs, StoreBackupArgs,
    StoreCheckArgs,
};
pub(super) use workers::{
    WorkersAction, WorkersArgs, WorkersCallArgs, WorkersCreateArgs, WorkersListArgs,
    WorkersOrderArgs, WorkersPauseArgs,
};

/// Keeps pools of warm worker processes and lends them to programs.
#[derive(Debug, Parser)]
#[command(
    name = "ostler",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  ostler serve hello.py                          serve the functions of a file
  ostler call hello greet '{\"name\": \"ann\"}'      call one of them
  ostler status                                  see pools and workers

Exit codes: 0 ok, 1 failed, 2 usage, 3 not running, 4 degraded, 5 refused, 124 timeout."
)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Init(InitArgs),
    Check(CheckArgs),
    Serve(ServeArgs),
    Call(Box<CallArgs>),
    Status(StatusArgs),
    Workers(WorkersArgs),
    Logs(LogsArgs),
    Events(EventsArgs),
    Requests(RequestsArgs),
    Cancel(CancelArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Drain(DrainArgs),
    Scale(ScaleArgs),
    Recycle(RecycleArgs),
    Reload(ReloadArgs),
    Sessions(SessionsArgs),
    Jobs(Box<JobsArgs>),
    Schedules(SchedulesArgs),
    Audit(AuditArgs),
    Store(StoreArgs),
    Bench(BenchArgs),
    #[command(hide = true)]
    BenchServer(BenchServerArgs),
    Conform(ConformArgs),
    Doctor(DoctorArgs),
    Stop(StopArgs),
    Completions(CompletionsArgs),
}

/// Write a worker, its configuration and a test that run as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler init
  ostler init models --name embed")]
pub(super) struct InitArgs {
    /// Where to write them; made if it is not there
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,

    /// Name of the pool, and of the worker's file
    #[arg(long, value_name = "NAME", default_value = "hello", value_parser = init::parse_name)]
    pub name: PoolName,

    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
}

/// Check the configuration and the store, start one worker of each pool, then stop them.
///
/// Ends with 1 when the configuration is not valid, a worker does not become ready, or the store
/// cannot be used.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler check
  ostler check --no-start --json
  ostler check --schema > ostler.schema.json")]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub config: ConfigArg,

    /// Only read the configuration, start nothing
    #[arg(long)]
    pub no_start: bool,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,

    /// Print the JSON schema of the configuration, check nothing
    #[arg(long, conflicts_with_all = ["config", "no_start", "json"])]
    pub schema: bool,
}

/// Start the pools and serve them until a signal.
///
/// The pools come from the configuration, or from one Python file: `ostler serve hello.py` serves
/// it as the pool `hello` and needs no configuration.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  ostler serve hello.py --size 4
  ostler serve --config site/ostler.toml
  ostler serve --listen 127.0.0.1:8080 --wait

The first SIGTERM or Ctrl-C lets running requests finish, the second one does not.")]
pub(super) struct ServeArgs {
    /// A Python file to serve without a configuration
    #[arg(value_name = "FILE.py", conflicts_with = "config")]
    pub file: Option<PathBuf>,

    #[command(flatten)]
    pub config: ConfigArg,

    /// Address for HTTP, instead of the configured one; loopback only
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub listen: Option<SocketAddr>,

    /// Number of workers of each pool, instead of the configured one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(SIZE_MAX)))]
    pub size: Option<u32>,

    /// Accept requests only when every worker is ready; fail if one cannot start
    #[arg(long)]
    pub wait: bool,

    /// Reload whenever the configuration or a Python file beside a worker changes
    #[arg(long)]
    pub watch: bool,
}

/// Show the pools and workers of a running server.
///
/// Ends with 4 when a pool is not well, and with 3 when no server answers.
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show what workers have written: time, worker, stream, request, text.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler logs                    the last lines of all workers
  ostler logs hello -f           those of a pool, and what comes
  ostler logs hello-2 -n 500     those of one worker, which may be gone by now

Times are UTC. A line has the id of the request that its worker was working on, if it was one.")]
pub(super) struct LogsArgs {
    /// Only of this worker, or of the workers of this pool
    #[arg(value_name = "WORKER|POOL")]
    pub of: Option<String>,

    /// Go on with what comes, until Ctrl-C or the end of the server
    #[arg(short, long)]
    pub follow: bool,

    /// How many lines to begin with
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub lines: u16,

    /// Print each line as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show what happened in the pools, in plain words.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler events                                  what is kept, oldest first
  ostler events -f --pool hello                  and what comes
  ostler events --kind worker.crashed,pool
  ostler events -f --all --json | jq .kind

A kind is a name such as worker.ready, or all of `worker`, `pool`, `request`, `session` or `job`. Times
are UTC.")]
pub(super) struct EventsArgs {
    /// Go on with what comes, until Ctrl-C or the end of the server
    #[arg(short, long)]
    pub follow: bool,

    /// Only of this pool
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,

    /// Only of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kind: Vec<String>,

    /// Also what comes with every call; made only while somebody follows it
    #[arg(long)]
    pub all: bool,

    /// Print each event as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show the requests that live and the last that have ended, or the way of one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler requests --state PROCESSING
  ostler requests --pool hello -n 20
  ostler requests 0197f3c2-…        one, with its history

A state is PENDING, PROCESSING, STREAMING, COMPLETE, ERROR, CANCELLED or REJECTED.
Ends with 1 when the one that was named is not known.")]
pub(super) struct RequestsArgs {
    /// The id that the answer's Ostler-Request-Id said, or that the caller gave
    pub id: Option<String>,

    /// Only of this pool
    #[arg(long, value_name = "POOL", conflicts_with = "id")]
    pub pool: Option<String>,

    /// Only in this state
    #[arg(long, value_name = "STATE", conflicts_with = "id")]
    pub state: Option<String>,

    /// How many, the latest to arrive first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Cancel a request, queued or running; its caller gets its end at once.
///
/// Ends with 1 when it is not known, and with 5 when it had ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler requests --state PROCESSING
  ostler cancel 0197f3c2-…")]
pub(super) struct CancelArgs {
    /// The request, by its id
    pub id: String,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Measure a pool: latency, throughput, CPU per call, and how the server answers meanwhile.
///
/// Callers call the function over HTTP, each the next time when it has its answer: first one
/// caller, then all. The function really runs. Without a server that runs, one is started from the
/// configuration for as long as it takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler bench hello greet '{\"name\": \"ann\"}'
  ostler bench hello --callers 64 --duration 10s
  ostler bench hello greet --serve hello.py      on a server of its own
  ostler bench hello greet --json | jq '.loads[-1].per_second'

The last part measures the routes of operators, idle and with many calls in the queue, on a
server of its own whose one worker holds still; --queued 0 leaves it out. Ends with 1 when no
call succeeded.")]
pub(super) struct BenchArgs {
    /// The pool
    pub pool: String,

    /// The function [default: the first that needs no arguments]
    pub function: Option<String>,

    /// JSON, or `-` for standard input, or `@FILE`
    #[arg(value_name = "JSON|-|@FILE", allow_negative_numbers = true)]
    pub payload: Vec<OsString>,

    /// How many call at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub callers: u16,

    /// How long each load is measured
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = bench_duration)]
    pub duration: Duration,

    /// Calls that wait while the routes of operators are measured; 0: do not measure them
    #[arg(long, value_name = "N", default_value_t = QUEUED_MAX, value_parser = clap::value_parser!(u32).range(0..=i64::from(QUEUED_MAX)))]
    pub queued: u32,

    /// Start a server for this file and measure that
    #[arg(long, value_name = "FILE.py", conflicts_with_all = ["config", "url"])]
    pub serve: Option<PathBuf>,

    /// Print the figures as JSON, times in seconds
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// The server that `bench` starts for itself. It ends when its standard input does.
#[derive(Debug, clap::Args)]
pub(super) struct BenchServerArgs {
    /// A Python file to serve
    #[arg(conflicts_with = "config")]
    pub file: Option<PathBuf>,

    #[command(flatten)]
    pub config: ConfigArg,

    /// Its socket
    #[arg(long)]
    pub socket: PathBuf,

    /// Room in the queue of each pool, and an hour for who waits there
    #[arg(long)]
    pub queue_max: Option<u32>,

    /// Workers of each pool
    #[arg(long)]
    pub size: Option<u32>,
}

/// Test a program against the worker protocol.
///
/// It starts the program as a worker, over an inherited and over a named socket, plays the server,
/// and prints one line per check: pass, FAIL or skip, what was expected, what came.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler conform hello.py                              a file of functions
  ostler conform node worker.mjs                       any program
  ostler conform --transport inherited -- sh worker.sh
  ostler conform --function echo --payload '\"hi\"' -- ./worker --verbose

What a worker does not announce is skipped. Give a slow call to see that calls overlap and that a
cancel reaches one that runs. Ends with 1 when a check failed.")]
pub(super) struct ConformArgs {
    /// The function to call [default: the first that is announced]
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,

    /// What to call it with, JSON or @FILE [default: what its schema needs]
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub payload: Option<OsString>,

    /// A function that yields chunks [default: the first that says so]
    #[arg(long, value_name = "NAME")]
    pub stream_function: Option<String>,

    /// What to call that one with
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub stream_payload: Option<OsString>,

    /// A function that runs longer than the timeout unless it is cancelled
    #[arg(long, value_name = "NAME")]
    pub slow_function: Option<String>,

    /// What to call that one with
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub slow_payload: Option<OsString>,

    /// How the worker gets its stream
    #[arg(long, value_enum, default_value = "both")]
    pub transport: ConformTransport,

    /// The profile that the worker is told to run in
    #[arg(long, value_enum, default_value = "process")]
    pub profile: ConformProfile,

    /// How long the worker may take to become ready, to answer, to end
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = timeout)]
    pub timeout: Duration,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,

    /// The program and its arguments, or one Python file of functions
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ConformProfile {
    Process,
    Thread,
    Async,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ConformTransport {
    Both,
    Inherited,
    Named,
}

/// Check what this machine, the configuration and the interpreters can do.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Print the checks as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Stop the server and wait until it is gone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler stop            let running requests finish
  ostler stop --now      do not")]
pub(super) struct StopArgs {
    /// End running requests at once
    #[arg(long)]
    pub now: bool,

    /// How long to wait for the end
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = timeout)]
    pub timeout: Duration,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler completions bash > ~/.local/share/bash-completion/completions/ostler
  ostler completions fish > ~/.config/fish/completions/ostler.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Clone, clap::Args)]
pub(super) struct ConfigArg {
    /// The configuration [default: $OSTLER_CONFIG, or ostler.toml here or above]
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
}

/// How a client command finds its server.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ServerArg {
    #[command(flatten)]
    pub config: ConfigArg,

    /// Address of the server, such as http://127.0.0.1:6785, instead of its socket
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub url: Option<String>,
}

/// What goes with an order that is kept in the ledger.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct OrderArg {
    /// Why; kept with the change
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// An idempotency key: the same order again does nothing and is answered as it was
    #[arg(long, value_name = "KEY", value_parser = key_text)]
    pub key: Option<String>,
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    parse_listen(text).map_err(|(message, help)| format!("{message}; {help}"))
}

fn timeout(text: &str) -> Result<Duration, String> {
    match units::duration(text) {
        Ok(duration) if duration.is_zero() => Err("it must be longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; write for example 5s, 200ms or 1m")),
    }
}

fn bench_duration(text: &str) -> Result<Duration, String> {
    let longest = Duration::from_secs(3_600);
    timeout(text).and_then(|duration| match duration <= longest {
        true => Ok(duration),
        false => Err("at most an hour".to_owned()),
    })
}

fn header_text(text: &str) -> Result<String, String> {
    let fits = (1..=255).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic());
    match fits {
        true => Ok(text.to_owned()),
        false => Err("1 to 255 printable characters without spaces".to_owned()),
    }
}

fn key_text(text: &str) -> Result<String, String> {
    let printable = |c: char| c.is_ascii_graphic() || c == ' ';
    match (1..=255).contains(&text.len()) && text.chars().all(printable) {
        true => Ok(text.to_owned()),
        false => Err("1 to 255 printable characters".to_owned()),
    }
}

/// It is a part of paths too.
fn session_id(text: &str) -> Result<String, String> {
    match header_text(text) {
        Ok(id) if !id.contains('/') => Ok(id),
        _ => Err("1 to 255 printable characters without spaces and `/`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_declared_without_contradiction() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_call_may_ask_for_every_affinity_that_a_pool_can_have() {
        use crate::config::{Affinity, Choice as _};
        let words: Vec<&str> = Affinity::WORDS.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, call::AFFINITIES);
    }

    #[test]
    fn sessions_without_a_verb_are_listed() {
        let parse = |args: &[&str]| {
            Args::try_parse_from([&["ostler", "sessions"], args].concat()).map(|args| args.command)
        };
        let Ok(Command::Sessions(args)) = parse(&["-n", "7", "--json"]) else { panic!("a list") };
        assert_eq!((args.action.is_none(), args.list.limit, args.list.json), (true, 7, true));
        assert!(matches!(
            parse(&["show", "x"]),
            Ok(Command::Sessions(SessionsArgs { action: Some(SessionsAction::Show(_)), .. }))
        ));
        for wrong in [&["show"][..], &["--json", "show", "x"], &["create", "a b"], &["-n", "0"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
