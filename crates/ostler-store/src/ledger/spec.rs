//! What nobody searches by, as JSON: the rest of what was submitted, and what a schedule submits.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use ostler_core::{JobBackoff, Retrying};
use serde::{Deserialize, Serialize};

use super::job::{Children, NewJob};
use super::row::{JobFacts, Millis};
use super::schedule::{NewSchedule, Overlap};
use crate::clock::{millis, timestamp};
use crate::content::Content;

/// What of a [`NewJob`] has no column of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_description: Option<String>,
    pub worker_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub priority: i8,
    pub run_at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    pub max_attempts: u32,
    pub on_error: bool,
    /// Initial and longest delay, and the factor between two.
    pub backoff: (Millis, Millis, f64),
    pub wait: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    pub concurrency_limit: u32,
}

impl Spec {
    pub fn of(job: &NewJob, now: Millis) -> Spec {
        let Retrying { max_attempts, on_error, backoff } = job.retrying;
        Spec {
            task_description: job.task_description.clone(),
            worker_count: job.worker_count,
            session: job.session.clone(),
            priority: job.priority,
            run_at: job.run_at.map_or(now, Timestamp::as_millisecond),
            timeout: job.timeout.map(millis),
            max_attempts,
            on_error,
            backoff: (millis(backoff.initial), millis(backoff.max), backoff.factor),
            wait: job.children == Children::Wait,
            traceparent: job.traceparent.clone(),
            concurrency_key: job.concurrency_key.clone(),
            concurrency_limit: job.concurrency_limit,
        }
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a spec is plain JSON")
    }

    pub fn read(text: &str) -> Result<Spec, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub fn retrying(&self) -> Retrying {
        let (initial, max, factor) = self.backoff;
        let backoff = JobBackoff { initial: duration(initial), max: duration(max), factor };
        Retrying { max_attempts: self.max_attempts, on_error: self.on_error, backoff }
    }

    fn children(&self) -> Children {
        if self.wait { Children::Wait } else { Children::Ignore }
    }

    /// Everything that was submitted.
    pub fn job(&self, facts: &JobFacts) -> NewJob {
        NewJob {
            workspace: facts.workspace.clone(),
            queue: facts.queue.clone(),
            pool: facts.pool.clone(),
            function: facts.function.clone(),
            payload: Content::new(facts.payload_type.as_str(), facts.payload.clone()),
            task_description: self.task_description.clone(),
            worker_count: self.worker_count,
            parent: facts.parent.clone(),
            depth: Some(facts.depth),
            child_key: facts.child_key.clone(),
            session: self.session.clone(),
            priority: self.priority,
            run_at: Some(timestamp(self.run_at)),
            timeout: self.timeout.map(duration),
            retrying: self.retrying(),
            children: self.children(),
            tags: facts.tags.iter().cloned().collect(),
            traceparent: self.traceparent.clone(),
            unique_key: facts.unique_key.clone(),
            concurrency_key: self.concurrency_key.clone(),
            concurrency_limit: self.concurrency_limit,
        }
    }
}

/// What of a [`NewSchedule`] has no column of its own, the job included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScheduleSpec {
    cron: String,
    timezone: String,
    skip: bool,
    paused: bool,
    job: Submission,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Submission {
    workspace: String,
    queue: String,
    pool: String,
    function: String,
    payload_type: String,
    payload: Payload,
    tags: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_key: Option<String>,
    #[serde(flatten)]
    spec: Spec,
}

/// Readable where it is text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Payload {
    Text(String),
    Bytes(Vec<u8>),
}

impl ScheduleSpec {
    pub fn of(new: &NewSchedule) -> ScheduleSpec {
        let job = &new.job;
        let payload = match std::str::from_utf8(&job.payload.bytes) {
            Ok(text) => Payload::Text(text.to_owned()),
            Err(_) => Payload::Bytes(job.payload.bytes.to_vec()),
        };
        ScheduleSpec {
            cron: new.cron.clone(),
            timezone: new.timezone.clone(),
            skip: new.overlap == Overlap::Skip,
            paused: new.paused,
            job: Submission {
                workspace: job.workspace.clone(),
                queue: job.queue.clone(),
                pool: job.pool.clone(),
                function: job.function.clone(),
                payload_type: job.payload.content_type.to_string(),
                payload,
                tags: job.tags.clone(),
                unique_key: job.unique_key.clone(),
                spec: Spec::of(job, 0),
            },
        }
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a schedule is plain JSON")
    }

    pub fn read(text: &str) -> Result<ScheduleSpec, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub fn schedule(self, name: String, workspace: String) -> NewSchedule {
        NewSchedule {
            name,
            workspace,
            cron: self.cron,
            timezone: self.timezone,
            job: self.job.job(),
            overlap: if self.skip { Overlap::Skip } else { Overlap::Allow },
            paused: self.paused,
        }
    }
}

impl Submission {
    fn job(self) -> NewJob {
        let bytes = match self.payload {
            Payload::Text(text) => Bytes::from(text),
            Payload::Bytes(bytes) => Bytes::from(bytes),
        };
        NewJob {
            workspace: self.workspace,
            queue: self.queue,
            pool: self.pool,
            function: self.function,
            payload: Content::new(self.payload_type, bytes),
            retrying: self.spec.retrying(),
            children: self.spec.children(),
            task_description: self.spec.task_description,
            worker_count: self.spec.worker_count,
            parent: None,
            depth: None,
            child_key: None,
            session: self.spec.session,
            priority: self.spec.priority,
            run_at: None,
            timeout: self.spec.timeout.map(duration),
            tags: self.tags,
            traceparent: self.spec.traceparent,
            unique_key: self.unique_key,
            concurrency_key: self.spec.concurrency_key,
            concurrency_limit: self.spec.concurrency_limit,
        }
    }
}

pub(super) fn duration(millis: Millis) -> Duration {
    Duration::from_millis(millis.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(payload: Content) -> NewJob {
        NewJob {
            task_description: Some("what it is for".to_owned()),
            worker_count: 3,
            session: Some("s".to_owned()),
            priority: -7,
            timeout: Some(Duration::from_secs(9)),
            children: Children::Ignore,
            tags: [("a".to_owned(), "b".to_owned())].into(),
            traceparent: Some("00-1-2-3".to_owned()),
            unique_key: Some("u".to_owned()),
            concurrency_key: Some("c".to_owned()),
            concurrency_limit: 4,
            retrying: Retrying { max_attempts: 9, on_error: true, ..Retrying::default() },
            ..NewJob::new("py", "work", payload)
        }
    }

    #[test]
    fn a_schedule_is_read_as_it_was_written_whatever_its_payload() {
        let text = Content::new("application/json", "{\"n\":1}");
        let bytes = Content::new("application/octet-stream", vec![0xff, 0, 0xfe]);
        for payload in [text, bytes] {
            let new = NewSchedule {
                name: "nightly".to_owned(),
                workspace: "w".to_owned(),
                cron: "@daily".to_owned(),
                timezone: "UTC".to_owned(),
                job: full(payload),
                overlap: Overlap::Allow,
                paused: true,
            };
            let read = ScheduleSpec::read(&ScheduleSpec::of(&new).text()).unwrap();
            assert_eq!(read.schedule(new.name.clone(), new.workspace.clone()), new);
        }
    }

    #[test]
    fn a_spec_is_read_as_it_was_written() {
        let spec = Spec::of(&full(Content::new("text/plain", "x")), 17);
        assert_eq!(Spec::read(&spec.text()).unwrap(), spec);
        assert_eq!(spec.run_at, 17, "nothing was said about when: now");
    }
}
