//! The owner of all changes: one task that takes what waits, lets it decide on one draft, commits
//! the draft, shows it, and answers. While a commit is under way the next batch gathers.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::clock::Time;
use crate::disk::{Disk, Refused, Row};
use crate::draft::{Draft, Rules, Turn, add_whole};
use crate::error::SessionError;
use crate::live::Live;
use crate::notice::{SessionNotice, Watchers};

/// Operations that wait for the writer; the next ones wait to get that far.
pub(crate) const WAITING_MAX: usize = 1024;
/// Operations in one commit.
const BATCH_MAX: usize = 256;
/// Rows of a sweep or of late writing in one commit, so that operations never wait for all of them.
const CHUNK: usize = 1024;
/// How late the late things are written.
const WRITE_USED_EVERY: Duration = Duration::from_secs(5);
/// Between two chunks of them: operations come first.
const WRITE_USED_PAUSE: Duration = Duration::from_millis(50);

/// What the writer and the handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub live: Mutex<Live>,
    pub time: Time,
    pub rules: Rules,
    pub watchers: Watchers,
}

impl Shared {
    pub fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) enum Message {
    Ask(Box<dyn Operation>),
    Sweep(Sweep),
    /// Answered when all that came before is done and the disk is closed.
    Close(oneshot::Sender<()>),
}

#[derive(Debug)]
pub(crate) struct Sweep {
    removed: u64,
    answer: Option<oneshot::Sender<u64>>,
}

impl Sweep {
    pub fn new(answer: Option<oneshot::Sender<u64>>) -> Self {
        Sweep { removed: 0, answer }
    }
}

/// One operation, of whatever answer. It may be asked to decide again, on another draft.
pub(crate) trait Operation: Send {
    fn decide(&mut self, turn: &mut Turn<'_>);

    fn answer(self: Box<Self>, refused: Option<&Refused>);
}

pub(crate) struct Ask<T, F> {
    pub decide: F,
    pub decided: Option<Result<T, SessionError>>,
    pub answer: oneshot::Sender<Result<T, SessionError>>,
}

impl<T, F> Operation for Ask<T, F>
where
    T: Send,
    F: FnMut(&mut Turn<'_>) -> Result<T, SessionError> + Send,
{
    fn decide(&mut self, turn: &mut Turn<'_>) {
        self.decided = Some((self.decide)(turn));
    }

    fn answer(self: Box<Self>, refused: Option<&Refused>) {
        let answer = match refused {
            None => self.decided.expect("an operation decides before it is committed"),
            Some(refused) => Err(refused.into()),
        };
        // Whoever asked may have left; what was decided stays.
        let _ = self.answer.send(answer);
    }
}

pub(crate) struct Writer<D> {
    pub shared: Arc<Shared>,
    pub disk: D,
    pub next_number: u64,
    pub inbox: mpsc::Receiver<Message>,
    waiting: VecDeque<Message>,
    /// Sessions of which the disk may hold a change that was refused.
    doubtful: Vec<u64>,
    /// Whether the next crossing of 80 % is told.
    warns: bool,
}

impl<D: Disk> Writer<D> {
    pub fn new(
        shared: Arc<Shared>,
        disk: D,
        next_number: u64,
        inbox: mpsc::Receiver<Message>,
    ) -> Self {
        let (waiting, doubtful) = (VecDeque::new(), Vec::new());
        Writer { shared, disk, next_number, inbox, waiting, doubtful, warns: true }
    }

    /// Until it is closed, or nobody can ask any more.
    pub async fn run(mut self) {
        let mut write_used = ticks(WRITE_USED_EVERY);
        let mut sweep = ticks(self.shared.rules.settings.sweep);
        let closing = loop {
            tokio::select! {
                biased;
                _ = write_used.tick() => self.write_used(&mut write_used).await,
                _ = sweep.tick() => self.waiting.push_back(Message::Sweep(Sweep::new(None))),
                () = ready(()), if !self.waiting.is_empty() => {}
                message = self.inbox.recv() => match message {
                    Some(message) => self.waiting.push_back(message),
                    None => break None,
                },
            }
            while self.waiting.len() < WAITING_MAX
                && let Ok(message) = self.inbox.try_recv()
            {
                self.waiting.push_back(message);
            }
            match self.waiting.pop_front() {
                Some(Message::Ask(first)) => self.batch(first).await,
                Some(Message::Sweep(sweep)) => self.sweep(sweep).await,
                Some(Message::Close(answer)) => break Some(answer),
                None => {}
            }
        };
        self.end().await;
        if let Some(answer) = closing {
            let _ = answer.send(());
        }
    }

    async fn end(mut self) {
        self.inbox.close();
        let _ = self.settle_doubts().await;
        while self.write_used_chunk().await.is_ok_and(|written| written > 0) {}
        self.disk.close().await;
    }

    /// The first and those that wait behind it, in one commit. If the disk does not take their rows,
    /// each has a commit of its own: one that asks for too much must not fail the others.
    async fn batch(&mut self, first: Box<dyn Operation>) {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX
            && let Some(Message::Ask(next)) =
                self.waiting.pop_front_if(|message| matches!(message, Message::Ask(_)))
        {
            batch.push(next);
        }
        match self.commit_batch(&mut batch).await {
            Err(refused) if refused.of_rows && batch.len() > 1 => {
                for operation in batch {
                    let mut alone = [operation];
                    let committed = self.commit_batch(&mut alone).await;
                    let [operation] = alone;
                    operation.answer(committed.as_ref().err());
                }
            }
            committed => {
                for operation in batch {
                    operation.answer(committed.as_ref().err());
                }
            }
        }
    }

    async fn commit_batch(&mut self, batch: &mut [Box<dyn Operation>]) -> Result<(), Refused> {
        let mut draft = Draft::default();
        for operation in batch {
            self.turn(&mut draft, |turn| operation.decide(turn));
        }
        self.commit(draft).await
    }

    /// The lock is held for one operation at a time, so that readers pass between them.
    fn turn<T>(&mut self, draft: &mut Draft, decide: impl FnOnce(&mut Turn<'_>) -> T) -> T {
        let mut live = self.shared.live();
        let now = self.shared.time.now();
        let (rules, next_number) = (&self.shared.rules, &mut self.next_number);
        decide(&mut Turn { rules, now, draft, live: &mut live, next_number })
    }

    async fn commit(&mut self, draft: Draft) -> Result<(), Refused> {
        if draft.is_empty() {
            return Ok(());
        }
        let rows = draft.rows(&self.shared.live());
        self.write(&rows).await?;
        let mut notices = {
            let mut live = self.shared.live();
            draft.apply(&mut live)
        };
        notices.extend(self.quota_warning());
        self.shared.watchers.tell(&notices);
        Ok(())
    }

    async fn write(&mut self, rows: &[Row]) -> Result<(), Refused> {
        if rows.is_empty() {
            return Ok(());
        }
        let written = match self.settle_doubts().await {
            Ok(()) => self.disk.commit(rows).await,
            refused => refused,
        };
        let mut live = self.shared.live();
        match &written {
            Ok(()) => {
                live.counts.commits += 1;
                live.counts.rows_written += rows.len() as u64;
            }
            Err(refused) => {
                live.counts.disk_refusals += 1;
                if refused.doubtful && self.doubtful.is_empty() {
                    self.doubtful = rows.iter().map(Row::number).collect();
                    self.doubtful.dedup();
                }
                tracing::warn!(reason = %refused.reason, "the store refused a write");
            }
        }
        written
    }

    /// The disk may hold what was answered as refused. Before anything else is written, it gets
    /// what memory says of those sessions.
    async fn settle_doubts(&mut self) -> Result<(), Refused> {
        if self.doubtful.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::new();
        {
            let live = self.shared.live();
            for number in &self.doubtful {
                rows.push(Row::NoSession(*number));
                if let Some(entry) = live.entry(*number) {
                    add_whole(&mut rows, &entry.kept, &entry.seen);
                }
            }
        }
        self.disk.commit(&rows).await?;
        self.doubtful.clear();
        Ok(())
    }

    /// A chunk of what has expired. The rest goes behind whoever waits.
    async fn sweep(&mut self, mut sweep: Sweep) {
        let mut draft = Draft::default();
        let found = self.turn(&mut draft, |turn| {
            let found = turn.expire(CHUNK);
            if found < CHUNK {
                turn.tell(SessionNotice::Swept { removed: sweep.removed + found as u64 });
            }
            found
        });
        let committed = self.commit(draft).await;
        if committed.is_ok() {
            sweep.removed += found as u64;
        }
        if committed.is_ok() && found == CHUNK {
            self.waiting.push_back(Message::Sweep(sweep));
        } else if let Some(answer) = sweep.answer {
            let _ = answer.send(sweep.removed);
        }
    }

    async fn write_used(&mut self, ticks: &mut Interval) {
        if self.write_used_chunk().await == Ok(CHUNK) {
            ticks.reset_after(WRITE_USED_PAUSE);
        }
    }

    async fn write_used_chunk(&mut self) -> Result<usize, Refused> {
        let used = self.shared.live().take_used(CHUNK);
        let rows: Vec<Row> =
            used.into_iter().map(|(number, seen)| Row::Seen(number, seen)).collect();
        let written = self.write(&rows).await;
        if written.is_err() {
            self.shared.live().give_back_used(rows.iter().map(Row::number));
        }
        written.map(|()| rows.len())
    }

    fn quota_warning(&mut self) -> Option<SessionNotice> {
        let max = u64::from(self.shared.rules.settings.max);
        let live = self.shared.live();
        if self.warns && live.len() * 5 >= max * 4 {
            let current = live.current(self.shared.time.now());
            let crossed = current * 5 >= max * 4;
            self.warns = !crossed;
            return crossed.then_some(SessionNotice::QuotaWarning { current, max });
        }
        self.warns |= live.len() * 4 < max * 3;
        None
    }
}

/// The first after one period; none that anybody would see if it is zero.
fn ticks(period: Duration) -> Interval {
    let never = Duration::from_secs(10 * 365 * 24 * 3600);
    let mut ticks = interval(if period.is_zero() { never } else { period });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    ticks
}
