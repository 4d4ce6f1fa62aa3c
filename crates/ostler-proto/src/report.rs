//! What a worker reports of its requests and of itself. These are the JSON objects of the wire as
//! well: their field names are the protocol's keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    json::{lossy, lossy_option},
    meta::is_false,
};

/// How a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerError {
    /// `application_error` unless the worker says better.
    pub code: String,
    #[serde(deserialize_with = "lossy")]
    pub message: String,
    #[serde(skip_serializing_if = "is_false")]
    pub retryable: bool,
    /// The exception's type.
    #[serde(rename = "type", deserialize_with = "lossy_option")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(deserialize_with = "lossy_option")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    /// False: the function was never entered.
    #[serde(skip_serializing_if = "is_true")]
    pub started: bool,
}

impl WorkerError {
    pub const APPLICATION_ERROR: &str = "application_error";
    pub const INVALID_ARGUMENTS: &str = "invalid_arguments";
    /// The payload is not JSON.
    pub const MALFORMED: &str = "malformed";
    /// Somebody else is inside the function, and it does not allow for two.
    pub const THREAD_UNSAFE: &str = "thread_unsafe";
    pub const FUNCTION_NOT_FOUND: &str = "function_not_found";
}

impl Default for WorkerError {
    fn default() -> Self {
        WorkerError {
            code: Self::APPLICATION_ERROR.to_owned(),
            message: String::new(),
            retryable: false,
            kind: None,
            traceback: None,
            started: true,
        }
    }
}

fn is_true(flag: &bool) -> bool {
    *flag
}

/// What a healthy worker says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthReport {
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries_processed: Option<u64>,
}

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// The request it belongs to.
    #[serde(skip)]
    pub id: Option<u64>,
    #[serde(default)]
    pub level: LogLevel,
    #[serde(deserialize_with = "lossy")]
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "String")]
pub enum LogLevel {
    Trace,
    Debug,
    #[default]
    Info,
    Warning,
    Error,
}

impl From<String> for LogLevel {
    /// Languages name their levels differently; an unknown one is no reason to lose the line.
    fn from(name: String) -> LogLevel {
        match name.to_ascii_lowercase().as_str() {
            "trace" => LogLevel::Trace,
            "debug" => LogLevel::Debug,
            "warn" | "warning" => LogLevel::Warning,
            "error" | "critical" | "fatal" => LogLevel::Error,
            _ => LogLevel::Info,
        }
    }
}

/// A measurement by the worker's own program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub name: String,
    pub value: f64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}
