//! A request that has no outcome yet. Once it has one it is gone from the core; what a worker
//! still holds of it is an entry of that process.

use crate::event::RequestSpec;
use crate::id::ProcessId;
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct Request {
    pub spec: RequestSpec,
    pub arrived: Time,
    /// Assignments so far. Fences the messages about earlier ones.
    pub attempt: u32,
    /// Executions that may have begun and are over.
    pub tries: u32,
    pub place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Queued,
    /// Between two attempts.
    Retrying,
    Held(ProcessId),
}
