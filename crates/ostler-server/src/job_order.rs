//! A job as its submitter describes it, read and put into the ledger's words. What only pools or
//! the ledger know is checked by them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ostler_core::{JobBackoff, Retrying};
use ostler_store::Content;
use ostler_store::ledger::JobId;
use ostler_store::ledger::job::{Children, NewJob};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::given::present;
use crate::problem::Problem;
use crate::query::invalid;
use crate::server::Shared;
use crate::span::Span;

const FACTOR_MAX: f64 = 100.0;
/// Jobs of one batch.
const BATCH_MAX: usize = 1_000;

/// What to do. Only `function` is a must.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobOrder {
    /// For people.
    #[schema(min_length = 1, max_length = 2000)]
    task_description: Option<String>,
    /// The default pool if nothing is said.
    pool: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    function: String,
    /// The arguments: an object by name, an array by place, another value the one argument; none
    /// if nothing is said.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Workers at once, each with a shard. 1 if nothing is said.
    #[schema(minimum = 1, maximum = 10)]
    worker_count: Option<u32>,
    /// The job that this one is a part of.
    #[schema(pattern = "^j_[0-9a-f]{32}$")]
    parent_job_id: Option<String>,
    /// Follows from the parent; if given it must agree.
    #[schema(minimum = 0, maximum = 5)]
    depth: Option<u32>,
    /// Higher first.
    #[schema(minimum = -100, maximum = 100)]
    priority: Option<i8>,
    /// Not before this time.
    #[schema(value_type = Option<String>, format = DateTime)]
    run_at: Option<Timestamp>,
    /// From its first start to its end, children included.
    timeout: Option<Span>,
    /// 3 if nothing is said.
    #[schema(minimum = 1, maximum = 100)]
    max_attempts: Option<u32>,
    backoff: Option<BackoffOrder>,
    /// A crash and what calls itself retryable are always worth another attempt.
    #[schema(max_items = 8)]
    retry_on: Option<Vec<RetryOn>>,
    /// The session that its calls belong to.
    #[schema(pattern = "^[!-.0-~]{1,255}$")]
    session: Option<String>,
    /// At most 32.
    tags: Option<BTreeMap<String, String>>,
    /// `default` if nothing is said.
    #[schema(min_length = 1, max_length = 200)]
    workspace_id: Option<String>,
    /// `default` if nothing is said.
    #[schema(min_length = 1, max_length = 200)]
    queue: Option<String>,
    children: Option<ChildrenOrder>,
    /// While a job of this workspace and function with this key has no end, it is the one.
    #[schema(min_length = 1, max_length = 200)]
    unique_key: Option<String>,
    /// Not more than `concurrency_limit` of the jobs with this key run at a time.
    #[schema(min_length = 1, max_length = 200)]
    concurrency_key: Option<String>,
    /// 1 if nothing is said.
    #[schema(minimum = 1)]
    concurrency_limit: Option<u32>,
    /// An idempotency key, where there is none in the header.
    #[schema(pattern = "^[ -~]{1,255}$")]
    request_id: Option<String>,
}

/// How long to wait before the next attempt: `initial`, then `factor` times the one before, up to
/// `max`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackoffOrder {
    initial: Option<Span>,
    max: Option<Span>,
    #[schema(minimum = 1, maximum = 100)]
    factor: Option<f64>,
}

/// What else is worth another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RetryOn {
    /// Any exception.
    Error,
}

/// What a job whose function has returned does about its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildrenOrder {
    /// It ends when they have ended, and fails if one of them did not complete.
    Wait,
    Ignore,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchOrder {
    /// All of them are taken, or none.
    #[schema(min_items = 1, max_items = 1000)]
    jobs: Vec<JobOrder>,
    /// An idempotency key for the whole batch, where there is none in the header.
    #[schema(pattern = "^[ -~]{1,255}$")]
    #[expect(dead_code, reason = "read before the body gets here")]
    request_id: Option<String>,
}

impl BackoffOrder {
    fn meant(self) -> Result<JobBackoff, Problem> {
        let usual = JobBackoff::default();
        let factor = self.factor.unwrap_or(usual.factor);
        if !(1.0..=FACTOR_MAX).contains(&factor) {
            return Err(invalid(format!("`backoff.factor` is {factor}; use 1 to {FACTOR_MAX}")));
        }
        let initial = self.initial.map_or(usual.initial, |Span(initial)| initial);
        let max = self.max.map_or(usual.max.max(initial), |Span(max)| max);
        if initial > max {
            return Err(invalid("`backoff.initial` is more than `backoff.max`"));
        }
        Ok(JobBackoff { initial, max, factor })
    }
}

impl JobOrder {
    pub fn meant(self, shared: &Shared, traceparent: Option<&str>) -> Result<NewJob, Problem> {
        let pool = match self.pool {
            Some(pool) => pool,
            None => shared.default_pool()?.name().to_owned(),
        };
        let payload = self.payload.map_or_else(String::new, |json| json.get().to_owned());
        let mut job = NewJob::new(pool, self.function, Content::new("application/json", payload));
        if let Some(Span(timeout)) = self.timeout {
            if timeout.is_zero() {
                return Err(invalid("`timeout` must be more than 0"));
            }
            job.timeout = Some(timeout);
        }
        let usual = Retrying::default();
        job.retrying = Retrying {
            max_attempts: self.max_attempts.unwrap_or(usual.max_attempts),
            on_error: self.retry_on.is_some_and(|on| on.contains(&RetryOn::Error)),
            backoff: self.backoff.unwrap_or_default().meant()?,
        };
        job.children = match self.children {
            None | Some(ChildrenOrder::Wait) => Children::Wait,
            Some(ChildrenOrder::Ignore) => Children::Ignore,
        };
        job.parent = self.parent_job_id.as_deref().map(parse_parent).transpose()?;
        job.task_description = self.task_description;
        job.worker_count = self.worker_count.unwrap_or(job.worker_count);
        job.depth = self.depth;
        job.priority = self.priority.unwrap_or_default();
        job.run_at = self.run_at;
        job.session = self.session;
        job.tags = self.tags.unwrap_or_default();
        job.workspace = self.workspace_id.unwrap_or(job.workspace);
        job.queue = self.queue.unwrap_or(job.queue);
        job.unique_key = self.unique_key;
        job.concurrency_key = self.concurrency_key;
        job.concurrency_limit = self.concurrency_limit.unwrap_or(job.concurrency_limit);
        job.traceparent = traceparent.map(str::to_owned);
        Ok(job)
    }
}

impl JobOrder {
    /// As a schedule submits it: at its own times, by itself.
    pub fn scheduled(self, shared: &Shared) -> Result<NewJob, Problem> {
        let unfit = [
            ("parent_job_id", self.parent_job_id.is_some()),
            ("depth", self.depth.is_some()),
            ("run_at", self.run_at.is_some()),
            ("request_id", self.request_id.is_some()),
        ];
        if let Some((field, _)) = unfit.into_iter().find(|(_, given)| *given) {
            let detail = format!("`job.{field}` has no meaning in a schedule");
            return Err(invalid(detail).with("field", field));
        }
        let mut job = self.meant(shared, None)?;
        shared.jobs.complete(&mut job).map_err(Problem::of_job)?;
        Ok(job)
    }
}

impl BatchOrder {
    pub fn meant(self, shared: &Shared, trace: Option<&str>) -> Result<Vec<NewJob>, Problem> {
        if !(1..=BATCH_MAX).contains(&self.jobs.len()) {
            let count = self.jobs.len();
            return Err(invalid(format!("`jobs` has {count} of them; use 1 to {BATCH_MAX}")));
        }
        if self.jobs.iter().any(|job| job.request_id.is_some()) {
            return Err(invalid("`request_id` belongs to the batch, not to one of its jobs"));
        }
        let jobs = self.jobs.into_iter().enumerate();
        let meant = jobs.map(|(index, job)| {
            job.meant(shared, trace).map_err(|problem| problem.with("index", index))
        });
        meant.collect()
    }
}

fn parse_parent(id: &str) -> Result<JobId, Problem> {
    id.parse().map_err(|()| {
        invalid(format!("`parent_job_id` is `{id}`, which is no id of a job"))
            .with("field", "parent_job_id")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn backoff(json: &str) -> Result<JobBackoff, Problem> {
        serde_json::from_str::<BackoffOrder>(json).unwrap().meant()
    }

    #[test]
    fn a_backoff_grows_from_less_to_more() {
        let usual = JobBackoff::default();
        assert_eq!(backoff("{}").unwrap(), usual);
        let quick = backoff(r#"{"initial":"10ms","max":1,"factor":1}"#).unwrap();
        assert_eq!((quick.initial, quick.max), (Duration::from_millis(10), Duration::from_secs(1)));
        assert_eq!(backoff(r#"{"initial":"1h"}"#).unwrap().max, Duration::from_secs(3600));
        for wrong in [r#"{"initial":2,"max":1}"#, r#"{"factor":0.5}"#, r#"{"factor":101}"#] {
            assert_eq!(backoff(wrong).unwrap_err().status, 422, "{wrong}");
        }
    }

    #[test]
    fn null_is_an_argument_and_nothing_is_none() {
        let payload = |json: &str| serde_json::from_str::<JobOrder>(json).unwrap().payload;
        assert!(payload(r#"{"function":"f"}"#).is_none());
        assert_eq!(payload(r#"{"function":"f","payload":null}"#).unwrap().get(), "null");
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        for json in
            [r#"{"function":"f","fuction":1}"#, r#"{"function":"f","retry_on":["x"]}"#, "{}"]
        {
            assert!(serde_json::from_str::<JobOrder>(json).is_err(), "{json}");
        }
    }
}
