//! The way of one worker: its changes of status, and the last changes of phase of its processes.

use std::sync::Arc;

use axum::extract::State;
use jiff::Timestamp;
use ostler_core::Retirement;
use ostler_runtime::{PhaseStep, StatusStep, WorkerHistory, phase_name, phase_reason};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::list::Page;
use crate::openapi::ProblemBody;
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::segment::Segment;
use crate::server::Shared;
use crate::time::rfc3339;
use crate::workers;

/// One change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TransitionBody {
    /// status (of the worker) or phase (of its process).
    pub machine: &'static str,
    /// Counts the worker's changes of status, from 1; null for a phase.
    pub seq: Option<u64>,
    /// Null: it came into being.
    pub from: Option<&'static str>,
    pub to: &'static str,
    /// What caused a change of status.
    pub trigger: Option<&'static str>,
    /// Why a phase changed, or why a worker was to go.
    pub reason: Option<&'static str>,
    /// Who changed a status: `supervisor` by order, `system` by itself.
    pub actor: Option<&'static str>,
    /// The request that asked for it.
    pub request_id: Option<String>,
    #[schema(format = DateTime)]
    pub at: String,
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    /// Whose phase it was.
    pub generation: Option<u32>,
    /// Spent in `from`.
    pub seconds: Option<f64>,
}

impl TransitionBody {
    fn of_status(step: &StatusStep) -> Self {
        TransitionBody {
            machine: "status",
            seq: Some(step.seq),
            from: step.change.from.map(|from| from.name()),
            to: step.change.to.name(),
            trigger: Some(step.change.trigger.name()),
            reason: step.change.retirement.map(Retirement::name),
            actor: Some(if step.change.order.is_some() { "supervisor" } else { "system" }),
            request_id: None,
            at: rfc3339(step.at),
            metadata: None,
            generation: None,
            seconds: None,
        }
    }

    fn of_phase(step: &PhaseStep) -> Self {
        TransitionBody {
            machine: "phase",
            seq: None,
            from: step.from.map(phase_name),
            to: phase_name(step.to),
            trigger: None,
            reason: Some(phase_reason(step.reason)),
            actor: None,
            request_id: None,
            at: rfc3339(step.at),
            metadata: None,
            generation: Some(step.generation),
            seconds: step.from.is_some().then_some(step.seconds),
        }
    }
}

/// What happened to a worker, oldest first: the last 64 changes of status and of phase. Changes
/// between ready and busy are only counted, in /metrics.
#[utoipa::path(get, path = "/api/workers/{id}/transitions", tag = "workers",
    operation_id = "workers.transitions",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`")),
    responses((status = 200, body = Page<TransitionBody>),
              (status = 404, description = "worker_not_found", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<Page<TransitionBody>>, Problem> {
    let (pool, name) = workers::find(&shared, &id)?;
    let history = pool.worker_history(&name).ok_or_else(|| workers::not_found(&id))?;
    Ok(ok(Page::whole(merged(&history))))
}

fn merged(history: &WorkerHistory) -> Vec<TransitionBody> {
    let statuses = history.statuses.iter().map(|step| (step.at, TransitionBody::of_status(step)));
    let phases = history.phases.iter().map(|step| (step.at, TransitionBody::of_phase(step)));
    let mut all: Vec<(Timestamp, TransitionBody)> = statuses.chain(phases).collect();
    // Stable: a change of status stands before the phase that it caused in the same instant.
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, body)| body).collect()
}

#[cfg(test)]
mod tests {
    use ostler_core::{Change, Phase, PhaseReason, Status, Trigger};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn status(seq: u64, second: i64, trigger: Trigger, from: Option<Status>) -> StatusStep {
        let change =
            Change { from, to: trigger.leads_to(), trigger, retirement: None, order: None };
        StatusStep { seq, change, at: at(second) }
    }

    #[test]
    fn both_machines_are_told_in_one_order() {
        let spawned = PhaseStep {
            generation: 1,
            from: None,
            to: Phase::Starting,
            reason: PhaseReason::Spawned,
            at: at(2),
            seconds: 0.0,
        };
        let history = WorkerHistory {
            phases: vec![spawned],
            statuses: vec![
                status(1, 1, Trigger::Create, None),
                status(2, 2, Trigger::Start, Some(Status::Idle)),
                status(3, 9, Trigger::Terminate, Some(Status::Running)),
            ],
        };
        let told: Vec<_> = merged(&history).iter().map(|body| (body.machine, body.to)).collect();
        let wanted = [
            ("status", "IDLE"),
            ("status", "RUNNING"),
            ("phase", "starting"),
            ("status", "TERMINATED"),
        ];
        assert_eq!(told, wanted);
    }
}
