//! The way of one worker: its changes of status, and the last changes of phase of its processes.

use std::sync::Arc;

use axum::extract::State;
use jiff::Timestamp;
use ostler_core::Retirement;
use ostler_runtime::{PhaseStep, StatusStep, phase_name, phase_reason};
use ostler_store::ledger::audit::{Entity, Transition};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ok};
use crate::asking::ACTOR;
use crate::list::{self, Page};
use crate::openapi::ProblemBody;
use crate::problem::Problem;
use crate::query::Params;
use crate::segment::Segment;
use crate::server::Shared;
use crate::time::rfc3339;
use crate::whereabouts::{self, Whereabouts};

/// One change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TransitionBody {
    /// status (of the worker) or phase (of its process).
    pub machine: &'static str,
    /// Counts the worker's changes of status, from 1, without a gap; null for a phase.
    pub seq: Option<u64>,
    /// Null: it came into being.
    pub from: Option<String>,
    pub to: String,
    /// What caused a change of status.
    pub trigger: Option<String>,
    /// Why a phase changed, or what was said about a change of status.
    pub reason: Option<String>,
    /// Who changed a status: `api` by order, `system` by itself.
    pub actor: Option<String>,
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
    fn of_status(step: &Transition) -> Self {
        TransitionBody {
            machine: "status",
            seq: Some(step.seq),
            from: step.from.clone(),
            to: step.to.clone(),
            trigger: Some(step.trigger.clone()),
            reason: step.reason.clone(),
            actor: Some(step.actor.clone()),
            request_id: step.request_id.clone(),
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
            from: step.from.map(|from| phase_name(from).to_owned()),
            to: phase_name(step.to).to_owned(),
            trigger: None,
            reason: Some(phase_reason(step.reason).to_owned()),
            actor: None,
            request_id: None,
            at: rfc3339(step.at),
            metadata: None,
            generation: Some(step.generation),
            seconds: step.from.is_some().then_some(step.seconds),
        }
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TrailQuery {
    /// Changes of status on a page; those of phase come with them.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[param(maximum = 9223372036854775807u64)]
    cursor: Option<u64>,
}

/// What happened to a worker, oldest first: every change of its status, also of one that has ended,
/// and the last 64 changes of its processes' phase. Changes between ready and busy are only
/// counted, in /metrics.
#[utoipa::path(get, path = "/api/workers/{id}/transitions", tag = "workers",
    operation_id = "workers.transitions",
    params(("id" = String, Path, description = "`w_1_3` or `py-3`"), TrailQuery),
    responses((status = 200, body = Page<TransitionBody>),
              (status = 404, description = "worker_not_found", body = ProblemBody,
               content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Segment(id): Segment,
    Params(query): Params<TrailQuery>,
) -> Result<Answer<Page<TransitionBody>>, Problem> {
    let (limit, after) = (list::limit(query.limit)?, list::after("cursor", query.cursor)?);
    let (key, name) = match whereabouts::of(&shared, &id).await? {
        Whereabouts::Here { pool, worker, name, .. } => (pool.worker_id(worker), name),
        Whereabouts::Past(past) => (Some(past.id), past.name),
    };
    let mut pools = shared.pools().into_iter();
    let memory = pools.find_map(|served| served.pool.worker_history(&name)).unwrap_or_default();
    let trail = match key {
        Some(key) => {
            let ledger = shared.jobs.ledger();
            let steps = ledger.transitions(Entity::Worker, &key, after, limit + 1).await;
            Trail { steps: steps.map_err(Problem::of_ledger)?, phases: memory.phases, after }
        }
        // Its pool has no ledger: what is remembered is all there is.
        None => Trail { steps: of_memory(&memory.statuses), phases: memory.phases, after: 0 },
    };
    Ok(ok(trail.page(limit)))
}

/// Changes of status after some, one more than fit on a page; changes of phase all.
struct Trail {
    steps: Vec<Transition>,
    phases: Vec<PhaseStep>,
    after: u64,
}

impl Trail {
    /// A change of phase stands on the page of the changes of status around it.
    fn page(mut self, limit: usize) -> Page<TransitionBody> {
        let end = self.steps.get(limit).map(|step| step.at);
        self.steps.truncate(limit);
        let begin = self.steps.first().map(|step| step.at).filter(|_| self.after > 0);
        let within = |step: &&PhaseStep| {
            begin.is_none_or(|begin| step.at >= begin) && end.is_none_or(|end| step.at < end)
        };
        let next_cursor = end.and_then(|_| self.steps.last()).map(|step| step.seq.to_string());
        let statuses = self.steps.iter().map(|step| (step.at, TransitionBody::of_status(step)));
        let phases = self.phases.iter().filter(within);
        let phases = phases.map(|step| (step.at, TransitionBody::of_phase(step)));
        let mut all: Vec<(Timestamp, TransitionBody)> = statuses.chain(phases).collect();
        // Stable: a change of status stands before the phase that it caused in the same instant.
        all.sort_by_key(|(at, _)| *at);
        Page { items: all.into_iter().map(|(_, body)| body).collect(), next_cursor }
    }
}

fn of_memory(steps: &[StatusStep]) -> Vec<Transition> {
    let remembered = steps.iter().map(|step| Transition {
        seq: step.seq,
        from: step.change.from.map(|from| from.name().to_owned()),
        to: step.change.to.name().to_owned(),
        trigger: step.change.trigger.name().to_owned(),
        reason: step.change.retirement.map(|why| Retirement::name(why).to_owned()),
        actor: if step.change.order.is_some() { ACTOR } else { "system" }.to_owned(),
        node: String::new(),
        request_id: None,
        at: step.at,
    });
    remembered.collect()
}

#[cfg(test)]
mod tests {
    use ostler_core::{Phase, PhaseReason};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn status(seq: u64, second: i64, to: &str) -> Transition {
        Transition {
            seq,
            from: None,
            to: to.to_owned(),
            trigger: "test".to_owned(),
            reason: None,
            actor: "system".to_owned(),
            node: "n".to_owned(),
            request_id: None,
            at: at(second),
        }
    }

    fn phase(second: i64, to: Phase) -> PhaseStep {
        let reason = PhaseReason::Spawned;
        PhaseStep { generation: 1, from: None, to, reason, at: at(second), seconds: 0.0 }
    }

    fn told(trail: Trail, limit: usize) -> (Vec<String>, Option<String>) {
        let page = trail.page(limit);
        (page.items.into_iter().map(|body| body.to).collect(), page.next_cursor)
    }

    #[test]
    fn both_machines_are_told_in_one_order_page_by_page() {
        let steps = [status(1, 1, "IDLE"), status(2, 2, "RUNNING"), status(3, 9, "TERMINATED")];
        let phases =
            vec![phase(2, Phase::Starting), phase(4, Phase::Ready), phase(10, Phase::Dead)];
        let trail = |from: usize, to: usize, after| {
            let (steps, phases) = (steps[from..to].to_vec(), phases.clone());
            Trail { steps, phases, after }
        };
        let whole = ["IDLE", "RUNNING", "starting", "ready", "TERMINATED", "dead"];
        assert_eq!(told(trail(0, 3, 0), 10), (whole.map(str::to_owned).to_vec(), None));
        let (first, cursor) = told(trail(0, 3, 0), 2);
        assert_eq!(
            (first, cursor.as_deref()),
            (whole[..4].iter().map(|s| (*s).to_owned()).collect(), Some("2"))
        );
        let (second, cursor) = told(trail(2, 3, 2), 2);
        assert_eq!((second, cursor), (whole[4..].iter().map(|s| (*s).to_owned()).collect(), None));
    }
}
