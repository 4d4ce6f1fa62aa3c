//! Orders to one worker. What its status allows is the server's to say.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::args::{WorkersCreateArgs, WorkersOrderArgs, WorkersPauseArgs};
use super::super::call::path_segment;
use super::super::change::Change;
use super::super::client::Client;
use super::super::endpoint::Endpoint;
use super::super::exit::{Exit, Failure};
use super::super::stats::Worker;
use super::super::{list, output};
use crate::text::one_line;

const SEE: &str = "ostler workers";

/// A worker that has to let go of its work may take its `supervisor_timeout`; beyond that the server
/// itself gives it up.
const PATIENCE: Duration = Duration::from_secs(3_600);

pub(super) async fn create(args: &WorkersCreateArgs) -> Result<Exit, Failure> {
    let mut new = Map::new();
    new.extend(args.pool.clone().map(|pool| ("pool".to_owned(), pool.into())));
    let workspace = args.workspace.clone();
    new.extend(workspace.map(|workspace| ("workspace_id".to_owned(), workspace.into())));
    let change = Change::post("/api/workers").with(&new);
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let body = change.under(args.key.as_deref()).ask(&mut client).await?;
    if args.json {
        output::pass_on_line(&body)?;
        return Ok(Exit::Ok);
    }
    let worker: Worker = list::understood(serde_json::from_slice(&body))?;
    output::print(&format!("{}\n", one_line(&worker.name)))?;
    Ok(Exit::Ok)
}

pub(super) async fn start(args: &WorkersOrderArgs) -> Result<Exit, Failure> {
    let path = format!("/api/workers/{}/start", path_segment(&args.worker));
    give(args, path, Map::new()).await
}

pub(super) async fn pause(args: &WorkersPauseArgs) -> Result<Exit, Failure> {
    let freeze = json!({ "freeze": true });
    let more = freeze.as_object().filter(|_| args.freeze).cloned().unwrap_or_default();
    give(&args.of, supervisor(&args.of.worker, "pause"), more).await
}

pub(super) async fn order(args: &WorkersOrderArgs, order: &str) -> Result<Exit, Failure> {
    give(args, supervisor(&args.worker, order), Map::new()).await
}

fn supervisor(worker: &str, order: &str) -> String {
    format!("/api/supervisor/workers/{}/{order}", path_segment(worker))
}

async fn give(
    args: &WorkersOrderArgs,
    path: String,
    more: Map<String, Value>,
) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let change = Change::post(path).one_of(SEE).ordered(&args.order, more).within(PATIENCE);
    let body = change.ask(&mut client).await?;
    if args.json {
        output::pass_on_line(&body)?;
        return Ok(Exit::Ok);
    }
    let worker = list::understood(serde_json::from_slice(&body))?;
    output::print(&format!("{}\n", one_line(&account(&worker))))?;
    Ok(Exit::Ok)
}

/// `hello-2: PAUSED; 1 request runs on`.
fn account(worker: &Worker) -> String {
    let Worker { name, status, .. } = worker;
    match (status.as_str(), worker.load, worker.pid) {
        ("PAUSED", 1, _) => format!("{name}: PAUSED; 1 request runs on"),
        ("PAUSED", load, _) if load > 1 => format!("{name}: PAUSED; {load} requests run on"),
        ("RUNNING", _, Some(pid)) => format!("{name}: RUNNING, process {pid}"),
        _ => format!("{name}: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_told_by_its_status_and_what_it_still_does() {
        let worker = |status: &str, load, pid| Worker {
            name: "py-1".to_owned(),
            status: status.to_owned(),
            load,
            pid,
            ..Worker::default()
        };
        for (status, load, pid, words) in [
            ("PAUSED", 0, Some(7), "py-1: PAUSED"),
            ("PAUSED", 1, Some(7), "py-1: PAUSED; 1 request runs on"),
            ("PAUSED", 3, Some(7), "py-1: PAUSED; 3 requests run on"),
            ("RUNNING", 1, Some(7), "py-1: RUNNING, process 7"),
            ("RUNNING", 0, None, "py-1: RUNNING"),
            ("TERMINATED", 0, None, "py-1: TERMINATED"),
        ] {
            assert_eq!(account(&worker(status, load, pid)), words);
        }
    }
}
