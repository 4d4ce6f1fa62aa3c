//! Arguments of `ostler schedules`.

use super::jobs::JobArgs;
use super::{OrderArg, ServerArg, key_text};

/// Submit the same job again and again.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  ostler schedules                                 the list, with the next time of each
  ostler schedules add digest '0 6 * * *' mail digest --timezone Europe/Berlin
  ostler schedules add poll '@every 90s' feed poll '[\"news\"]' --max-attempts 1
  ostler schedules pause digest
  ostler jobs --schedule s_019a…                   what came of one

Times: five fields (minute, hour, day, month, weekday), @hourly, @daily, @weekly, @monthly, @yearly,
or @every and a time. Times that pass while no server runs count once."
)]
pub(in super::super) struct SchedulesArgs {
    #[command(subcommand)]
    pub action: Option<SchedulesAction>,

    #[command(flatten)]
    pub list: SchedulesListArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(in super::super) enum SchedulesAction {
    List(SchedulesListArgs),
    Add(Box<SchedulesAddArgs>),
    Show(SchedulesShowArgs),
    /// Submit no more until it is resumed; times that pass meanwhile are left out
    Pause(SchedulesOrderArgs),
    /// Go on with the next time
    Resume(SchedulesOrderArgs),
    Delete(SchedulesDeleteArgs),
}

/// List them, the oldest first.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SchedulesListArgs {
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: u32,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Add one. Prints its id.
///
/// Ends with 5 when there is one of this name, or its times are not understood.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SchedulesAddArgs {
    /// Its name
    pub name: String,

    /// When: '*/5 * * * *', @daily, '@every 90s'
    pub cron: String,

    /// The pool
    pub pool: String,

    #[command(flatten)]
    pub job: JobArgs,

    /// Where the clock hangs, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,

    /// What if the last job has no end yet: leave this time out, or not [default: skip]
    #[arg(long, value_name = "HOW", value_parser = ["skip", "allow"])]
    pub overlap: Option<String>,

    /// Add it paused
    #[arg(long)]
    pub paused: bool,

    /// An idempotency key: the same command again is answered as it was
    #[arg(long, value_name = "KEY", value_parser = key_text)]
    pub key: Option<String>,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Show one, and the job that it submits.
///
/// Ends with 1 when it is not there.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SchedulesShowArgs {
    /// The schedule, by its name or its id
    pub schedule: String,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

#[derive(Debug, clap::Args)]
pub(in super::super) struct SchedulesOrderArgs {
    /// The schedule, by its name or its id
    pub schedule: String,

    #[command(flatten)]
    pub order: OrderArg,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Remove one. Jobs that it has submitted go on.
#[derive(Debug, clap::Args)]
pub(in super::super) struct SchedulesDeleteArgs {
    /// The schedule, by its name or its id
    pub schedule: String,

    #[command(flatten)]
    pub server: ServerArg,
}
