//! Which attempts this node has in its hands, and how each of them is called off.
//!
//! A cancellation can be told before the answer to the claim that it concerns was read. So as long
//! as claims are under way, calls for attempts that nobody has yet are remembered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use ostler_store::ledger::JobId;
use ostler_store::ledger::job::{Claimed, Job};
use tokio::sync::watch;

/// Calls that are remembered. One that is forgotten only comes late: the ledger has it too.
const EARLY_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct Roll {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    claims: usize,
    early: HashMap<JobId, u64>,
    held: HashMap<JobId, Entry>,
}

#[derive(Debug)]
struct Entry {
    fence: u64,
    called_off: watch::Sender<bool>,
}

impl Roll {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no code panics here")
    }

    /// A claim begins. What it brings is taken through this.
    pub fn claiming(self: &Arc<Self>) -> Claiming {
        self.inner().claims += 1;
        Claiming { roll: Arc::clone(self) }
    }

    /// Whoever has this attempt is to let go.
    pub fn call_off(&self, job: &JobId, fence: u64) {
        let mut inner = self.inner();
        match inner.held.get(job) {
            Some(entry) if entry.fence == fence => drop(entry.called_off.send_replace(true)),
            Some(entry) if entry.fence > fence => {}
            Some(_) | None if inner.claims > 0 && inner.early.len() < EARLY_MAX => {
                inner.early.insert(job.clone(), fence);
            }
            Some(_) | None => {}
        }
    }

    /// Whoever has any attempt of this job is to let go: it has its end.
    pub fn ended(&self, job: &JobId) {
        if let Some(entry) = self.inner().held.get(job) {
            entry.called_off.send_replace(true);
        }
    }

    pub fn holds(&self, job: &JobId) -> bool {
        self.inner().held.contains_key(job)
    }

    /// No claim is under way and nothing is held.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        let inner = self.inner();
        inner.claims == 0 && inner.held.is_empty()
    }

    fn leave(&self, job: &JobId, fence: u64) {
        let mut inner = self.inner();
        if inner.held.get(job).is_some_and(|entry| entry.fence == fence) {
            inner.held.remove(job);
        }
    }
}

/// A claim under way.
#[derive(Debug)]
pub(crate) struct Claiming {
    roll: Arc<Roll>,
}

impl Claiming {
    pub fn take(&self, claimed: Claimed) -> Charge {
        let mut inner = self.roll.inner();
        let (id, fence) = (claimed.job.id.clone(), claimed.fence);
        let early = inner.early.get(&id) == Some(&fence);
        let (sender, called_off) = watch::channel(early || claimed.job.cancel.is_some());
        inner.held.insert(id, Entry { fence, called_off: sender });
        Charge { claimed, called_off, roll: Arc::clone(&self.roll) }
    }
}

impl Drop for Claiming {
    fn drop(&mut self) {
        let mut inner = self.roll.inner();
        inner.claims -= 1;
        if inner.claims == 0 {
            inner.early.clear();
        }
    }
}

/// An attempt that somebody here is answerable for, from its claim until its end is stored.
#[derive(Debug)]
pub(crate) struct Charge {
    claimed: Claimed,
    called_off: watch::Receiver<bool>,
    roll: Arc<Roll>,
}

impl Charge {
    pub fn job(&self) -> &Job {
        &self.claimed.job
    }

    pub fn id(&self) -> &JobId {
        &self.claimed.job.id
    }

    pub fn attempt(&self) -> u32 {
        self.claimed.attempt
    }

    pub fn fence(&self) -> u64 {
        self.claimed.fence
    }

    pub fn is_called_off(&self) -> bool {
        *self.called_off.borrow()
    }

    /// Waits until it is to let go.
    pub async fn called_off(&self) {
        let mut called_off = self.called_off.clone();
        if called_off.wait_for(|called_off| *called_off).await.is_err() {
            // Another attempt of the job has taken its entry: nobody calls this one off any more.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.roll.leave(self.id(), self.fence());
    }
}

#[cfg(test)]
mod tests {
    use ostler_store::Content;
    use ostler_store::ledger::job::NewJob;
    use ostler_store::ledger::key::Asked;
    use ostler_store::ledger::{Ledger, LedgerSettings};

    use super::*;

    async fn claimed() -> Claimed {
        let ledger = Ledger::in_memory(LedgerSettings::default());
        let job = NewJob::new("pool", "f", Content::new("application/json", "1"));
        ledger.submit(vec![job], Asked::default()).await.expect("it is taken");
        ledger.claim("pool", 1).await.expect("it is there").remove(0)
    }

    #[tokio::test]
    async fn a_call_reaches_the_attempt_that_it_means_and_no_other() {
        let roll = Arc::new(Roll::default());
        let charge = roll.claiming().take(claimed().await);
        roll.call_off(charge.id(), charge.fence() + 1);
        roll.call_off(charge.id(), charge.fence() - 1);
        assert!(!charge.is_called_off());
        roll.call_off(charge.id(), charge.fence());
        charge.called_off().await;
        assert!(charge.is_called_off());
    }

    #[tokio::test]
    async fn a_call_that_overtakes_the_claim_is_not_lost() {
        let roll = Arc::new(Roll::default());
        let claimed = claimed().await;
        let claiming = roll.claiming();
        roll.call_off(&claimed.job.id, claimed.fence);
        assert!(claiming.take(claimed).is_called_off());
        drop(claiming);
        assert!(roll.is_empty());
    }

    #[tokio::test]
    async fn a_call_from_before_the_claim_concerns_nobody() {
        let roll = Arc::new(Roll::default());
        let claimed = claimed().await;
        roll.call_off(&claimed.job.id, claimed.fence);
        assert!(!roll.claiming().take(claimed).is_called_off());
    }

    #[tokio::test]
    async fn the_roll_is_empty_when_the_last_charge_is_gone() {
        let roll = Arc::new(Roll::default());
        let charge = roll.claiming().take(claimed().await);
        assert!(roll.holds(charge.id()) && !roll.is_empty());
        drop(charge);
        assert!(roll.is_empty());
    }
}
