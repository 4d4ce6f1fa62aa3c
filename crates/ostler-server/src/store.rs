//! The store itself: whether it is whole, and a copy of it.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use ostler_store::StoreReport;
use ostler_store::ledger::audit::AuditReport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::asking::Asking;
use crate::audit::AuditBody;
use crate::given::Given;
use crate::problem::Problem;
use crate::query::{Nothing, Params, invalid};
use crate::server::Shared;

/// What a look at everything found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoreBody {
    /// Nothing is wrong.
    pub ok: bool,
    /// Sessions that are stored; null where only jobs and workers could be read.
    pub sessions: Option<u64>,
    /// For people, at most a hundred of them, without those of the audit.
    pub findings: Vec<String>,
    pub findings_total: u64,
    pub audit: AuditBody,
}

impl StoreBody {
    fn of(report: StoreReport) -> Self {
        StoreBody {
            ok: report.is_sound(),
            sessions: Some(report.sessions),
            findings: report.findings,
            findings_total: report.findings_total,
            audit: AuditBody::of(report.audit),
        }
    }

    fn of_ledger(audit: AuditReport) -> Self {
        let audit = AuditBody::of(audit);
        StoreBody { ok: audit.ok, sessions: None, findings: Vec::new(), findings_total: 0, audit }
    }
}

/// Reads all that is stored: the file itself, every checksum and every trail.
#[utoipa::path(post, path = "/api/store/check", tag = "store", operation_id = "store.check",
    responses((status = 200, body = StoreBody)))]
pub(crate) async fn check(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Answer<StoreBody>, Problem> {
    let _one_at_a_time = shared.checking.lock().await;
    let Some(place) = shared.place.get() else {
        let audit = shared.jobs.ledger().verify().await.map_err(Problem::of_ledger)?;
        return Ok(ok(StoreBody::of_ledger(audit)));
    };
    let report = ostler_store::check(place).await.map_err(|error| {
        let detail = error.to_string();
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", detail).retryable(None)
    })?;
    Ok(ok(StoreBody::of(report)))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupOrder {
    /// Where to, on the server's machine: absolute, and nothing must be there.
    #[schema(example = "/var/backups/ostler.db", value_type = String, pattern = "^/",
        max_length = 4096)]
    path: PathBuf,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupBody {
    pub path: String,
    pub bytes: u64,
}

/// Writes a copy that can be opened, while the store is in use. Over the unix socket only: it
/// writes files as the server's user.
#[utoipa::path(post, path = "/api/store/backup", tag = "store", operation_id = "store.backup",
    request_body = BackupOrder, responses((status = 201, body = BackupBody)))]
pub(crate) async fn backup(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
    asking: Asking,
    Given(BackupOrder { path }): Given<BackupOrder>,
) -> Result<Answer<BackupBody>, Problem> {
    asking.must_be_local()?;
    if !path.is_absolute() {
        return Err(invalid("`path` must be absolute: the server has a directory of its own"));
    }
    if path.symlink_metadata().is_ok() {
        let detail = format!("something is at {} already; name a new file", path.display());
        return Err(Problem::new(StatusCode::CONFLICT, "file_exists", detail));
    }
    shared.jobs.ledger().backup(&path).await.map_err(Problem::of_ledger)?;
    let bytes = path.metadata().map_or(0, |file| file.len());
    let body = BackupBody { path: path.display().to_string(), bytes };
    Ok(Answer(StatusCode::CREATED, body))
}
