//! Arguments of `ostler audit` and `ostler store`.

use std::path::PathBuf;

use super::{ConfigArg, ServerArg};

/// Show every change of a worker's or a job's status, and prove that none is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler audit worker hello-2         also one that has ended
  ostler audit job j_019a…
  ostler audit verify")]
pub(in super::super) struct AuditArgs {
    #[command(subcommand)]
    pub action: AuditAction,
}

#[derive(Debug, clap::Subcommand)]
pub(in super::super) enum AuditAction {
    /// Show the changes of a worker's status, oldest first
    Worker(AuditOfArgs),
    /// Show the changes of a job's status, oldest first
    Job(AuditOfArgs),
    Verify(AuditVerifyArgs),
}

#[derive(Debug, clap::Args)]
pub(in super::super) struct AuditOfArgs {
    /// Its id, or the name of a worker
    pub id: String,

    /// How many at most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub limit: u32,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Replay the changes of every worker and every job, and compare them with what is there.
///
/// Ends with 1 when something does not fit.
#[derive(Debug, clap::Args)]
pub(in super::super) struct AuditVerifyArgs {
    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Check what must survive a restart, or copy it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ostler store check
  ostler store backup /var/backups/ostler.db
  ostler store check --store /var/backups/ostler.db

Both work while a server uses the store, and while none does. A PostgreSQL database is copied with
pg_dump.")]
pub(in super::super) struct StoreArgs {
    #[command(subcommand)]
    pub action: StoreAction,
}

#[derive(Debug, clap::Subcommand)]
pub(in super::super) enum StoreAction {
    Check(StoreCheckArgs),
    Backup(StoreBackupArgs),
}

/// Read all of the store: its checksums, and every change of status.
///
/// Ends with 1 when something does not fit.
#[derive(Debug, clap::Args)]
pub(in super::super) struct StoreCheckArgs {
    /// This file instead of the configured store
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub store: Option<PathBuf>,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub config: ConfigArg,
}

/// Write a copy of the store that can be opened, to a file that is not there yet.
#[derive(Debug, clap::Args)]
pub(in super::super) struct StoreBackupArgs {
    /// The file to write
    pub to: PathBuf,

    /// This file instead of the configured store
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub store: Option<PathBuf>,

    /// Print what was written as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub config: ConfigArg,
}
