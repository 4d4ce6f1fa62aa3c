//! What happens to jobs, for whoever follows the events of the server.

use std::sync::Arc;

use ostler_core::{AttemptFailure, JobStatus};
use ostler_runtime::{EventDraft, EventKind, EventLog};
use ostler_store::ledger::JobId;
use ostler_store::ledger::job::Job;

pub(crate) fn publish(
    log: &EventLog,
    job: &JobId,
    pool: &str,
    from: Option<JobStatus>,
    to: JobStatus,
    reason: Option<&str>,
) {
    let Some(kind) = kind(from, to) else { return };
    if kind.frequent() && !log.wants_requests() {
        return;
    }
    let draft = EventDraft::new(kind, &Arc::from(pool)).detail("job", job.as_str());
    let draft = draft.moved(from.map(JobStatus::name), to.name());
    log.publish(because(draft, kind, reason));
}

/// That it is tried again changes no status.
pub(crate) fn publish_retried(log: &EventLog, job: &Job, failure: AttemptFailure) {
    let kind = EventKind::JobRetried;
    let draft = EventDraft::new(kind, &Arc::from(job.spec.pool.as_str()))
        .detail("job", job.id.as_str())
        .detail("attempt", job.attempt);
    log.publish(because(draft, kind, Some(failure.name())));
}

fn kind(from: Option<JobStatus>, to: JobStatus) -> Option<EventKind> {
    match to {
        JobStatus::Submitted => Some(EventKind::JobSubmitted),
        JobStatus::Pending if from.is_none() => Some(EventKind::JobSubmitted),
        JobStatus::Pending => None,
        JobStatus::Running => Some(EventKind::JobStarted),
        JobStatus::Completed => Some(EventKind::JobCompleted),
        JobStatus::Failed => Some(EventKind::JobFailed),
        JobStatus::Canceled => Some(EventKind::JobCanceled),
    }
}

/// Reasons of events are a closed list; what somebody wrote as the reason of a cancellation is in
/// the audit trail.
fn because(draft: EventDraft, kind: EventKind, reason: Option<&str>) -> EventDraft {
    let known = kind.reasons().iter().find(|known| Some(**known) == reason);
    match known {
        Some(known) => draft.reason(known),
        None => draft,
    }
}

#[cfg(test)]
mod tests {
    use ostler_runtime::{Event, Followed};

    use super::*;

    fn told(publish: impl FnOnce(&EventLog)) -> Vec<Arc<Event>> {
        let log = Arc::new(EventLog::new(10));
        let mut follower = log.follow_all(None);
        publish(&log);
        let mut events = Vec::new();
        while let Some(Followed::Event(event)) = follower.try_next() {
            events.push(event);
        }
        events
    }

    #[test]
    fn each_change_has_its_kind_and_says_whose_it_is() {
        use JobStatus::*;
        let id = JobId::fresh();
        let steps = [
            (None, Submitted, Some("job.submitted")),
            (Some(Submitted), Pending, None),
            (Some(Pending), Running, Some("job.started")),
            (Some(Running), Completed, Some("job.completed")),
            (Some(Running), Failed, Some("job.failed")),
            (Some(Pending), Canceled, Some("job.canceled")),
        ];
        for (from, to, kind) in steps {
            let events = told(|log| publish(log, &id, "py", from, to, None));
            assert_eq!(events.first().map(|event| event.kind.name()), kind, "{to:?}");
            if let Some(event) = events.first() {
                assert_eq!((&*event.pool, &event.detail["job"]), ("py", &id.as_str().into()));
                assert_eq!(event.to, Some(to.name()));
            }
        }
    }

    #[test]
    fn a_reason_is_told_if_it_is_one_of_the_list() {
        let id = JobId::fresh();
        let reason = |text| {
            let (from, to) = (Some(JobStatus::Running), JobStatus::Canceled);
            told(|log| publish(log, &id, "py", from, to, Some(text)))[0].reason
        };
        assert_eq!(reason("timeout"), Some("timeout"));
        assert_eq!(reason("because I say so"), None);
    }
}
