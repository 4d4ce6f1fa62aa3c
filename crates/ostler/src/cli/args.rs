//! The arguments as they are typed. What they mean is decided by each command.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use super::init;
use crate::config::{PoolName, SIZE_MAX, parse_listen, units};

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
    Call(CallArgs),
    Status(StatusArgs),
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
#[derive(Debug, clap::Args)]
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

fn header_text(text: &str) -> Result<String, String> {
    let fits = (1..=255).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic());
    match fits {
        true => Ok(text.to_owned()),
        false => Err("1 to 255 printable characters without spaces".to_owned()),
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
}
