//! What `GET /api/stats` says, as far as the command line shows it.
//!
//! Every member is optional: a command of one version should make sense of a server of another.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::client::Client;
use super::exit::Failure;
use super::list;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stats {
    pub server: Server,
    pub pools: Vec<Pool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Server {
    pub version: String,
    pub uptime_seconds: f64,
    pub pid: Option<u32>,
    pub listen: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pool {
    pub name: String,
    pub lifecycle: String,
    /// Its workers get nothing new.
    pub paused: bool,
    pub occupancy: String,
    pub containment: Containment,
    pub size: u64,
    /// Where the pool grows and shrinks: the most workers that it may have.
    pub max: Option<u64>,
    pub queue_length: u64,
    pub running: u64,
    /// Why the pool is not well, where the server says so.
    pub reason: Option<String>,
    pub workers: Vec<Worker>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Containment {
    pub level: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Worker {
    pub name: String,
    pub pool: String,
    pub status: String,
    pub phase: Option<String>,
    pub health: Option<String>,
    /// What is wrong with it, where that is known.
    pub complaint: Option<String>,
    pub generation: Option<u64>,
    pub pid: Option<u64>,
    pub capacity: u64,
    pub load: u64,
    pub current_requests: Vec<String>,
    pub requests: BTreeMap<String, Value>,
    pub started_at: Option<String>,
    pub memory: Option<u64>,
}

impl Worker {
    /// The worker and which of its processes it runs on: `py-3#7`.
    pub fn incarnation(&self) -> String {
        match self.generation {
            Some(generation) => format!("{}#{generation}", self.name),
            None => self.name.clone(),
        }
    }

    /// Requests that have ended, whatever their outcome.
    pub fn ended(&self) -> u64 {
        let total = self.requests.get("total").and_then(Value::as_u64);
        total.unwrap_or_else(|| self.requests.values().filter_map(Value::as_u64).sum())
    }
}

/// The server's answer, as it came.
pub(super) async fn ask(client: &mut Client) -> Result<Bytes, Failure> {
    list::get(client, "/api/stats").await
}

pub(super) fn parse(body: &[u8]) -> Result<Stats, Failure> {
    list::understood(serde_json::from_slice(body))
}
