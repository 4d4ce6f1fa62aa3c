//! Runs the jobs of one pool: lets hands in as there is work for them, fetches work as they have
//! places, and takes back what nobody came for. What to do is decided by the [`Crew`]; here it is
//! done.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ostler_core::JobStatus;
use ostler_runtime::Pool;
use ostler_store::ledger::LedgerError;
use ostler_store::ledger::job::JobFilter;
use tokio::sync::{Notify, RwLock, watch};

use crate::attempt::Ending;
use crate::crew::{Crew, Next};
use crate::hand::{self, Post};
use crate::office::{Heard, Office, Stage};
use crate::roll::Charge;
use crate::{gang, orphans, settle};

#[derive(Debug)]
pub(crate) struct Foreman {
    pub office: Arc<Office>,
    pub pool: Box<str>,
    crew: Mutex<Crew<Charge>>,
    /// For the foreman: there is something to do.
    bell: Notify,
    /// For the hands: things have changed.
    turn: watch::Sender<()>,
    /// For whoever looks for gangs: there may be one.
    pub gangs: Notify,
    /// Read by whoever claims, until what came of it is on the roll. Whoever compares the roll with
    /// the ledger has it alone.
    pub books: RwLock<()>,
}

impl Foreman {
    pub fn hire(office: Arc<Office>, pool: &str) -> Arc<Foreman> {
        let foreman = Arc::new(Foreman {
            office,
            pool: pool.into(),
            crew: Mutex::new(Crew::new()),
            bell: Notify::new(),
            turn: watch::Sender::new(()),
            gangs: Notify::new(),
            books: RwLock::new(()),
        });
        let tasks = &foreman.office.tasks;
        tasks.spawn(Arc::clone(&foreman).run());
        tasks.spawn(gang::seek(Arc::clone(&foreman)));
        tasks.spawn(Arc::clone(&foreman).look_for_old_work());
        foreman
    }

    /// Changes the crew, and lets everybody know whom it concerns.
    pub fn change<T>(&self, change: impl FnOnce(&mut Crew<Charge>) -> T) -> T {
        let result = change(&mut self.crew());
        self.bell.notify_one();
        self.turn.send_replace(());
        result
    }

    fn crew(&self) -> MutexGuard<'_, Crew<Charge>> {
        self.crew.lock().expect("no code panics here")
    }

    pub fn crew_has_spare(&self) -> bool {
        self.crew().has_spare(Instant::now())
    }

    pub fn next_for_hand(&self, held: Duration, now: Instant) -> Next<Charge> {
        let next = self.crew().next(held, now);
        if matches!(next, Next::Run(_)) {
            self.bell.notify_one();
        }
        next
    }

    /// Counts an end until it is stored.
    pub fn end_waits(self: &Arc<Self>) -> WaitingEnd {
        self.crew().ends();
        WaitingEnd { foreman: Arc::clone(self) }
    }

    pub fn turns(&self) -> watch::Receiver<()> {
        self.turn.subscribe()
    }

    pub fn wake(&self) {
        self.bell.notify_one();
    }

    pub fn hear(&self, heard: Heard) {
        self.change(|crew| {
            crew.more(heard.more);
            crew.fewer(heard.fewer);
            if heard.ready && heard.more == 0 {
                crew.perhaps();
            }
        });
        self.gangs.notify_one();
    }

    pub fn running_pool(&self) -> Option<Pool> {
        self.office.directory.pool(&self.pool)
    }

    async fn run(self: Arc<Self>) {
        let mut stage = self.office.stage.subscribe();
        while *stage.borrow_and_update() == Stage::Working {
            let next_look = self.arrange();
            tokio::select! {
                () = self.bell.notified() => {}
                _ = stage.changed() => {}
                () = until(next_look) => {}
            }
        }
        let unbegun = self.change(Crew::close);
        self.give_back(unbegun);
    }

    /// Does what is to be done now, and says when to look again.
    fn arrange(self: &Arc<Self>) -> Option<Instant> {
        let now = Instant::now();
        let pool = self.running_pool();
        let places = pool.as_ref().map_or(0, |pool| pool.size_max() * pool.capacity());
        let mut crew = self.crew();
        crew.set_places(places as usize);
        let mut hands = 0;
        while crew.wants_hand(now) {
            crew.enters();
            hands += 1;
        }
        let claim = crew.claim(now);
        let unbegun = crew.sort_out(now, Charge::is_called_off);
        let next_look = crew.next_look(now);
        drop(crew);
        for pool in pool.into_iter().flat_map(|pool| std::iter::repeat_n(pool, hands)) {
            self.office.tasks.spawn(hand::work(Post::new(Arc::clone(self)), pool));
        }
        if let Some(limit) = claim {
            self.office.tasks.spawn(Arc::clone(self).claim(limit));
        }
        self.give_back(unbegun);
        next_look
    }

    /// Never dropped half done: what the ledger has given must be taken.
    async fn claim(self: Arc<Self>, limit: usize) {
        let books = self.books.read().await;
        let claiming = self.office.roll.claiming();
        match self.office.ledger.claim(&self.pool, limit).await {
            Ok(claims) => {
                let charges: Vec<Charge> =
                    claims.into_iter().map(|claimed| claiming.take(claimed)).collect();
                drop((claiming, books));
                let unbegun = self.change(|crew| crew.claimed(limit, charges, Instant::now()));
                self.give_back(unbegun);
            }
            Err(error) => {
                drop((claiming, books));
                self.claim_failed(&error);
                self.change(|crew| crew.unclaimed(Instant::now()));
            }
        }
    }

    /// Perhaps it was stored all the same: then nobody knows whose the jobs are.
    pub fn claim_failed(self: &Arc<Self>, error: &LedgerError) {
        tracing::warn!(pool = &*self.pool, "jobs cannot be claimed: {error}");
        if matches!(error, LedgerError::Doubtful { .. }) {
            self.office.tasks.spawn(orphans::give_back(Arc::clone(self)));
        }
    }

    fn give_back(self: &Arc<Self>, charges: Vec<Charge>) {
        for charge in charges {
            let office = Arc::clone(&self.office);
            self.office.tasks.spawn(async move {
                settle::settle(&office, charge, Ending::unbegun()).await;
            });
        }
    }

    /// Nobody tells of what was there before.
    async fn look_for_old_work(self: Arc<Self>) {
        for status in [JobStatus::Pending, JobStatus::Running] {
            let filter = JobFilter {
                pool: Some(self.pool.to_string()),
                status: Some(status),
                ..JobFilter::default()
            };
            // In doubt there may be some.
            let some =
                self.office.ledger.jobs(&filter, 1).await.map_or(true, |old| !old.is_empty());
            if some {
                self.hear(Heard { ready: true, ..Heard::default() });
                return;
            }
        }
    }
}

/// The end of an attempt on its way to the store. It is there when this is dropped.
#[derive(Debug)]
pub(crate) struct WaitingEnd {
    foreman: Arc<Foreman>,
}

impl Drop for WaitingEnd {
    fn drop(&mut self) {
        let goes_on = self.foreman.crew().end_kept();
        if goes_on {
            self.foreman.change(|_| ());
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use ostler_store::Content;
    use ostler_store::ledger::job::NewJob;
    use ostler_store::ledger::key::Asked;
    use ostler_store::ledger::{Ledger, LedgerSettings};

    use crate::crew::CLAIM_MAX;

    #[tokio::test]
    async fn the_ledger_gives_as_many_at_once_as_are_ever_asked_for() {
        let ledger = Ledger::in_memory(LedgerSettings::default());
        let job = NewJob::new("py", "f", Content::new("application/json", ""));
        ledger.submit(vec![job; CLAIM_MAX], Asked::default()).await.expect("they are taken");
        let claimed = ledger.claim("py", CLAIM_MAX).await.expect("they are there");
        assert_eq!(claimed.len(), CLAIM_MAX);
    }
}
