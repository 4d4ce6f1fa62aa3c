//! Places held for several calls. A lease is a guard: dropping it gives the places back.

use std::sync::Arc;
use std::time::Duration;

use ostler_core::{Event, LeaseEnd, LeaseId, LeaseSpec, Refusal};
use tokio::sync::{oneshot, watch};

use crate::driver::Driver;
use crate::failure::Refused;
use crate::pool::Pool;
use crate::running::{Call, Running, Whither};

/// What to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Workers, each with one place: all at once or none.
    pub workers: u32,
    /// The lease comes back by itself after this time, unless it is renewed.
    pub ttl: Duration,
    /// How long to wait for the places.
    pub timeout: Duration,
}

impl Default for LeaseRequest {
    fn default() -> Self {
        let (ttl, timeout) = (Duration::from_secs(60), Duration::from_secs(10));
        LeaseRequest { workers: 1, ttl, timeout }
    }
}

/// Places on one or more workers that nobody else uses meanwhile.
#[derive(Debug)]
pub struct Lease {
    claim: Claim,
    pool: Pool,
    workers: Vec<Arc<str>>,
    end: watch::Receiver<Option<LeaseEnd>>,
}

/// Gives a lease back when it is dropped, granted or not.
#[derive(Debug)]
struct Claim {
    driver: Arc<Driver>,
    id: LeaseId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.driver.report(Event::LeaseReleased { lease: self.id, discard: false });
        self.driver.forget_lease(self.id);
    }
}

/// The driver's side of a lease.
#[derive(Debug)]
pub(crate) struct LeaseDesk {
    pub granted: Option<oneshot::Sender<Result<Vec<Arc<str>>, Refusal>>>,
    pub end: watch::Sender<Option<LeaseEnd>>,
}

impl Pool {
    /// Waits for places on as many workers as asked for.
    pub async fn lease(&self, request: LeaseRequest) -> Result<Lease, Refused> {
        let (sender, granted) = oneshot::channel();
        let (end_sender, end) = watch::channel(None);
        let driver = Arc::clone(self.driver());
        let deadline = driver.clock.now().after(request.timeout);
        let spec = LeaseSpec { workers: request.workers, ttl: request.ttl, deadline };
        let desk = LeaseDesk { granted: Some(sender), end: end_sender };
        let id = driver.ask_for_lease(desk, spec);
        let claim = Claim { driver, id };
        match granted.await {
            Ok(Ok(workers)) => Ok(Lease { claim, pool: self.clone(), workers, end }),
            Ok(Err(refusal)) => Err(Refused::Pool(refusal)),
            Err(_) => Err(Refused::Pool(Refusal::ShuttingDown)),
        }
    }
}

impl Lease {
    /// The workers it holds, one for each place.
    pub fn workers(&self) -> &[Arc<str>] {
        &self.workers
    }

    /// A call on the first place.
    pub fn call(&self, call: Call) -> Running {
        self.call_on(0, call)
    }

    /// A call on the n-th place. Calls on one place run one after the other.
    pub fn call_on(&self, place: u32, call: Call) -> Running {
        self.pool.send(call, Whither::Place(self.claim.id, place), Vec::new())
    }

    /// The lease lasts this long from now.
    pub fn renew(&self, ttl: Duration) {
        self.claim.driver.report(Event::LeaseRenewed { lease: self.claim.id, ttl });
    }

    /// Gives the places back and has their processes replaced: what they hold is in doubt.
    pub fn close(self) {
        let lease = self.claim.id;
        self.claim.driver.report(Event::LeaseReleased { lease, discard: true });
    }

    /// How it ended, if it did: it expired, its workers went, or the pool shuts down.
    pub fn ended(&self) -> Option<LeaseEnd> {
        *self.end.borrow()
    }
}
