//! A run of the server begins by settling what the runs before it held, and ends by ending its own
//! workers.

use ostler_core::{AttemptFailure, Status};
use serde_json::json;

use super::super::audit::Entity;
use super::super::draft::Draft;
use super::super::job::AttemptEnd;
use super::super::row::{Millis, NodeRow, Row, TransitionRow, WorkerRow};
use super::step::SYSTEM;
use super::{Decided, Operation};

/// Attempts that are settled in one transaction.
const CHUNK: usize = 256;

#[derive(Debug)]
pub(in crate::ledger) struct StartNode {
    pub started_at: Millis,
}

impl Operation for StartNode {
    /// Whether there is more to settle.
    type Answer = bool;

    async fn decide(&self, draft: &mut Draft) -> Decided<bool> {
        draft.add(Row::Node(node_row(draft, self.started_at, None)));
        for worker in draft.stored().await?.open_workers(None).await? {
            if !worker.dedicated && worker.node != *draft.node {
                draft.end_worker(worker, Status::Terminated, "server_restarted");
            }
        }
        let node = std::sync::Arc::clone(&draft.node);
        let lost = draft.stored().await?.claimed_elsewhere(&node, CHUNK).await?;
        let more = lost.len() == CHUNK;
        draft.prefetch(lost.iter().map(|task| &task.job)).await?;
        for task in lost {
            let Some(job) = draft.job(&task.job).await? else { continue };
            draft.end_attempt(job, task, &lost_end()).await?;
        }
        Ok(more)
    }
}

fn lost_end() -> AttemptEnd {
    let message = "the server ended while it ran";
    let error = json!({ "code": "lost", "message": message });
    AttemptEnd::Failed { failure: AttemptFailure::Lost, error }
}

fn node_row(draft: &Draft, started_at: Millis, ended_at: Option<Millis>) -> NodeRow {
    NodeRow {
        id: draft.node.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
        expires_at: draft.now,
        ended_at,
    }
}

#[derive(Debug)]
pub(in crate::ledger) struct EndNode {
    pub started_at: Millis,
}

impl Operation for EndNode {
    type Answer = ();

    const LAST: bool = true;

    async fn decide(&self, draft: &mut Draft) -> Decided<()> {
        for worker in draft.stored().await?.open_workers(None).await? {
            if worker.dedicated || worker.node != *draft.node {
                continue;
            }
            let to = match worker.status {
                Status::Running => Status::Completed,
                _ => Status::Terminated,
            };
            draft.end_worker(worker, to, "server_stopped");
        }
        let now = draft.now;
        draft.add(Row::Node(node_row(draft, self.started_at, Some(now))));
        Ok(())
    }
}

impl Draft {
    fn end_worker(&mut self, mut worker: WorkerRow, to: Status, reason: &str) {
        let trigger = if to == Status::Completed { "complete" } else { "terminate" };
        worker.seq += 1;
        self.add_transition(TransitionRow {
            entity: Entity::Worker,
            id: worker.id.clone(),
            seq: worker.seq,
            from: Some(worker.status.name().to_owned()),
            to: to.name().to_owned(),
            trigger: trigger.to_owned(),
            reason: Some(reason.to_owned()),
            actor: SYSTEM.to_owned(),
            node: self.node.to_string(),
            request_id: None,
            at: self.now,
        });
        worker.status = to;
        worker.updated_at = self.now;
        worker.finished_at = Some(self.now);
        self.put_worker(worker);
    }
}
