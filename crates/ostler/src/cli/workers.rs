//! `ostler workers`: every worker with its process and what it works on, once or watched; and orders
//! to single ones.

mod supervise;

use std::collections::HashMap;
use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::args::{WorkersAction, WorkersArgs, WorkersListArgs};
use super::call;
use super::cells::{memory, or_dash, since};
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::list::{self, Query};
use super::output;
use super::requests::Request;
use super::stats::Worker;
use super::table::Table;
use crate::text::one_line;

/// How often a watched table is drawn.
const REDRAW: Duration = Duration::from_secs(1);

/// Home, and everything below is cleared: what was there before scrolls nowhere.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

/// No server has more workers than its pools may have; this only bounds a strange answer.
const WORKERS_MAX: usize = 100_000;

/// Requests shown of one worker.
const SHOWN_MAX: usize = 2;

pub(super) async fn run(args: &WorkersArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => list(&args.list).await,
        Some(WorkersAction::List(args)) => list(args).await,
        Some(WorkersAction::Create(args)) => supervise::create(args).await,
        Some(WorkersAction::Start(args)) => supervise::start(args).await,
        Some(WorkersAction::Pause(args)) => supervise::pause(args).await,
        Some(WorkersAction::Resume(args)) => supervise::order(args, "resume").await,
        Some(WorkersAction::Complete(args)) => supervise::order(args, "complete").await,
        Some(WorkersAction::Terminate(args)) => supervise::order(args, "terminate").await,
        Some(WorkersAction::Call(args)) => call::to_worker(args).await,
    }
}

async fn list(args: &WorkersListArgs) -> Result<Exit, Failure> {
    let endpoint = Endpoint::find(&args.server)?;
    if !args.watch {
        look(args, &endpoint, "").await?;
        return Ok(Exit::Ok);
    }
    let clear = if stdout().is_terminal() && !args.json { CLEAR } else { "" };
    loop {
        // A connection for each look: a server that has gone is told from one that is slow.
        look(args, &endpoint, clear).await?;
        tokio::time::sleep(REDRAW).await;
    }
}

async fn look(args: &WorkersListArgs, endpoint: &Endpoint, clear: &str) -> Result<(), Failure> {
    let mut client = Client::connect(endpoint.clone()).await?;
    let query = Query::of("/api/workers").with_if("pool", args.pool.as_deref());
    let page = list::read(&mut client, &query, WORKERS_MAX).await?;
    if args.json {
        let body = json!({ "items": page.items, "next_cursor": page.next_cursor });
        return output::pass_on_line(body.to_string().as_bytes());
    }
    let workers: Vec<Worker> = list::parse(&page.items)?;
    let functions = functions(&mut client, &workers).await?;
    output::print(&format!("{clear}{}", render(&workers, &functions, Timestamp::now())))
}

/// Which function each request that a worker holds is a call of, as far as it is told.
async fn functions(
    client: &mut Client,
    workers: &[Worker],
) -> Result<HashMap<String, String>, Failure> {
    let mut found = HashMap::new();
    if workers.iter().all(|worker| worker.current_requests.is_empty()) {
        return Ok(found);
    }
    for state in ["PROCESSING", "STREAMING"] {
        let query = Query::of("/api/requests").with("state", state);
        let page = list::read(client, &query, list::PAGE_MAX).await?;
        let requests: Vec<Request> = list::parse(&page.items)?;
        found.extend(requests.into_iter().map(|request| (request.id, request.function)));
    }
    Ok(found)
}

fn render(workers: &[Worker], functions: &HashMap<String, String>, now: Timestamp) -> String {
    let mut table = Table::new([
        "WORKER", "POOL", "STATUS", "PHASE", "HEALTH", "PID", "LOAD", "REQUESTS", "MEMORY", "AGE",
        "WORKS ON",
    ]);
    for worker in workers {
        table.row([
            worker.incarnation(),
            worker.pool.clone(),
            worker.status.clone(),
            or_dash(worker.phase.clone()),
            or_dash(worker.health.clone()),
            or_dash(worker.pid.map(|pid| pid.to_string())),
            format!("{}/{}", worker.load, worker.capacity),
            worker.ended().to_string(),
            or_dash(worker.memory.map(memory)),
            or_dash(worker.started_at.as_deref().and_then(|at| since(at, now))),
            works_on(worker, functions),
        ]);
    }
    let mut out = table.render();
    for worker in workers {
        if let Some(complaint) = &worker.complaint {
            out.push_str(&one_line(&format!("{}: {complaint}", worker.name)));
            out.push('\n');
        }
    }
    out
}

fn works_on(worker: &Worker, functions: &HashMap<String, String>) -> String {
    let requests = &worker.current_requests;
    let shown = requests.iter().take(SHOWN_MAX).map(|id| match functions.get(id) {
        Some(function) => format!("{function} {id}"),
        None => id.clone(),
    });
    let mut shown: Vec<String> = shown.collect();
    let hidden = requests.len().saturating_sub(SHOWN_MAX);
    if hidden > 0 {
        shown.push(format!("{hidden} more"));
    }
    or_dash(Some(shown.join(", ")))
}

/// The names of the workers of a pool, or of all.
pub(super) async fn names(
    client: &mut Client,
    pool: Option<&str>,
) -> Result<Vec<(String, String)>, Failure> {
    let query = Query::of("/api/workers").with_if("pool", pool);
    let page = list::read(client, &query, WORKERS_MAX).await?;
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    Ok(page.items.iter().map(|item| (text(item, "pool"), text(item, "name"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_shows_what_it_works_on() {
        let worker = |ids: &[&str]| Worker {
            current_requests: ids.iter().map(|&id| id.to_owned()).collect(),
            ..Worker::default()
        };
        let functions = HashMap::from([("a".to_owned(), "greet".to_owned())]);
        assert_eq!(works_on(&worker(&[]), &functions), "-");
        assert_eq!(works_on(&worker(&["a", "b"]), &functions), "greet a, b");
        assert_eq!(works_on(&worker(&["a", "b", "c", "d"]), &functions), "greet a, b, 2 more");
    }
}
