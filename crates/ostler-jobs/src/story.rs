//! What an attempt says on its way: kept here for a moment, stored many at a time, in order.
//!
//! Messages come as fast as the store takes them, because whoever brings them waits for room.
//! Progress and log lines come from where a worker's stream is read, which must not wait: beyond the
//! bound they are dropped and counted, and the count is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ostler_runtime::Listener;
use ostler_store::ledger::job::Saying;
use ostler_store::ledger::{JobId, Ledger};
use serde_json::Value;
use tokio::sync::Notify;

/// What is said waits this long for more to be said.
const GATHER: Duration = Duration::from_millis(50);
/// Or until there is so much.
const ENOUGH: usize = 64;
const SAYINGS_MAX: usize = 1_024;
const BYTES_MAX: usize = 1 << 20;
/// What the store did not take is offered again after this time.
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(crate) struct Story {
    inner: Mutex<Inner>,
    news: Notify,
    room: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    sayings: VecDeque<(usize, Saying)>,
    bytes: usize,
    dropped: u64,
    closed: bool,
}

impl Story {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no code panics here")
    }

    /// Waits until there is room for a message.
    pub async fn room(&self) {
        loop {
            let news = self.room.notified();
            if !self.inner().full() {
                return;
            }
            news.await;
        }
    }

    pub fn message(&self, value: Value, bytes: usize) {
        self.push(Saying::Message(value), bytes);
    }

    fn push(&self, saying: Saying, bytes: usize) {
        self.inner().push(saying, bytes);
        self.news.notify_one();
    }

    /// From where nobody may wait.
    fn overhear(&self, saying: Saying, bytes: usize) {
        let mut inner = self.inner();
        if inner.full() {
            inner.dropped += 1;
        } else {
            inner.push(saying, bytes);
        }
        drop(inner);
        self.news.notify_one();
    }

    /// Nothing more will be said.
    pub fn close(&self) {
        self.inner().closed = true;
        self.news.notify_one();
    }

    /// Stores what is said, until the story is closed. What is left then is to be [taken](Self::rest).
    pub async fn keep(&self, ledger: &Ledger, job: &JobId, fence: u64) {
        while self.gathered().await {
            let batch = self.inner().take();
            let said = ledger.say(job, fence, batch.iter().map(|(_, s)| s.clone()).collect()).await;
            self.room.notify_waiters();
            if let Err(error) = said {
                tracing::warn!(%job, "what a job says cannot be stored: {error}");
                self.inner().put_back(batch);
                self.wait_for_close(AGAIN, usize::MAX).await;
            }
        }
    }

    /// Waits until something is worth storing. False: it is closed.
    async fn gathered(&self) -> bool {
        loop {
            if self.is_closed_or_has(1) {
                self.wait_for_close(GATHER, ENOUGH).await;
                return !self.inner().closed;
            }
            self.news.notified().await;
        }
    }

    /// At most this long, and no longer once there is so much.
    async fn wait_for_close(&self, time: Duration, much: usize) {
        let close = async {
            while !self.is_closed_or_has(much) {
                self.news.notified().await;
            }
        };
        drop(tokio::time::timeout(time, close).await);
    }

    fn is_closed_or_has(&self, much: usize) -> bool {
        let inner = self.inner();
        inner.closed || inner.sayings.len() >= much
    }

    /// What was not stored yet.
    pub fn rest(&self) -> Vec<Saying> {
        let mut inner = self.inner();
        let dropped = std::mem::take(&mut inner.dropped);
        let mut rest: Vec<Saying> = inner.sayings.drain(..).map(|(_, saying)| saying).collect();
        inner.bytes = 0;
        if dropped > 0 {
            let text =
                format!("{dropped} lines of progress and log came too fast and were not kept");
            rest.push(Saying::Log { level: "warning".to_owned(), text });
        }
        rest
    }
}

impl Inner {
    fn full(&self) -> bool {
        self.sayings.len() >= SAYINGS_MAX || self.bytes >= BYTES_MAX
    }

    fn push(&mut self, saying: Saying, bytes: usize) {
        self.bytes += bytes;
        self.sayings.push_back((bytes, saying));
    }

    fn take(&mut self) -> Vec<(usize, Saying)> {
        self.bytes = 0;
        self.sayings.drain(..).collect()
    }

    fn put_back(&mut self, taken: Vec<(usize, Saying)>) {
        self.bytes += taken.iter().map(|(bytes, _)| bytes).sum::<usize>();
        for saying in taken.into_iter().rev() {
            self.sayings.push_front(saying);
        }
    }
}

/// Writes down what one shard says.
#[derive(Debug)]
pub(crate) struct Scribe {
    pub story: Arc<Story>,
    pub shard: u32,
}

impl Listener for Scribe {
    fn began(&self, worker: &Arc<str>) {
        let saying = Saying::Worker { shard: self.shard, worker: worker.to_string() };
        // One for each shard: there is always room for it.
        self.story.push(saying, worker.len());
    }

    fn progress(&self, json: &str) {
        let value = serde_json::from_str(json).unwrap_or_else(|_| json.into());
        self.story.overhear(Saying::Progress(value), json.len());
    }

    fn log(&self, level: &'static str, text: &str) {
        let saying = Saying::Log { level: level.to_owned(), text: text.to_owned() };
        self.story.overhear(saying, text.len());
    }
}

#[cfg(test)]
mod tests;
