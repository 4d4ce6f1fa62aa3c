//! One hand: takes a place of the pool, runs job after job on it for a moment, gives it back.
//!
//! The place is a lease, so plain calls go first and nobody else uses it meanwhile. Jobs of a
//! session and pools with keys have no use for just any place: those run as plain calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_runtime::{Lease, LeaseRequest, Pool};
use ostler_store::ledger::job::AttemptEnd;

use crate::attempt::{self, Place};
use crate::crew::{HOLD, Next, Stand};
use crate::foreman::Foreman;
use crate::roll::Charge;
use crate::settle;

/// Longer than any job: a hand gives its place back by itself.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A hand's place in the crew. It leaves when this is dropped.
#[derive(Debug)]
pub(crate) struct Post {
    foreman: Arc<Foreman>,
    stand: Stand,
}

impl Post {
    /// For one who has entered.
    pub fn new(foreman: Arc<Foreman>) -> Post {
        Post { foreman, stand: Stand::Seeking }
    }

    fn move_to(&mut self, to: Stand) {
        let from = std::mem::replace(&mut self.stand, to);
        self.foreman.change(|crew| crew.moves(from, to));
    }

    /// Waits until the crew can do without one that has no place yet.
    async fn spare(&self) {
        let mut turns = self.foreman.turns();
        while !self.foreman.crew_has_spare() {
            if turns.changed().await.is_err() {
                return;
            }
        }
    }

    /// The next job. None: the place is to be given back.
    async fn next(&mut self, since: Instant) -> Option<Charge> {
        let mut turns = self.foreman.turns();
        let over = tokio::time::Instant::from_std(since + HOLD);
        loop {
            let next = {
                let now = Instant::now();
                self.foreman.next_for_hand(now.duration_since(since), now)
            };
            match next {
                Next::Run(charge) => {
                    self.stand = Stand::Busy;
                    return Some(charge);
                }
                Next::Leave => return None,
                // Not for longer than it may: the store may be slow.
                Next::Wait => drop(tokio::time::timeout_at(over, turns.changed()).await),
            }
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let stand = self.stand;
        self.foreman.change(|crew| crew.leaves(stand));
    }
}

pub(crate) async fn work(mut post: Post, pool: Pool) {
    let mut place = None;
    if pool.keyed_by().is_none() {
        let request = LeaseRequest { workers: 1, ttl: FOR_EVER, timeout: FOR_EVER };
        let leased = tokio::select! {
            leased = pool.lease(request) => leased,
            () = post.spare() => return,
        };
        match leased {
            Ok(lease) => place = Some(lease),
            Err(_) => return post.foreman.change(|crew| crew.refused(Instant::now())),
        }
    }
    post.move_to(Stand::Idle);
    let since = Instant::now();
    while let Some(charge) = post.next(since).await {
        if place.as_ref().is_some_and(|lease| lease.ended().is_some()) || own_way(&charge) {
            // Held on to, it would keep the job's own call from its place.
            place = None;
        }
        let goes_on = run(&mut post, &pool, place.as_ref(), charge).await;
        if !goes_on || (place.is_none() && pool.keyed_by().is_none()) {
            return;
        }
    }
}

/// Its session says where it runs.
fn own_way(charge: &Charge) -> bool {
    charge.job().spec.session.is_some()
}

/// False: there is no use in going on here.
async fn run(post: &mut Post, pool: &Pool, place: Option<&Lease>, charge: Charge) -> bool {
    let foreman = Arc::clone(&post.foreman);
    let place = match place {
        Some(lease) => Place::Leased(pool, lease),
        None => Place::Pool(pool),
    };
    let ending = attempt::run(&charge, place, &foreman.office).await;
    let released = ending.end == AttemptEnd::Released;
    foreman.change(|crew| match released {
        true => crew.refused(Instant::now()),
        false => crew.ran(ending.time),
    });
    let (office, waiting) = (Arc::clone(&foreman.office), foreman.end_waits());
    foreman.office.tasks.spawn(async move {
        settle::settle(&office, charge, ending).await;
        drop(waiting);
    });
    post.move_to(Stand::Idle);
    !released
}
