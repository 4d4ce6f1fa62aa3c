//! The arguments as they are typed. What they mean is decided by each command.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::config::{SIZE_MAX, parse_listen, units};

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
    Serve(ServeArgs),
    Call(CallArgs),
    Status(StatusArgs),
    Doctor(DoctorArgs),
    Stop(StopArgs),
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
