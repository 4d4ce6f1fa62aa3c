//! The leases that clients hold. Each is known by an id; one that has ended is remembered for a
//! while, so that its holder learns how.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use ostler_core::LeaseEnd;
use ostler_runtime::{Call, Lease, Pool, Running};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::problem::Problem;

/// Held at a time, those included that wait for their places.
const HELD_MAX: usize = 1_000;
/// Ended ones that are remembered.
const ENDED_KEPT: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Tenancy {
    book: Mutex<Book>,
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Book {
    held: BTreeMap<String, Arc<Tenant>>,
    ended: VecDeque<(String, &'static str)>,
}

/// Somebody may hold a lease.
#[derive(Debug)]
pub(crate) struct Room(OwnedSemaphorePermit);

/// How long a lease lasts, unless it is renewed.
#[derive(Debug, Clone, Copy)]
struct Term {
    ttl: Duration,
    since: Instant,
}

/// A lease and what its holder asked for.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub id: String,
    pub pool: Pool,
    /// The workers it holds, one for each place.
    pub workers: Vec<Arc<str>>,
    term: Mutex<Term>,
    /// None once it was given back.
    lease: Mutex<Option<Lease>>,
    _room: OwnedSemaphorePermit,
}

impl Default for Tenancy {
    fn default() -> Self {
        Tenancy { book: Mutex::default(), room: Arc::new(Semaphore::new(HELD_MAX)) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tenancy {
    /// Room for one more, before it waits for its places.
    pub fn room(&self) -> Result<Room, Problem> {
        if self.room.available_permits() == 0 {
            self.settle(&mut lock(&self.book));
        }
        Arc::clone(&self.room).try_acquire_owned().map(Room).map_err(|_| {
            let detail = format!("{HELD_MAX} leases are held or waited for; give some back");
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_leases", detail).retryable(None)
        })
    }

    pub fn add(&self, Room(room): Room, pool: Pool, lease: Lease, ttl: Duration) -> Arc<Tenant> {
        let tenant = Arc::new(Tenant {
            id: format!("l_{}", Uuid::now_v7().simple()),
            pool,
            workers: lease.workers().to_vec(),
            term: Mutex::new(Term { ttl, since: Instant::now() }),
            lease: Mutex::new(Some(lease)),
            _room: room,
        });
        lock(&self.book).held.insert(tenant.id.clone(), Arc::clone(&tenant));
        tenant
    }

    pub fn find(&self, id: &str) -> Result<Arc<Tenant>, Problem> {
        let mut book = lock(&self.book);
        if let Some(tenant) = book.held.get(id) {
            let Some(end) = tenant.end() else { return Ok(Arc::clone(tenant)) };
            book.end(id, end);
        }
        Err(book.not_found(id))
    }

    /// Those of a pool, in the order in which they were granted.
    pub fn of_pool(&self, pool: &str) -> Vec<Arc<Tenant>> {
        let mut book = lock(&self.book);
        self.settle(&mut book);
        book.held.values().filter(|tenant| tenant.pool.name() == pool).cloned().collect()
    }

    /// Gives a lease back. `discard`: its workers are not to be used again.
    pub fn give_back(&self, id: &str, discard: bool) -> Result<(), Problem> {
        let tenant = self.find(id)?;
        lock(&self.book).end(id, "released");
        match lock(&tenant.lease).take() {
            Some(lease) if discard => lease.close(),
            Some(lease) => drop(lease),
            // Somebody else was quicker.
            None => return Err(lock(&self.book).not_found(id)),
        }
        Ok(())
    }

    /// What ended by itself is held no longer.
    fn settle(&self, book: &mut Book) {
        let ended =
            book.held.values().filter_map(|tenant| Some((tenant.id.clone(), tenant.end()?)));
        for (id, end) in ended.collect::<Vec<_>>() {
            book.end(&id, end);
        }
    }
}

impl Book {
    fn end(&mut self, id: &str, how: &'static str) {
        if self.held.remove(id).is_none() {
            return;
        }
        if self.ended.len() == ENDED_KEPT {
            self.ended.pop_front();
        }
        self.ended.push_back((id.to_owned(), how));
    }

    fn not_found(&self, id: &str) -> Problem {
        let ended = self.ended.iter().rev().find(|(known, _)| known == id);
        not_found(id, ended.map(|(_, how)| *how))
    }
}

fn not_found(id: &str, ended: Option<&'static str>) -> Problem {
    let detail = match ended {
        None => format!("there is no lease `{id}`"),
        Some("expired") => format!("lease `{id}` has expired; renew the next one in time"),
        Some("lost") => format!("the workers of lease `{id}` are gone"),
        Some(how) => format!("lease `{id}` has ended: {how}"),
    };
    let problem = Problem::new(StatusCode::NOT_FOUND, "lease_not_found", detail);
    ended.into_iter().fold(problem, |problem, how| problem.with("ended", how))
}

impl Tenant {
    /// How it ended, if it has.
    fn end(&self) -> Option<&'static str> {
        match lock(&self.lease).as_ref() {
            None => Some("released"),
            Some(lease) => lease.ended().map(|end| match end {
                LeaseEnd::Released => "released",
                LeaseEnd::Expired => "expired",
                LeaseEnd::Lost => "lost",
                LeaseEnd::ShuttingDown => "shutting_down",
            }),
        }
    }

    pub fn expires_in(&self) -> Duration {
        let term = lock(&self.term);
        term.ttl.saturating_sub(term.since.elapsed())
    }

    /// For as long again as before, if nothing else is said.
    pub fn renew(&self, ttl: Option<Duration>) {
        let mut term = lock(&self.term);
        *term = Term { ttl: ttl.unwrap_or(term.ttl), since: Instant::now() };
        if let Some(lease) = lock(&self.lease).as_ref() {
            lease.renew(term.ttl);
        }
    }

    /// A call on one of its places.
    pub fn call_on(&self, place: u32, call: Call) -> Result<Running, Problem> {
        let lease = lock(&self.lease);
        let lease = lease.as_ref().ok_or_else(|| not_found(&self.id, Some("released")))?;
        Ok(lease.call_on(place, call))
    }
}
