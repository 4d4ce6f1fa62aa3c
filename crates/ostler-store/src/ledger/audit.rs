//! The trail: one row for every change of status, and the proof that none is missing.

use jiff::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    Job,
    Worker,
}

impl Entity {
    pub fn name(self) -> &'static str {
        match self {
            Entity::Job => "job",
            Entity::Worker => "worker",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    pub seq: u64,
    pub from: Option<String>,
    pub to: String,
    pub trigger: String,
    pub reason: Option<String>,
    pub actor: String,
    pub node: String,
    pub request_id: Option<String>,
    pub at: Timestamp,
}

/// What a replay of every entity found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditReport {
    pub jobs: u64,
    pub workers: u64,
    pub transitions: u64,
    /// At most a hundred of them.
    pub findings: Vec<Finding>,
    pub findings_total: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub entity: Entity,
    pub id: String,
    /// `seq 3 is missing`, `RUNNING to SUBMITTED is not allowed`, `its row says FAILED, its trail
    /// COMPLETED`, `its checksum does not fit`, …
    pub what: String,
}
