//! Queues of jobs: what waits in them, and whether somebody holds them.

use serde::Deserialize;
use serde_json::{Map, json};

use super::super::args::{JobsQueueArgs, JobsQueuesArgs};
use super::super::call::path_segment;
use super::super::cells::{moment, or_dash};
use super::super::change::Change;
use super::super::exit::Failure;
use super::super::list::{self, Query};
use super::super::output;
use super::super::table::Table;
use super::connect;
use crate::text::one_line;

/// This only bounds a strange answer.
const QUEUES_MAX: usize = 1_000_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Queue {
    name: String,
    paused: bool,
    paused_at: Option<String>,
    waiting: u64,
    running: u64,
}

pub(super) async fn list(args: &JobsQueuesArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let page = list::read(&mut client, &Query::of("/api/queues"), QUEUES_MAX).await?;
    if args.json {
        let body = json!({ "items": page.items, "next_cursor": page.next_cursor });
        return output::pass_on_line(body.to_string().as_bytes());
    }
    let queues: Vec<Queue> = list::parse(&page.items)?;
    let mut table = Table::new(["QUEUE", "WAITING", "RUNNING", "PAUSED"]);
    for queue in queues {
        let paused = queue.paused_at.as_deref().map(|at| format!("since {}", moment(at)));
        table.row([
            queue.name,
            queue.waiting.to_string(),
            queue.running.to_string(),
            or_dash(paused),
        ]);
    }
    output::print(&table.render())
}

pub(super) async fn order(args: &JobsQueueArgs, order: &str) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let change = Change::post(format!("/api/queues/{}/{order}", path_segment(&args.queue)));
    let body = change.ordered(&args.order, Map::new()).ask(&mut client).await?;
    if args.json {
        return output::pass_on_line(&body);
    }
    let queue = list::understood(serde_json::from_slice(&body))?;
    output::print(&format!("{}\n", one_line(&account(&queue))))
}

/// `nightly: paused; 2 jobs wait, 1 runs`.
fn account(queue: &Queue) -> String {
    let state = if queue.paused { "paused" } else { "open" };
    let waiting = match queue.waiting {
        0 => "nothing waits".to_owned(),
        1 => "1 job waits".to_owned(),
        n => format!("{n} jobs wait"),
    };
    let running = match queue.running {
        0 => "nothing runs".to_owned(),
        1 => "1 runs".to_owned(),
        n => format!("{n} run"),
    };
    format!("{}: {state}; {waiting}, {running}", queue.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_told_by_what_it_holds() {
        let queue = |paused, waiting, running| {
            let name = "q".to_owned();
            account(&Queue { name, paused, waiting, running, ..Queue::default() })
        };
        assert_eq!(queue(true, 2, 1), "q: paused; 2 jobs wait, 1 runs");
        assert_eq!(queue(false, 0, 0), "q: open; nothing waits, nothing runs");
        assert_eq!(queue(true, 1, 3), "q: paused; 1 job waits, 3 run");
    }
}
