//! The durable side of a pool's workers: their numbers go on where the server before stopped, and a
//! change of status takes effect when the ledger has it. A pool without a ledger has none of this.

use ostler_core::{Change, RecordId, Recording, Restored, Retirement, Trigger, WorkerId};
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::worker::{PoolPast, Stored, Worker, WorkerChange};
use ostler_store::ledger::{Ledger, LedgerError};

/// Who gave an order, and what for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    pub asked: Asked,
    /// Of a worker to be made.
    pub workspace: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Registry {
    ledger: Ledger,
    pool: String,
    past: PoolPast,
}

/// Orders of people who did not say who they are.
const SUPERVISOR: &str = "supervisor";
const SYSTEM: &str = "system";
const WORKSPACE: &str = "default";

impl Registry {
    pub async fn open(ledger: Ledger, pool: &str) -> Result<Registry, LedgerError> {
        let past = ledger.pool_past(pool).await?;
        Ok(Registry { ledger, pool: pool.to_owned(), past })
    }

    /// Of the pool, the same after a restart.
    pub fn number(&self) -> u64 {
        self.past.number
    }

    pub fn next_worker(&self) -> u64 {
        self.past.next_worker
    }

    pub fn dedicated(&self) -> impl Iterator<Item = (Restored, &Worker)> {
        self.past.dedicated.iter().filter_map(|known| {
            let worker = worker_of(&self.pool, &known.name)?;
            Some((Restored { worker, seq: known.seq, status: known.status }, known))
        })
    }

    pub fn worker_id(&self, worker: WorkerId) -> String {
        format!("w_{}_{}", self.number(), worker.0)
    }

    pub async fn store(
        &self,
        record: RecordId,
        change: Change,
        origin: Origin,
        at: jiff::Timestamp,
    ) -> Recording {
        let worker = self.worker_id(record.worker);
        let change = WorkerChange {
            name: format!("{}-{}", self.pool, record.worker.0),
            pool: self.pool.clone(),
            workspace: origin.workspace.unwrap_or_else(|| WORKSPACE.to_owned()),
            // Only those that somebody ordered; the ledger remembers it from then on.
            dedicated: change.trigger == Trigger::Create && change.order.is_some(),
            seq: record.seq,
            from: change.from,
            to: change.to,
            trigger: trigger(change.trigger).to_owned(),
            reason: reason(change).map(str::to_owned).or_else(|| origin.asked.reason.clone()),
            at,
            asked: asked(origin.asked, change.order.is_some()),
            worker,
        };
        let (name, seq) = (change.name.clone(), change.seq);
        match self.ledger.record(change).await {
            Stored::Yes => Recording::Stored,
            Stored::No(why) => {
                tracing::warn!(worker = name, seq, why, "a change of status was not stored");
                Recording::Refused
            }
            Stored::Unknown(why) => {
                tracing::warn!(worker = name, seq, why, "a change of status may not be stored");
                Recording::Unknown
            }
        }
    }
}

/// The worker of a pool that a name means.
pub(crate) fn worker_of(pool: &str, name: &str) -> Option<WorkerId> {
    let number = name.strip_prefix(pool)?.strip_prefix('-')?;
    let plain = !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| plain).map(WorkerId)
}

/// As the trail names it: a pause by the system is a pause, with a reason.
fn trigger(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::PauseExhausted => Trigger::Pause.name(),
        other => other.name(),
    }
}

fn reason(change: Change) -> Option<&'static str> {
    match change.trigger {
        Trigger::PauseExhausted => Some(Trigger::PauseExhausted.name()),
        _ => change.retirement.map(Retirement::name),
    }
}

fn asked(asked: Asked, ordered: bool) -> Asked {
    if !asked.actor.is_empty() {
        return asked;
    }
    Asked { actor: if ordered { SUPERVISOR } else { SYSTEM }.to_owned(), ..asked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_worker_of_its_pool() {
        assert_eq!(worker_of("py", "py-3"), Some(WorkerId(3)));
        assert_eq!(worker_of("py-3", "py-3-7"), Some(WorkerId(7)));
        for other in ["py", "py-", "py-03", "py-x", "py-3-7", "js-3", "py-+3"] {
            assert_eq!(worker_of("py", other), None, "{other}");
        }
    }
}
