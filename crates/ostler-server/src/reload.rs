//! Reading the configuration anew. What it means for the pools, whoever made the server knows and
//! does; here it is asked for, one at a time, and told.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, ok};
use crate::given::Perhaps;
use crate::problem::Problem;
use crate::query::{Nothing, Params};
use crate::server::Shared;

/// What a reload did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReloadReport {
    pub changes: Vec<PoolChange>,
    /// Settings that differ and count only after a restart of the server.
    #[schema(example = json!(["server.listen"]))]
    pub restart_needed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PoolChange {
    pub pool: String,
    pub what: Changed,
    /// The settings that differ.
    #[schema(example = json!(["max", "ttl"]))]
    pub keys: Vec<String>,
    /// Its workers are replaced, one after the other.
    pub rolled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    Changed,
    Added,
    Removed,
    Unchanged,
}

/// Why it ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReloadProblem {
    /// The file cannot be read or does not hold together. The text says where.
    InvalidConfiguration {
        detail: String,
    },
    /// A pool was named that is not in it.
    PoolNotFound {
        pool: String,
        known: Vec<String>,
    },
    /// A worker of the new kind did not become ready.
    Failed {
        pool: Option<String>,
        detail: String,
    },
    Underway,
}

impl From<ReloadProblem> for Problem {
    fn from(problem: ReloadProblem) -> Self {
        match problem {
            ReloadProblem::InvalidConfiguration { detail } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_configuration", detail)
            }
            ReloadProblem::PoolNotFound { pool, known } => Problem::pool_not_found(&pool, &known),
            ReloadProblem::Failed { pool, detail } => {
                let problem = Problem::new(StatusCode::CONFLICT, "reload_failed", detail);
                pool.into_iter().fold(problem, |problem, pool| problem.with("pool", pool))
            }
            ReloadProblem::Underway => {
                let detail = "a reload is under way; ask again when it is done";
                Problem::new(StatusCode::CONFLICT, "reload_underway", detail).retryable(None)
            }
        }
    }
}

type Reloading = Pin<Box<dyn Future<Output = Result<ReloadReport, ReloadProblem>> + Send>>;

/// How it is done, by whoever can. It is given the pools that are meant; none: all.
#[derive(Clone)]
pub(crate) struct Reload(Arc<dyn Fn(Vec<String>) -> Reloading + Send + Sync>);

impl Reload {
    pub fn by<F, A>(reload: F) -> Self
    where
        F: Fn(Vec<String>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ReloadReport, ReloadProblem>> + Send + 'static,
    {
        Reload(Arc::new(move |pools| Box::pin(reload(pools))))
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reload")
    }
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReloadOrder {
    /// Only these pools; all if none is named.
    #[serde(default)]
    pools: Vec<String>,
}

/// Reads the configuration anew. Answered when a worker of each new kind has proved itself and the
/// others are being replaced. Pools are done in the order of the configuration: one that does not become
/// ready, and those after it, stay as they were.
#[utoipa::path(post, path = "/api/reload", tag = "server", operation_id = "server.reload",
    request_body = Option<ReloadOrder>, responses((status = 200, body = ReloadReport)))]
pub(crate) async fn reload(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
    Perhaps(order): Perhaps<ReloadOrder>,
) -> Result<Answer<ReloadReport>, Problem> {
    let Some(Reload(reload)) = shared.reload.get().cloned() else {
        let detail = "this server was not made of a configuration that could be read anew";
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "not_available", detail));
    };
    let turn = Arc::clone(&shared.reloading).try_lock_owned();
    let turn = turn.map_err(|_| ReloadProblem::Underway)?;
    // A client that goes away does not leave half a reload behind.
    let done = tokio::spawn(async move {
        let done = reload(order.pools).await;
        drop(turn);
        done
    });
    match done.await {
        Ok(done) => Ok(ok(done?)),
        Err(_) => {
            let detail = "the reload broke off; look into the server's log";
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "reload_failed", detail))
        }
    }
}
