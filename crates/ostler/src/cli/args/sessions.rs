//! Arguments of `ostler sessions`.

use std::ffi::OsString;
use std::time::Duration;

use super::super::sessions;
use super::{ServerArg, session_id, timeout};

/// Show, make and remove the sessions of a server.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  ostler sessions                                  the list
  ostler sessions show s_41
  ostler sessions create ann --metadata '{\"name\": \"Ann\"}' --ttl 1d
  ostler sessions delete ann
  ostler call agent turn '\"hello\"' --session ann

A call that names a session makes it, unless `auto_create` is off."
)]
pub(in super::super) struct SessionsArgs {
    #[command(subcommand)]
    pub action: Option<SessionsAction>,

    #[command(flatten)]
    pub list: SessionsListArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(in super::super) enum SessionsAction {
    List(SessionsListArgs),
    Show(SessionsShowArgs),
    Create(SessionsCreateArgs),
    Delete(SessionsDeleteArgs),
    Sweep(SessionsSweepArgs),
    Stats(SessionsStatsArgs),
}

/// List them by their ids; that keeps none of them alive.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SessionsListArgs {
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub limit: u32,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show one, its metadata and its programs; that counts as using it.
///
/// Ends with 1 when it is not there.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SessionsShowArgs {
    /// The session
    pub id: String,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Make one. Prints its id.
///
/// Ends with 5 when there is one with this id, or no room for one more.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SessionsCreateArgs {
    /// Its id [default: the server makes one]
    #[arg(value_parser = session_id)]
    pub id: Option<String>,

    /// What to keep in it: a JSON object, or `-` for standard input, or `@FILE`
    #[arg(long, value_name = "JSON|-|@FILE")]
    pub metadata: Option<OsString>,

    /// How long it lives without a call [default: the `ttl` of [sessions]]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub ttl: Option<Duration>,

    /// When it ends in any case, such as 2030-01-31T12:00:00Z [default: never]
    #[arg(long, value_name = "MOMENT", value_parser = sessions::parse_moment)]
    pub expires_at: Option<jiff::Timestamp>,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Remove one, with everything in it.
///
/// Ends with 1 when it is not there, and with 5 when it is not the version that was named.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SessionsDeleteArgs {
    /// The session
    pub id: String,

    /// Only if it is still this version
    #[arg(long, value_name = "N")]
    pub version: Option<u64>,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Remove those that have expired now, and say how many.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SessionsSweepArgs {
    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show how many there are, what they take, and what became of the others.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SessionsStatsArgs {
    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}
