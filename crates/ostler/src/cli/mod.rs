//! The `ostler` command: arguments in, an exit code out.
//!
//! Separate from the library so that nothing of it is needed to embed a pool. Commands talk to a
//! running server over HTTP only; what they print for people is made safe for a terminal first.

mod args;
mod audit;
mod bench;
mod call;
mod cancel;
mod cells;
mod change;
mod check;
mod client;
mod completions;
mod conform;
mod doctor;
mod drain;
mod endpoint;
mod events;
mod exit;
mod init;
mod jobs;
mod list;
mod logs;
mod order;
mod output;
mod pause;
mod payload;
mod problem;
mod recycle;
mod reload;
mod requests;
mod scale;
mod schedules;
mod serve;
mod sessions;
mod sse;
mod stats;
mod status;
mod stop;
mod store;
mod table;
mod workers;

use std::ffi::OsString;
use std::future::Future;

use clap::Parser as _;

pub use exit::Exit;

use args::{Args, Command};
use exit::Failure;

/// Runs the command that the arguments ask for.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let result = match args.command {
        Command::Init(args) => init::run(&args),
        Command::Check(args) => block_on(check::run(&args)),
        Command::Serve(args) => serve::run(&args),
        Command::Call(args) => block_on(call::run(&args)),
        Command::Status(args) => block_on(status::run(&args)),
        Command::Workers(args) => block_on(workers::run(&args)),
        Command::Logs(args) => block_on(logs::run(&args)),
        Command::Events(args) => block_on(events::run(&args)),
        Command::Requests(args) => block_on(requests::run(&args)),
        Command::Cancel(args) => block_on(cancel::run(&args)),
        Command::Pause(args) => block_on(pause::pause(&args)),
        Command::Resume(args) => block_on(pause::resume(&args)),
        Command::Drain(args) => block_on(drain::run(&args)),
        Command::Scale(args) => block_on(scale::run(&args)),
        Command::Recycle(args) => block_on(recycle::run(&args)),
        Command::Reload(args) => block_on(reload::run(&args)),
        Command::Sessions(args) => block_on(sessions::run(&args)),
        Command::Jobs(args) => block_on(jobs::run(&args)),
        Command::Schedules(args) => block_on(schedules::run(&args)),
        Command::Audit(args) => block_on(audit::run(&args)),
        Command::Store(args) => block_on(store::run(&args)),
        Command::Bench(args) => block_on(bench::run(&args)),
        Command::BenchServer(args) => bench::serve(args),
        Command::Conform(args) => block_on(conform::run(&args)),
        Command::Doctor(args) => block_on(doctor::run(&args)),
        Command::Stop(args) => block_on(stop::run(&args)),
        Command::Completions(args) => completions::run(&args),
    };
    result.unwrap_or_else(|failure| failure.report())
}

/// Help and version are answers, everything else that clap says is a mistake in the arguments.
fn usage(error: &clap::Error) -> Exit {
    let printed = error.print();
    match error.use_stderr() {
        true => Exit::Usage,
        false if printed.is_err() => Exit::Failed,
        false => Exit::Ok,
    }
}

/// A client command waits for one server; one thread is plenty.
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the event loop: {error}")))?
        .block_on(command)
}
