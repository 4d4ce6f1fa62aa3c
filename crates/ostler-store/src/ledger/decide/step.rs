//! One change of a job's status: the row, its audit record and a line of its story, together.

use ostler_core::JobStatus;
use serde_json::json;

use super::super::audit::Entity;
use super::super::draft::{Draft, Kept};
use super::super::key::Asked;
use super::super::notice::Notice;
use super::super::row::{EventRow, TransitionRow};
use super::check::note;

/// Why a status changes, and by whom.
#[derive(Debug, Clone)]
pub(super) struct By {
    pub trigger: &'static str,
    pub reason: Option<String>,
    pub actor: String,
    pub request_id: Option<String>,
}

impl By {
    pub fn system(trigger: &'static str) -> By {
        By { trigger, reason: None, actor: SYSTEM.to_owned(), request_id: None }
    }

    pub fn asked(trigger: &'static str, asked: &Asked) -> By {
        let (reason, request_id) = (asked.reason.as_deref().map(note), asked.request_id.clone());
        By { trigger, reason, actor: actor(asked).to_owned(), request_id }
    }

    pub fn because(self, reason: impl Into<String>) -> By {
        By { reason: Some(reason.into()), ..self }
    }
}

pub(super) const SYSTEM: &str = "system";

pub(super) fn actor(asked: &Asked) -> &str {
    if asked.actor.is_empty() { SYSTEM } else { &asked.actor }
}

impl Draft {
    /// The state is the caller's to put: more of it may change at once.
    pub(super) fn step(&mut self, job: &mut Kept, to: JobStatus, by: &By) {
        let (id, from) = (job.facts.id.clone(), job.state.status);
        assert!(from.may_become(to), "{id}: {} does not become {}", from.name(), to.name());
        job.state.status = to;
        if to.terminal() {
            job.state.completed_at = Some(self.now);
            job.state.waiting = false;
            self.note_end(&id);
        }
        self.add_step(job, Some(from), by);
    }

    /// The first one.
    pub(super) fn first_step(&mut self, job: &mut Kept, by: &By) {
        self.add_step(job, None, by);
    }

    fn add_step(&mut self, job: &mut Kept, from: Option<JobStatus>, by: &By) {
        let (id, to) = (job.facts.id.clone(), job.state.status);
        job.state.seq += 1;
        self.add_transition(TransitionRow {
            entity: Entity::Job,
            id: id.as_str().to_owned(),
            seq: job.state.seq,
            from: from.map(|from| from.name().to_owned()),
            to: to.name().to_owned(),
            trigger: by.trigger.to_owned(),
            reason: by.reason.clone(),
            actor: by.actor.clone(),
            node: self.node.to_string(),
            request_id: by.request_id.clone(),
            at: self.now,
        });
        // What others go by; the words of whoever asked are in the trail.
        let reason = if to.terminal() { job.state.reason.clone() } else { by.reason.clone() };
        let told = json!({ "from": from.map(JobStatus::name), "to": to.name(), "reason": reason });
        self.add_line(job, "status", told.to_string());
        let pool = job.facts.pool.clone();
        self.tell(Notice::JobChanged { job: id, pool, from, to, reason });
    }

    /// A line of the job's story. Rises its version.
    pub(super) fn add_line(&mut self, job: &mut Kept, kind: &str, data: String) {
        job.state.version += 1;
        job.state.event_seq += 1;
        let (id, seq) = (job.facts.id.clone(), job.state.event_seq);
        self.add_event(EventRow { job: id, seq, kind: kind.to_owned(), data, at: self.now });
    }
}
