//! Where workers hand in jobs: `ostler.submit` and what belongs to it. Whoever keeps jobs sits there;
//! without one the operations do not exist.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ostler_proto::Body;

use crate::directory::HostError;
use crate::duty::Duty;

/// The operations, as workers name them.
pub const DESK_OPERATIONS: [&str; 3] = ["job.submit", "job.get", "job.cancel"];

/// One operation, and who asks for it.
#[derive(Debug, Clone)]
pub struct DeskAsk {
    pub operation: String,
    /// JSON, as the HTTP API takes it.
    pub body: Body,
    pub pool: Arc<str>,
    pub worker: Arc<str>,
    /// The request that asks.
    pub request: Option<Arc<str>>,
    /// The job that this request is part of.
    pub duty: Option<Arc<Duty>>,
}

pub type DeskAnswer = Pin<Box<dyn Future<Output = Result<Body, HostError>> + Send>>;

pub trait Desk: Debug + Send + Sync {
    fn operate(&self, ask: DeskAsk) -> DeskAnswer;
}
