//! A replacement as it goes: the events of its pool, until the last of the old workers has left.

use super::super::client::Client;
use super::super::endpoint::Endpoint;
use super::super::events::{self, Event};
use super::super::exit::Failure;
use super::super::list::{self, Query};
use super::super::output;
use super::super::sse::Stream;
use super::Ordered;
use crate::text::one_line;

/// Statuses in which a worker serves no more.
const LEFT: [&str; 3] = ["COMPLETED", "TERMINATED", "FAILED"];

/// What is shown of the pool meanwhile.
const SHOWN: [&str; 6] = [
    "worker.spawned",
    "worker.ready",
    "worker.crashed",
    "worker.terminated",
    "worker.restart_delayed",
    "pool.failed",
];

/// The stream of what happens to workers and pools: from now on, or after an event that is known.
pub(super) async fn events(endpoint: &Endpoint, after: Option<u64>) -> Result<Stream, Failure> {
    let client = Client::connect(endpoint.clone()).await?;
    let after = after.map(|after| after.to_string());
    let query = Query::of("/api/events").with("kind", "worker,pool");
    Stream::open(client, query.with_if("after", after.as_deref()).as_str()).await
}

#[derive(Debug)]
pub(super) struct Roll {
    pool: String,
    /// Old workers that are still there.
    left: Vec<String>,
    total: usize,
    json: bool,
}

/// What an event means for the replacement.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing that must be said.
    None,
    /// An old worker has left.
    Replaced(String),
    /// The pool makes no new workers for a while.
    Failed,
}

impl Roll {
    pub fn new(ordered: Ordered, json: bool) -> Self {
        let Ordered { pool, workers } = ordered;
        Self { pool, total: workers.len(), left: workers, json }
    }

    pub async fn watch(mut self, endpoint: &Endpoint, mut events: Stream) -> Result<(), Failure> {
        while !self.left.is_empty() {
            match events.next().await? {
                // Too many came at once; the next stream goes on where this one broke off.
                Some(sent) if sent.event == "lagged" => {
                    events = self::events(endpoint, sent.id).await?;
                }
                Some(sent) => {
                    let event = list::understood(serde_json::from_str(&sent.data))?;
                    self.show(&event, &sent.data)?;
                    self.on(&event)?;
                }
                None => {
                    let left = self.left.join(", ");
                    return Err(Failure::failed(format!(
                        "the server has ended; not replaced: {left}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn show(&self, event: &Event, data: &str) -> Result<(), Failure> {
        if event.pool != self.pool || !SHOWN.contains(&event.kind.as_str()) {
            return Ok(());
        }
        match self.json {
            true => output::pass_on_line(data.as_bytes()),
            false => output::print(&events::line(event)),
        }
    }

    fn on(&mut self, event: &Event) -> Result<(), Failure> {
        match self.step(event) {
            Step::None => Ok(()),
            Step::Failed => Err(Failure::failed(format!(
                "pool `{}` has failed; not replaced: {}; see: ostler status, ostler logs {}",
                self.pool,
                self.left.join(", "),
                self.pool
            ))),
            Step::Replaced(worker) => {
                self.left.retain(|left| *left != worker);
                if self.json {
                    return Ok(());
                }
                let done = self.total - self.left.len();
                let text = format!("{worker} is replaced, {done} of {}", self.total);
                output::print(&format!("{}\n", one_line(&text)))
            }
        }
    }

    fn step(&self, event: &Event) -> Step {
        if event.pool != self.pool {
            return Step::None;
        }
        match (event.kind.as_str(), &event.worker, event.to.as_deref()) {
            ("pool.failed", _, _) => Step::Failed,
            ("worker.transition", Some(worker), Some(to))
                if LEFT.contains(&to) && self.left.contains(worker) =>
            {
                Step::Replaced(worker.clone())
            }
            _ => Step::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn roll() -> Roll {
        let workers = ["py-1", "py-2"].map(str::to_owned).to_vec();
        Roll::new(Ordered { pool: "py".to_owned(), workers }, true)
    }

    fn event(value: Value) -> Event {
        serde_json::from_value(value).expect("an event")
    }

    #[test]
    fn an_old_worker_is_replaced_when_it_has_left_for_good() {
        let moved = |pool: &str, worker: &str, to: &str| {
            event(json!({ "kind": "worker.transition", "pool": pool, "worker": worker, "to": to }))
        };
        let mut roll = roll();
        for other in [
            moved("py", "py-3", "COMPLETED"),
            moved("other", "py-1", "COMPLETED"),
            moved("py", "py-1", "RUNNING"),
            event(json!({ "kind": "worker.terminated", "pool": "py", "worker": "py-1" })),
        ] {
            assert_eq!(roll.step(&other), Step::None, "{other:?}");
        }
        roll.on(&moved("py", "py-1", "COMPLETED")).expect("no failure");
        roll.on(&moved("py", "py-1", "TERMINATED")).expect("no failure");
        assert_eq!(roll.left, ["py-2"]);
        roll.on(&moved("py", "py-2", "TERMINATED")).expect("no failure");
        assert!(roll.left.is_empty());
    }

    #[test]
    fn a_pool_that_fails_ends_the_watch_with_who_is_left() {
        let mut roll = roll();
        let elsewhere = event(json!({ "kind": "pool.failed", "pool": "other" }));
        roll.on(&elsewhere).expect("not this pool");
        let failed = event(json!({ "kind": "pool.failed", "pool": "py" }));
        let failure = roll.on(&failed).expect_err("it failed");
        assert!(failure.message().contains("not replaced: py-1, py-2"), "{failure:?}");
    }
}
