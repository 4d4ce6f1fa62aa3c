//! `ostler drain`: lets nobody new into a pool, and waits until those inside are served.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::args::DrainArgs;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::order::{self, Told};
use super::stats::Pool;
use crate::config::units::show_duration;
use crate::text::one_line;

/// How often it is looked what is left.
const LOOK: Duration = Duration::from_millis(100);

pub(super) async fn run(args: &DrainArgs) -> Result<Exit, Failure> {
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let told = order::give(&mut client, &args.pool, "drain", None).await?;
    if args.no_wait {
        told.show(args.json, &format!("{}: draining; {}", args.pool, order::holds(&told.pool)))?;
        return Ok(Exit::Ok);
    }
    let mut progress = Progress::new();
    let told = until_drained(&mut client, args, told, deadline, &mut progress).await;
    progress.clear();
    told?.show(args.json, &format!("{}: drained, nothing waits or runs", args.pool))?;
    Ok(Exit::Ok)
}

async fn until_drained(
    client: &mut Client,
    args: &DrainArgs,
    mut told: Told,
    deadline: Option<Instant>,
    progress: &mut Progress,
) -> Result<Told, Failure> {
    while !is_drained(&told.pool) {
        if !matches!(told.pool.lifecycle.as_str(), "draining" | "stopped") {
            let state = &told.pool.lifecycle;
            return Err(Failure::failed(format!(
                "{}: the pool is {state} and drains no more; did somebody resume it?",
                args.pool
            )));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(too_late(args, &told.pool));
        }
        progress.show(&format!("{}: {}", args.pool, order::holds(&told.pool)));
        sleep(LOOK).await;
        told = order::look(client, &args.pool).await?;
    }
    Ok(told)
}

fn is_drained(pool: &Pool) -> bool {
    pool.queue_length == 0 && pool.running == 0
}

fn too_late(args: &DrainArgs, pool: &Pool) -> Failure {
    let after = args.timeout.map(show_duration).unwrap_or_default();
    let (name, holds) = (&args.pool, order::holds(pool));
    Failure::new(
        Exit::Timeout,
        format!(
            "{name} is not empty after {after}: {holds}; it drains on, unless you: ostler resume {name}"
        ),
    )
}

/// One line on the terminal that is written over; nothing anywhere else.
#[derive(Debug)]
struct Progress {
    terminal: bool,
}

impl Progress {
    fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, text: &str) {
        self.write(&one_line(text));
    }

    fn clear(&mut self) {
        self.write("");
    }

    /// It is only for the eye: that it cannot be written is no failure.
    fn write(&mut self, text: &str) {
        if self.terminal {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\u{1b}[K{text}").and_then(|()| err.flush());
        }
    }
}
