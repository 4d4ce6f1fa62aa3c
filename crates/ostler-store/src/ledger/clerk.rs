//! The owner of the ledger: one task that takes what waits, lets each operation decide in one
//! transaction, commits, tells and answers. While a commit is under way the next batch gathers.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::backend::Failed;
use super::decide::{Halt, Operation};
use super::doubt::Doubt;
use super::draft::Draft;
use super::error::LedgerError;
use super::notice::Notice;
use crate::clock::Time;

/// Operations that wait for the clerk; the next ones wait to get that far.
pub(super) const WAITING_MAX: usize = 1024;
/// Operations in one transaction, and bytes that they bring.
const BATCH_MAX: usize = 512;
const BATCH_BYTES: usize = 16 << 20;

pub(super) enum Message {
    Ask(Box<dyn Work>),
    Backup(PathBuf, oneshot::Sender<Result<(), LedgerError>>),
    /// Answered when all that came before is done and the backend is closed.
    Close(oneshot::Sender<()>),
}

/// One operation of whatever answer.
pub(super) trait Work: Send {
    /// Whether it changed nothing, being refused.
    fn decide<'a>(&'a mut self, draft: &'a mut Draft) -> Deciding<'a>;

    fn answer(self: Box<Self>, failed: Option<&Failed>);

    fn last(&self) -> bool;

    fn weight(&self) -> usize;
}

type Deciding<'a> = Pin<Box<dyn Future<Output = Result<Verdict, Failed>> + Send + 'a>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    Refused,
}

pub(super) struct Ask<O: Operation> {
    operation: O,
    decided: Option<Result<O::Answer, LedgerError>>,
    answer: oneshot::Sender<Result<O::Answer, LedgerError>>,
}

impl<O: Operation> Ask<O> {
    #[allow(clippy::type_complexity)]
    pub fn new(operation: O) -> (Self, oneshot::Receiver<Result<O::Answer, LedgerError>>) {
        let (answer, answered) = oneshot::channel();
        (Ask { operation, decided: None, answer }, answered)
    }
}

impl<O: Operation> Work for Ask<O> {
    fn decide<'a>(&'a mut self, draft: &'a mut Draft) -> Deciding<'a> {
        Box::pin(async move {
            let (decided, verdict) = match self.operation.decide(draft).await {
                Ok(answer) => (Ok(answer), Verdict::Done),
                Err(Halt::Refused(error)) => (Err(error), Verdict::Refused),
                Err(Halt::Failed(failed)) => return Err(failed),
            };
            self.decided = Some(decided);
            Ok(verdict)
        })
    }

    fn answer(self: Box<Self>, failed: Option<&Failed>) {
        let answer = match failed {
            None => self.decided.expect("an operation decides before it is committed"),
            Some(failed) => Err(failed.into()),
        };
        // Whoever asked may have left; what was decided stays.
        let _ = self.answer.send(answer);
    }

    fn last(&self) -> bool {
        O::LAST
    }

    fn weight(&self) -> usize {
        self.operation.weight()
    }
}

impl From<&Failed> for LedgerError {
    fn from(failed: &Failed) -> Self {
        let reason = failed.reason.clone();
        if failed.doubtful {
            LedgerError::Doubtful { reason }
        } else if failed.full {
            LedgerError::Full { reason }
        } else {
            LedgerError::Unavailable { reason }
        }
    }
}

/// Who is told what was committed.
#[derive(Default)]
pub(super) struct Watchers(Mutex<Vec<Arc<Listener>>>);

type Listener = dyn Fn(&[Notice]) + Send + Sync;

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").finish_non_exhaustive()
    }
}

impl Watchers {
    pub fn add(&self, listener: impl Fn(&[Notice]) + Send + Sync + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(listener));
    }

    pub fn tell(&self, notices: &[Notice]) {
        if notices.is_empty() {
            return;
        }
        let listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            listener(notices);
        }
    }
}

#[derive(Debug)]
pub(super) struct Clerk {
    pub draft: Draft,
    pub time: Arc<Time>,
    pub watchers: Arc<Watchers>,
    pub inbox: mpsc::Receiver<Message>,
    /// What became of a commit is still to be found out.
    pub doubt: Option<Doubt>,
}

/// Why a batch did not become one transaction.
enum Spoiled {
    /// By the backend.
    Failed(Failed),
    /// An operation was refused after it had changed something.
    Refusal,
}

impl Clerk {
    /// Until it is closed, or nobody can ask any more.
    pub async fn run(mut self) {
        let mut next = None;
        let closing = loop {
            let message = match next.take() {
                Some(message) => Some(message),
                None => self.inbox.recv().await,
            };
            match message {
                Some(Message::Ask(first)) => next = self.batch(first).await,
                Some(Message::Backup(to, answer)) => {
                    let _ = answer.send(self.backup(to).await);
                }
                Some(Message::Close(answer)) => break Some(answer),
                None => break None,
            }
        };
        self.inbox.close();
        self.draft.into_backend().close().await;
        if let Some(answer) = closing {
            let _ = answer.send(());
        }
    }

    async fn backup(&mut self, to: PathBuf) -> Result<(), LedgerError> {
        self.draft.backend_mut().backup(&to).await.map_err(|failed| (&failed).into())
    }

    /// The first and those that wait behind it, in one transaction. What came that is not an
    /// operation is left for the next turn.
    async fn batch(&mut self, first: Box<dyn Work>) -> Option<Message> {
        let mut bytes = first.weight();
        let mut batch = vec![first];
        let mut next = None;
        while batch.len() < BATCH_MAX && bytes < BATCH_BYTES {
            match self.inbox.try_recv() {
                Ok(Message::Ask(work)) => {
                    bytes += work.weight();
                    batch.push(work);
                }
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        // Nobody has an answer yet, so no order was promised.
        batch.sort_by_key(|work| work.last());
        self.settle(batch).await;
        next
    }

    /// If the backend does not take the rows of a batch, each operation has a transaction of its
    /// own: one that asks for too much must not fail the others.
    async fn settle(&mut self, mut batch: Vec<Box<dyn Work>>) {
        match self.transact(&mut batch).await {
            Ok(()) => batch.into_iter().for_each(|work| work.answer(None)),
            Err(Spoiled::Failed(failed)) if !failed.of_rows || batch.len() == 1 => {
                batch.into_iter().for_each(|work| work.answer(Some(&failed)));
            }
            Err(_) => {
                for work in batch {
                    self.settle_alone(work).await;
                }
            }
        }
    }

    async fn settle_alone(&mut self, work: Box<dyn Work>) {
        let mut alone = [work];
        let committed = self.transact(&mut alone).await;
        let [work] = alone;
        match committed {
            Err(Spoiled::Failed(failed)) => work.answer(Some(&failed)),
            // It is rolled back, so its refusal holds.
            Ok(()) | Err(Spoiled::Refusal) => work.answer(None),
        }
    }

    async fn transact(&mut self, batch: &mut [Box<dyn Work>]) -> Result<(), Spoiled> {
        self.settle_doubt().await.map_err(Spoiled::Failed)?;
        if let Err(spoiled) = self.decide(batch).await {
            if let Spoiled::Failed(failed) = &spoiled {
                tracing::warn!(reason = %failed.reason, "the ledger could not be written");
            }
            self.draft.rollback().await;
            return Err(spoiled);
        }
        self.commit().await.map_err(Spoiled::Failed)
    }

    pub(super) async fn commit(&mut self) -> Result<(), Failed> {
        let failed = match self.draft.commit().await {
            Ok(notices) => {
                self.watchers.tell(&notices);
                return Ok(());
            }
            Err(failed) => failed,
        };
        tracing::warn!(reason = %failed.reason, "the ledger could not be written");
        if failed.doubtful {
            return self.look_after(failed).await;
        }
        self.draft.rollback().await;
        Err(failed)
    }

    async fn decide(&mut self, batch: &mut [Box<dyn Work>]) -> Result<(), Spoiled> {
        for work in batch {
            self.draft.now = self.time.now();
            let before = self.draft.changes();
            let verdict = work.decide(&mut self.draft).await.map_err(Spoiled::Failed)?;
            if verdict == Verdict::Refused && self.draft.changes() != before {
                return Err(Spoiled::Refusal);
            }
        }
        Ok(())
    }
}
