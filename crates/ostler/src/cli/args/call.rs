//! Arguments of calls: to a pool, and to one worker.

use std::ffi::OsString;
use std::time::Duration;

use super::{ServerArg, header_text, session_id, timeout};

/// What `Ostler-Affinity` may say.
pub(super) const AFFINITIES: [&str; 3] = ["hint", "strict_queue", "strict_fail_fast"];

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
pub(in super::super) struct CallArgs {
    /// The pool
    pub pool: String,

    #[command(flatten)]
    pub called: CalledArgs,
}

/// What is called, and on which terms, whoever serves it.
#[derive(Debug, clap::Args)]
pub(in super::super) struct CalledArgs {
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
