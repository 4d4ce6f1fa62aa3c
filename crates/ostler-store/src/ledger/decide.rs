//! What each operation comes to, decided on the rows of a draft. An operation checks everything
//! before it changes anything: one that is refused has changed nothing.

mod cancel;
mod check;
mod claim;
mod finish;
mod keys;
mod node;
mod queues;
mod retry;
mod say;
mod schedules;
mod settle;
mod step;
mod submit;
mod time;
mod workers;

pub(super) use cancel::CancelJob;
pub(super) use claim::{Claim, ClaimJob};
pub(super) use finish::Finish;
pub(super) use keys::{AbandonKey, BeginKey, FinishKey};
pub(super) use node::{EndNode, StartNode};
pub(super) use queues::SetQueue;
pub(super) use retry::Retry;
pub(super) use say::Say;
pub(super) use schedules::{AddSchedule, ChangeSchedule, DeleteSchedule};
pub(super) use submit::Submit;
pub(super) use time::{Chore, NextDue};
pub(super) use workers::{Past, Record};

use std::future::Future;

use super::backend::Failed;
use super::draft::Draft;
use super::error::LedgerError;

/// Why an operation came to nothing.
#[derive(Debug)]
pub(super) enum Halt {
    /// By the rules.
    Refused(LedgerError),
    /// By the backend: nothing of the transaction holds.
    Failed(Failed),
}

pub(super) type Decided<T> = Result<T, Halt>;

impl From<LedgerError> for Halt {
    fn from(error: LedgerError) -> Self {
        Halt::Refused(error)
    }
}

impl From<Failed> for Halt {
    fn from(failed: Failed) -> Self {
        Halt::Failed(failed)
    }
}

/// One operation. It may be asked to decide again, on another draft.
pub(super) trait Operation: Send + Sync + 'static {
    type Answer: Send;

    /// It sees what the others of its transaction changed, so that they are written but once.
    const LAST: bool = false;

    fn decide(&self, draft: &mut Draft) -> impl Future<Output = Decided<Self::Answer>> + Send;

    /// Bytes that it adds to a transaction.
    fn weight(&self) -> usize {
        0
    }
}
