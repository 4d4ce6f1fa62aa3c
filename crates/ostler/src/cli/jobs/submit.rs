//! `ostler jobs submit`: one job, and as much of what becomes of it as the caller waits for.

use std::time::Duration;

use bytes::Bytes;

use super::super::args::JobsSubmitArgs;
use super::super::change::Change;
use super::super::client::Client;
use super::super::endpoint::Endpoint;
use super::super::exit::{Exit, Failure};
use super::super::{list, output};
use super::order::Order;
use super::{Job, follow};
use crate::config::units::show_duration;
use crate::text::one_line;

/// What is acknowledged is on the disk; a disk may be slow.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(args: &JobsSubmitArgs) -> Result<Exit, Failure> {
    let endpoint = Endpoint::find(&args.server)?;
    let body = submitted(args, endpoint.clone()).await?;
    let job: Job = list::understood(serde_json::from_slice(&body))?;
    if job.known == Some(true) {
        eprintln!("ostler: this is the job that has the unique key already");
    }
    if let Some(time) = args.wait {
        return waited(endpoint, &job.id, time).await;
    }
    // Before what follows: whoever is interrupted can come back to it.
    match args.json {
        true => output::pass_on_line(&body)?,
        false => output::print(&format!("{}\n", one_line(&job.id)))?,
    }
    match args.follow {
        true => follow::show(endpoint, &job.id, args.json).await,
        false => Ok(Exit::Ok),
    }
}

async fn submitted(args: &JobsSubmitArgs, endpoint: Endpoint) -> Result<Bytes, Failure> {
    let mut order = Order::of(&args.pool, &args.job)?;
    order.run_at = args.run_at.map(|at| at.to_string());
    order.parent_job_id = args.parent.as_deref();
    let mut client = Client::connect(endpoint).await?;
    let change = Change::post("/api/jobs").with(&order).under(args.key.as_deref());
    change.within(PATIENCE).ask(&mut client).await
}

async fn waited(endpoint: Endpoint, id: &str, time: Option<Duration>) -> Result<Exit, Failure> {
    let end = follow::wait(endpoint, id);
    let Some(time) = time else {
        return end.await;
    };
    match tokio::time::timeout(time, end).await {
        Ok(ended) => ended,
        Err(_) => Err(Failure::new(
            Exit::Timeout,
            format!(
                "job {id} has no end after {}; it goes on\n  \
                 follow it with: ostler jobs follow {id}",
                show_duration(time)
            ),
        )),
    }
}
