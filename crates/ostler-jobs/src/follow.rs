//! Who waits for news of which job. A follower holds a counter and no buffer: what has changed is
//! read in the ledger.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use ostler_store::ledger::JobId;
use tokio::sync::watch;

#[derive(Debug, Default)]
pub(crate) struct Followers {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    jobs: HashMap<JobId, watch::Sender<u64>>,
    /// When there are more entries than this, those that nobody follows any more are dropped.
    sweep_at: usize,
}

impl Followers {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no code panics here")
    }

    pub fn follow(&self, job: &JobId) -> watch::Receiver<u64> {
        let mut inner = self.inner();
        if inner.jobs.len() >= inner.sweep_at {
            inner.jobs.retain(|_, counter| counter.receiver_count() > 0);
            inner.sweep_at = (2 * inner.jobs.len()).max(64);
        }
        let counter = inner.jobs.entry(job.clone()).or_insert_with(|| watch::Sender::new(0));
        counter.subscribe()
    }

    /// Something is new with this job.
    pub fn tell(&self, job: &JobId) {
        let mut inner = self.inner();
        let Some(counter) = inner.jobs.get(job) else { return };
        if counter.receiver_count() == 0 {
            inner.jobs.remove(job);
        } else {
            counter.send_modify(|count| *count += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn followers_hear_of_their_own_job_only() {
        let followers = Followers::default();
        let (mine, other) = (JobId::fresh(), JobId::fresh());
        let (first, second) = (followers.follow(&mine), followers.follow(&mine));
        followers.tell(&other);
        assert!(!first.has_changed().expect("it is told on"));
        followers.tell(&mine);
        assert!(first.has_changed().expect("it is told on"));
        assert!(second.has_changed().expect("it is told on"));
    }

    #[test]
    fn nothing_is_kept_of_those_who_left() {
        let followers = Followers::default();
        let stays = followers.follow(&JobId::fresh());
        for _ in 0..10_000 {
            drop(followers.follow(&JobId::fresh()));
        }
        assert!(followers.inner().jobs.len() <= 64);
        assert!(stays.has_changed().is_ok());
    }
}
