//! The proof that no change of status is missing.

use std::sync::Arc;

use axum::extract::State;
use ostler_store::ledger::audit::AuditReport;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::server::Shared;

/// What a replay of every job and worker found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditBody {
    /// Nothing is wrong.
    pub ok: bool,
    pub jobs: u64,
    pub workers: u64,
    pub transitions: u64,
    /// At most a hundred of them.
    pub findings: Vec<FindingBody>,
    pub findings_total: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FindingBody {
    /// job or worker.
    pub entity: &'static str,
    pub id: String,
    /// What is wrong with it, for people.
    pub what: String,
}

impl AuditBody {
    pub fn of(report: AuditReport) -> Self {
        let findings = report.findings.into_iter().map(|finding| FindingBody {
            entity: finding.entity.name(),
            id: finding.id,
            what: finding.what,
        });
        AuditBody {
            ok: report.findings_total == 0,
            jobs: report.jobs,
            workers: report.workers,
            transitions: report.transitions,
            findings: findings.collect(),
            findings_total: report.findings_total,
        }
    }
}

/// Replays the trail of every job and every worker, and compares it with what is there.
#[utoipa::path(get, path = "/api/audit/verify", tag = "audit", operation_id = "audit.verify",
    responses((status = 200, body = AuditBody)))]
pub(crate) async fn verify(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<AuditBody>, Problem> {
    let report = shared.jobs.ledger().verify().await.map_err(Problem::of_ledger)?;
    Ok(ok(AuditBody::of(report)))
}
