//! The arguments as they are typed. What they mean is decided by each command.

mod control;
mod sessions;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use super::bench::QUEUED_MAX;
use super::init;
use crate::config::{PoolName, SIZE_MAX, parse_listen, units};

pub(super) use control::{DrainArgs, PauseArgs, RecycleArgs, ReloadArgs, ResumeArgs, ScaleArgs};
pub(super) use sessions::{
    SessionsAction, SessionsArgs, SessionsCreateArgs, SessionsDeleteArgs, SessionsListArgs,
    SessionsShowArgs, SessionsStatsArgs, SessionsSweepArgs,
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

/// What `Ostler-Affinity` may say.
const AFFINITIES: [&str; 3] = ["hint", "strict_queue", "strict_fail_fast"];

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Init(InitArgs),
    Check(CheckArgs),
    Serve(ServeArgs),
    Call(CallArgs),
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

/// Check the configuration and start one worker of each pool, then stop them.
///
/// Ends with 1 when the configuration is not valid or a worker does not become ready.
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

/// Call a function of a pool and print its result.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The payload: an object is keyword arguments, an array positional ones, any other value the one
argument; none at all is no argument.

Examples:
  ostler call hello greet '{\"name\": \"ann\"}'
  ostler call hello greet '\"ann\"'
  ostler call hello count '[3]' --stream
  ostler call model predict @features.json --timeout 5s
  ostler call agent turn '\"hello\"' --session ann --stream
  producer | ostler call model predict -")]
pub(super) struct CallArgs {
    /// The pool
    pub pool: String,

    /// The function
    pub function: String,

    /// JSON, or `-` for standard input, or `@FILE`
    #[arg(value_name = "JSON|-|@FILE", allow_negative_numbers = true)]
    pub payload: Vec<OsString>,

    /// Print each chunk on a line of its own as it arrives
    #[arg(long)]
    pub stream: bool,

    /// Time until the deadline of the request: 5, 5s, 200ms, 1m
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub timeout: Option<Duration>,

    /// Print a result that is a text without its quotes, and add no newline
    #[arg(long, conflicts_with = "stream")]
    pub raw: bool,

    /// Name the request, to find it again in logs and answers
    #[arg(long, value_name = "ID", value_parser = header_text)]
    pub request_id: Option<String>,

    /// The call may run twice without harm, so a crash may be retried
    #[arg(long)]
    pub idempotent: bool,

    /// The session that the call belongs to; made if it is not there
    #[arg(long, value_name = "ID", value_parser = session_id)]
    pub session: Option<String>,

    /// How the call keeps to the worker of its session [default: the pool's `affinity`]
    #[arg(long, value_name = "MODE", requires = "session", value_parser = AFFINITIES)]
    pub affinity: Option<String>,

    /// The workspace that the call belongs to
    #[arg(long, value_name = "NAME", value_parser = header_text)]
    pub workspace: Option<String>,

    /// Place in the queue: -100 (last) to 100 (first)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub priority: Option<i8>,

    #[command(flatten)]
    pub server: ServerArg,
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

/// Show every worker: its process, its load, what it works on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler workers
  ostler workers hello --watch
  ostler workers --json | jq -r '.items[] | select(.health == \"unhealthy\") | .name'")]
pub(super) struct WorkersArgs {
    /// Only the workers of this pool
    pub pool: Option<String>,

    /// Draw the table again every second, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,

    /// Print the server's own answer, with --watch a line for each look
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

A kind is a name such as worker.ready, or all of `worker`, `pool`, `request` or `session`. Times are
UTC.")]
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
        assert_eq!(words, AFFINITIES);
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
