//! Whether what was given fits, field by field. The error names the field and its bound.

use super::super::error::LedgerError;
use super::super::job::{NewJob, WORKER_COUNT_MAX};
use super::super::settings::LedgerSettings;

const NAME_MAX: usize = 200;
const KEY_MAX: usize = 255;
const TEXT_MAX: usize = 4096;
const TAGS_MAX: usize = 32;
const TAG_NAME_MAX: usize = 100;
const TAG_VALUE_MAX: usize = 500;
const ATTEMPTS_MAX: u32 = 100;
const PRIORITY_MAX: i8 = 100;
const NOTE_MAX: usize = 500;

type Checked = Result<(), LedgerError>;

/// The index in the batch is the caller's to fill in.
pub(super) fn invalid(field: &'static str, what: impl Into<String>) -> LedgerError {
    LedgerError::Invalid { field, what: what.into(), index: 0 }
}

pub(super) fn at_index(error: LedgerError, index: usize) -> LedgerError {
    match error {
        LedgerError::Invalid { field, what, .. } => LedgerError::Invalid { field, what, index },
        other => other,
    }
}

/// What can be said of a job without looking at any other.
pub(super) fn check_job(job: &NewJob, settings: &LedgerSettings) -> Checked {
    check_name("workspace_id", &job.workspace)?;
    check_name("queue", &job.queue)?;
    check_name("pool", &job.pool)?;
    check_name("function", &job.function)?;
    check_options(job)?;
    check_payload(job, settings)?;
    check_numbers(job)?;
    check_retrying(job)?;
    check_tags(job)
}

fn check_options(job: &NewJob) -> Checked {
    if let Some(text) = &job.task_description {
        check_text("task_description", text, TEXT_MAX)?;
    }
    let keys = [
        ("session", &job.session),
        ("child_key", &job.child_key),
        ("unique_key", &job.unique_key),
        ("concurrency_key", &job.concurrency_key),
        ("traceparent", &job.traceparent),
    ];
    for (field, key) in keys {
        if let Some(key) = key {
            check_printable(field, key, KEY_MAX)?;
        }
    }
    if job.child_key.is_some() && job.parent.is_none() {
        return Err(invalid("child_key", "`child_key` needs a `parent_job_id`"));
    }
    Ok(())
}

fn check_payload(job: &NewJob, settings: &LedgerSettings) -> Checked {
    check_printable("payload", &job.payload.content_type, KEY_MAX)?;
    let (bytes, max) = (job.payload.bytes.len() as u64, settings.payload_max);
    if bytes > max {
        let what = format!(
            "`payload` has {bytes} bytes and may have {max}; send less, or raise `payload_max` in \
             [jobs]"
        );
        return Err(invalid("payload", what));
    }
    Ok(())
}

fn check_numbers(job: &NewJob) -> Checked {
    if !(1..=WORKER_COUNT_MAX).contains(&job.worker_count) {
        let what = format!("`worker_count` is {}; it is 1 to {WORKER_COUNT_MAX}", job.worker_count);
        return Err(invalid("worker_count", what));
    }
    if !(-PRIORITY_MAX..=PRIORITY_MAX).contains(&job.priority) {
        let what =
            format!("`priority` is {}; it is -{PRIORITY_MAX} to {PRIORITY_MAX}", job.priority);
        return Err(invalid("priority", what));
    }
    if job.concurrency_limit == 0 {
        return Err(invalid("concurrency_limit", "`concurrency_limit` is 0; it is at least 1"));
    }
    if job.timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(invalid("timeout", "`timeout` is 0; leave it out for no bound"));
    }
    Ok(())
}

fn check_retrying(job: &NewJob) -> Checked {
    let attempts = job.retrying.max_attempts;
    if !(1..=ATTEMPTS_MAX).contains(&attempts) {
        let what = format!("`max_attempts` is {attempts}; it is 1 to {ATTEMPTS_MAX}");
        return Err(invalid("max_attempts", what));
    }
    let factor = job.retrying.backoff.factor;
    if !(1.0..=100.0).contains(&factor) {
        let what = format!("`backoff.factor` is {factor}; it is 1 to 100");
        return Err(invalid("backoff", what));
    }
    Ok(())
}

fn check_tags(job: &NewJob) -> Checked {
    if job.tags.len() > TAGS_MAX {
        let what = format!("{} `tags` were given and {TAGS_MAX} may be", job.tags.len());
        return Err(invalid("tags", what));
    }
    for (name, value) in &job.tags {
        check_printable("tags", name, TAG_NAME_MAX)?;
        check_text("tags", value, TAG_VALUE_MAX)?;
    }
    Ok(())
}

pub(super) fn check_name(field: &'static str, name: &str) -> Checked {
    check_printable(field, name, NAME_MAX)
}

fn check_printable(field: &'static str, text: &str, max: usize) -> Checked {
    if text.is_empty() || text.chars().any(char::is_control) {
        let what = format!("`{field}` must be 1 to {max} printable characters");
        return Err(invalid(field, what));
    }
    check_text(field, text, max)
}

fn check_text(field: &'static str, text: &str, max: usize) -> Checked {
    let length = text.chars().count();
    if length > max {
        return Err(invalid(
            field,
            format!("`{field}` has {length} characters and may have {max}"),
        ));
    }
    if text.contains('\0') {
        return Err(invalid(field, format!("`{field}` must not contain a null character")));
    }
    Ok(())
}

/// Somebody's words, as the trail keeps them.
pub(super) fn note(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(NOTE_MAX).collect()
}
