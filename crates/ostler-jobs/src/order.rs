//! A job as a worker describes it: the fields of the HTTP API, and how often the same request has
//! described the same job.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use ostler_core::{JobBackoff, Retrying};
use ostler_proto::Body;
use ostler_runtime::Duty;
use ostler_store::Content;
use ostler_store::ledger::JobId;
use ostler_store::ledger::job::{Children, NewJob};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::base64;
use crate::digest::Digest;

const FACTOR_MAX: f64 = 100.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    task_description: Option<String>,
    pool: Option<String>,
    function: String,
    #[serde(default, deserialize_with = "present")]
    payload: Option<Box<RawValue>>,
    worker_count: Option<u32>,
    /// Nothing said: the job that asks. `null`: nobody.
    #[serde(default, deserialize_with = "present")]
    parent_job_id: Option<Option<String>>,
    depth: Option<u32>,
    priority: Option<i8>,
    run_at: Option<Timestamp>,
    timeout: Option<Span>,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
    retry_on: Option<Vec<RetryOn>>,
    session: Option<String>,
    tags: Option<BTreeMap<String, String>>,
    workspace_id: Option<String>,
    queue: Option<String>,
    children: Option<ChildrenOrder>,
    unique_key: Option<String>,
    concurrency_key: Option<String>,
    concurrency_limit: Option<u32>,
    occurrence: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Backoff {
    initial: Option<Span>,
    max: Option<Span>,
    factor: Option<f64>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RetryOn {
    Error,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChildrenOrder {
    Wait,
    Ignore,
}

/// Seconds, or a number with its unit.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Span {
    Seconds(f64),
    Text(String),
}

impl Span {
    fn meant(&self, field: &str) -> Result<Duration, String> {
        let seconds = match self {
            Span::Seconds(seconds) => Some(*seconds),
            Span::Text(text) => seconds(text),
        };
        let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        span.ok_or_else(|| format!("`{field}` is no length of time; use 30, \"1.5s\" or \"5m\""))
    }
}

fn seconds(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

/// `null` is something, too.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl Backoff {
    fn meant(&self) -> Result<JobBackoff, String> {
        let usual = JobBackoff::default();
        let span =
            |given: &Option<Span>, field| given.as_ref().map(|span| span.meant(field)).transpose();
        let initial = span(&self.initial, "backoff.initial")?.unwrap_or(usual.initial);
        let max = span(&self.max, "backoff.max")?.unwrap_or(usual.max.max(initial));
        let factor = self.factor.unwrap_or(usual.factor);
        if !(1.0..=FACTOR_MAX).contains(&factor) {
            return Err(format!("`backoff.factor` is {factor}; use 1 to {FACTOR_MAX}"));
        }
        if initial > max {
            return Err("`backoff.initial` is more than `backoff.max`".to_owned());
        }
        Ok(JobBackoff { initial, max, factor })
    }
}

/// What a worker wants, in the ledger's words. `duty`: the job that asks.
pub(crate) fn read(body: &Body, duty: Option<&Duty>) -> Result<NewJob, String> {
    let text = body.to_json();
    let order: Order = serde_json::from_slice(&text)
        .map_err(|error| format!("job.submit takes a job as POST /api/jobs does: {error}"))?;
    let counted = order.occurrence.is_some();
    let mut job = order.meant(duty)?;
    if let Some(duty) = duty.filter(|_| counted && job.parent.is_some()) {
        job.child_key = Some(child_key(&text, duty)?);
    }
    Ok(job)
}

impl Order {
    fn meant(self, duty: Option<&Duty>) -> Result<NewJob, String> {
        let payload = payload(self.payload.as_deref());
        let payload = Content::new(payload.content_type(), payload.bytes.clone());
        let mut job = NewJob::new(self.pool.unwrap_or_default(), self.function, payload);
        let parent = match self.parent_job_id {
            Some(named) => named,
            None => duty.map(|duty| duty.job.to_string()),
        };
        job.parent = parent.as_deref().map(parse_id).transpose()?;
        let usual = Retrying::default();
        job.retrying = Retrying {
            max_attempts: self.max_attempts.unwrap_or(usual.max_attempts),
            on_error: self.retry_on.is_some_and(|on| on.contains(&RetryOn::Error)),
            backoff: self.backoff.unwrap_or_default().meant()?,
        };
        job.timeout = self.timeout.map(|timeout| timeout.meant("timeout")).transpose()?;
        if job.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err("`timeout` must be more than 0".to_owned());
        }
        job.children = match self.children {
            None | Some(ChildrenOrder::Wait) => Children::Wait,
            Some(ChildrenOrder::Ignore) => Children::Ignore,
        };
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
        Ok(job)
    }
}

fn parse_id(id: &str) -> Result<JobId, String> {
    id.parse().map_err(|()| format!("`{id}` is no id of a job"))
}

/// Bytes, where the whole of it is an object of `$bytes`.
fn payload(given: Option<&RawValue>) -> Body {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Raw<'a> {
        #[serde(rename = "$bytes")]
        bytes: &'a str,
        content_type: Option<String>,
    }
    let Some(text) = given.map(RawValue::get) else { return Body::empty() };
    let raw = serde_json::from_str::<Raw<'_>>(text).ok();
    let decoded = raw.and_then(|raw| Some(Body::raw(base64::decode(raw.bytes)?, raw.content_type)));
    decoded.unwrap_or_else(|| Body::json(text.to_owned()))
}

/// Told apart is whatever differs in anything but its time, which another attempt reckons from
/// another now.
fn child_key(text: &[u8], duty: &Duty) -> Result<String, String> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_slice(text)
        .map_err(|error| format!("job.submit takes a JSON object: {error}"))?;
    fields.remove("run_at");
    let mut digest = Digest::default();
    digest.text(&duty.job);
    digest.text(&duty.shard.to_string());
    for (name, value) in fields {
        digest.text(&name);
        digest.json(value);
    }
    Ok(digest.finish())
}

#[cfg(test)]
mod tests;
