//! One call, from its making to its end, as its caller holds it.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use ostler_core::{Continuity, Event, LeaseId, RequestId};
use ostler_proto::Body;

use crate::chronicle::CancelledBy;
use crate::driver::Driver;
use crate::duty::{Duty, Listener};
use crate::exchange::{Exchange, Item};
use crate::failure::{CallError, Failure};
use crate::pool::Pool;
use crate::session::CallSession;

/// One call to be made.
#[derive(Debug, Clone, Default)]
pub struct Call {
    pub function: String,
    pub body: Body,
    /// The pool's `request_timeout` if none.
    pub timeout: Option<Duration>,
    /// The caller takes chunks as they come.
    pub stream: bool,
    pub priority: i8,
    pub owner: u64,
    pub idempotent: bool,
    pub request_id: Option<String>,
    pub traceparent: Option<String>,
    /// The session that it belongs to; see [`Pool::enter`].
    pub session: Option<CallSession>,
    /// Whose worker is meant, in a pool with `key = "workspace"`; `default` if none.
    pub workspace: Option<String>,
    /// Only this worker, by its name. Workers made by order take no other calls.
    pub worker: Option<String>,
    /// The job that it is part of.
    pub duty: Option<Arc<Duty>>,
    /// Who hears what it says before its end.
    pub listener: Option<Arc<dyn Listener>>,
}

impl Call {
    pub fn new(function: impl Into<String>, body: impl Into<Body>) -> Self {
        Call { function: function.into(), body: body.into(), ..Call::default() }
    }
}

/// Where a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whither {
    Anyone,
    Place(LeaseId, u32),
}

/// A call on its way. Dropping it cancels the call.
#[derive(Debug)]
pub struct Running {
    driver: Arc<Driver>,
    /// Keeps the pool alive until the call has its end; not for calls that its own workers make.
    pub(crate) keeper: Option<Pool>,
    exchange: Arc<Exchange>,
    max_result: u64,
    /// Its function is one that yields.
    yields: bool,
    open: bool,
    continues: bool,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub body: Body,
    pub worker: Option<Arc<str>>,
    /// What its session found there.
    pub continuity: Option<Continuity>,
}

impl Running {
    pub(crate) fn new(
        driver: Arc<Driver>,
        exchange: Arc<Exchange>,
        max_result: u64,
        yields: bool,
    ) -> Self {
        let (keeper, open, continues) = (None, true, false);
        Running { driver, keeper, exchange, max_result, yields, open, continues }
    }

    pub(crate) fn refused(mut self) -> Self {
        self.open = false;
        self
    }

    pub fn number(&self) -> RequestId {
        self.exchange.id
    }

    /// The id by which others can name it: the caller's own, or one that was made.
    pub fn id(&self) -> Arc<str> {
        self.driver.name_of(&self.exchange)
    }

    /// Who works on it, once somebody does.
    pub fn worker(&self) -> Option<Arc<str>> {
        self.exchange.worker()
    }

    /// What its session found with the worker, once it was given to one.
    pub fn continuity(&self) -> Option<Continuity> {
        self.exchange.continuity()
    }

    /// Ends the call; its end is still to be read.
    pub fn cancel(&self) {
        self.exchange.note_cancel(CancelledBy::Caller);
        self.driver.report(Event::CancelRequested { request: self.exchange.id });
    }

    /// From here on the call goes on to its end when this is dropped, with nobody to hear it.
    pub fn continue_when_dropped(&mut self) {
        self.continues = true;
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Item> {
        let Poll::Ready((item, grant)) = self.exchange.poll_item(cx) else { return Poll::Pending };
        if let Some(grant) = grant {
            let mut unsent = grant.link.grant(grant.wire_id, grant.credit);
            self.driver.report_all(&mut unsent);
        }
        if matches!(item, Item::End(_)) {
            self.open = false;
        }
        Poll::Ready(item)
    }

    /// The next chunk, or the end. After the end it is never ready again.
    pub async fn next(&mut self) -> Item {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The whole result. What a generator yields comes as a list.
    pub async fn result(mut self) -> Result<Answered, CallError> {
        let mut chunks = Gathered { yields: self.yields, ..Gathered::default() };
        loop {
            match self.next().await {
                Item::Chunk(chunk) => {
                    chunks.push(&chunk);
                    if chunks.len() as u64 > self.max_result {
                        return Err(Failure::ResultTooLarge { limit: self.max_result }.into());
                    }
                }
                Item::End(end) => {
                    let (body, worker) = (chunks.finish(end?), self.worker());
                    return Ok(Answered { body, worker, continuity: self.continuity() });
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        if let Some(grant) = self.exchange.abandon(self.continues) {
            self.driver.report_all(&mut grant.link.grant(grant.wire_id, grant.credit));
        }
        if !self.continues {
            self.exchange.note_cancel(CancelledBy::Disconnect);
            self.driver.report(Event::CancelRequested { request: self.exchange.id });
        }
    }
}

/// Chunks as one JSON list; chunks of bytes one after the other.
#[derive(Debug, Default)]
struct Gathered {
    /// Also none at all are a list.
    yields: bool,
    bytes: BytesMut,
    count: usize,
    raw: Option<Body>,
}

impl Gathered {
    fn push(&mut self, chunk: &Body) {
        if chunk.is_raw() {
            self.raw.get_or_insert_with(|| chunk.clone());
        } else {
            self.bytes.put_u8(if self.count == 0 { b'[' } else { b',' });
        }
        self.count += 1;
        self.bytes.extend_from_slice(&if chunk.is_raw() {
            chunk.bytes.clone()
        } else {
            chunk.value()
        });
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn finish(mut self, result: Body) -> Body {
        match (self.count, self.raw) {
            (0, _) if self.yields => Body::json("[]"),
            (0, _) => result,
            (_, Some(raw)) => Body { bytes: self.bytes.freeze(), encoding: raw.encoding },
            (_, None) => {
                self.bytes.put_u8(b']');
                Body::json(Bytes::from(self.bytes))
            }
        }
    }
}
