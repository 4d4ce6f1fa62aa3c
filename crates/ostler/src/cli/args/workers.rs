//! Arguments of `ostler workers`.

use super::call::CalledArgs;
use super::{OrderArg, ServerArg, header_text};

/// Show every worker, and act on single ones.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  ostler workers                      every worker: its process, its load, what it works on
  ostler workers hello --watch
  ostler workers --json | jq -r '.items[] | select(.health == \"unhealthy\") | .name'
  ostler workers pause hello-2 --freeze --reason \"looking at it\"
  ostler workers terminate hello-2

A worker of one's own, which gets only the calls that are sent to it:
  ostler workers create hello         prints its name, such as hello-7
  ostler workers start hello-7
  ostler workers call hello-7 greet '\"ann\"'
  ostler workers complete hello-7

A change that its status does not allow is refused with those that it does (5)."
)]
pub(in super::super) struct WorkersArgs {
    #[command(subcommand)]
    pub action: Option<WorkersAction>,

    #[command(flatten)]
    pub list: WorkersListArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(in super::super) enum WorkersAction {
    List(WorkersListArgs),
    Create(WorkersCreateArgs),
    /// Put an IDLE worker into service
    Start(WorkersOrderArgs),
    Pause(WorkersPauseArgs),
    /// Put a PAUSED worker back into service
    Resume(WorkersOrderArgs),
    /// Retire a worker when nothing is pending there
    Complete(WorkersOrderArgs),
    /// End a worker by force; its processes are gone when this returns
    Terminate(WorkersOrderArgs),
    Call(Box<WorkersCallArgs>),
}

/// List them: process, load, what they work on.
#[derive(Debug, clap::Args)]
pub(in super::super) struct WorkersListArgs {
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

/// Make a worker that gets only the calls that are sent to it. Prints its name.
///
/// It is IDLE, without a process, until it is started.
#[derive(Debug, clap::Args)]
pub(in super::super) struct WorkersCreateArgs {
    /// Its pool [default: the server's default pool]
    pub pool: Option<String>,

    /// The workspace that it works for
    #[arg(long, value_name = "NAME", value_parser = header_text)]
    pub workspace: Option<String>,

    /// An idempotency key: the same command again makes no second worker
    #[arg(long, value_name = "KEY", value_parser = super::key_text)]
    pub key: Option<String>,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

#[derive(Debug, clap::Args)]
pub(in super::super) struct WorkersOrderArgs {
    /// The worker, by its name or its id
    pub worker: String,

    #[command(flatten)]
    pub order: OrderArg,

    /// Print the server's own answer
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub server: ServerArg,
}

/// Give a worker nothing new; what it works on goes on.
#[derive(Debug, clap::Args)]
pub(in super::super) struct WorkersPauseArgs {
    /// Also stop its processes where they are (SIGSTOP); deadlines go on
    #[arg(long)]
    pub freeze: bool,

    #[command(flatten)]
    pub of: WorkersOrderArgs,
}

/// Call a function on this worker and print its result, as `ostler call` does.
#[derive(Debug, clap::Args)]
pub(in super::super) struct WorkersCallArgs {
    /// The worker, by its name or its id
    pub worker: String,

    #[command(flatten)]
    pub called: CalledArgs,
}
