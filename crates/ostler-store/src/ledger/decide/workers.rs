//! The status of workers: stored when the pool that decided it says so, each change once.

use ostler_core::Status;

use super::super::audit::Entity;
use super::super::draft::Draft;
use super::super::row::{PoolRow, TransitionRow, WorkerRow};
use super::super::shown;
use super::super::worker::{PoolPast, Stored, WorkerChange};
use super::check::note;
use super::step::actor;
use super::{Decided, Operation};

#[derive(Debug)]
pub(in crate::ledger) struct Record {
    pub change: WorkerChange,
}

impl Operation for Record {
    type Answer = Stored;

    async fn decide(&self, draft: &mut Draft) -> Decided<Stored> {
        let change = &self.change;
        let row = draft.worker(&change.worker).await?;
        let (seq, status) = row.as_ref().map_or((0, None), |row| (row.seq, Some(row.status)));
        if change.seq <= seq {
            return draft.recorded(change).await;
        }
        if let Some(reason) = unfit(change, seq, status) {
            return Ok(Stored::No(reason));
        }
        draft.record(change, row).await?;
        draft.mark_key(&change.asked, &change.worker).await?;
        Ok(Stored::Yes)
    }
}

fn unfit(change: &WorkerChange, seq: u64, status: Option<Status>) -> Option<String> {
    let name = |status: Option<Status>| status.map_or("new", Status::name);
    let worker = &change.worker;
    if change.seq != seq + 1 {
        return Some(format!("change {} of worker {worker} follows {seq}", change.seq));
    }
    if change.from != status {
        let (from, is) = (name(change.from), name(status));
        return Some(format!("worker {worker} is {is}, not {from}"));
    }
    match change.from {
        Some(from) if !from.may_become(change.to) => Some(format!(
            "worker {worker} is {} and cannot become {}",
            from.name(),
            change.to.name()
        )),
        _ => None,
    }
}

impl Draft {
    /// Whether this change is the one that is stored under its number.
    async fn recorded(&mut self, change: &WorkerChange) -> Decided<Stored> {
        let after = change.seq.saturating_sub(1);
        let trail =
            self.stored().await?.transitions(Entity::Worker, &change.worker, after, 1).await?;
        let same = trail.first().is_some_and(|step| {
            step.seq == change.seq
                && step.from.as_deref() == change.from.map(Status::name)
                && step.to == change.to.name()
                && step.trigger == change.trigger
        });
        Ok(match same {
            true => Stored::Yes,
            false => {
                Stored::No(format!("change {} of worker {} is another", change.seq, change.worker))
            }
        })
    }

    /// `known`: the worker as it was; whose it is was said when it was made.
    async fn record(&mut self, change: &WorkerChange, known: Option<WorkerRow>) -> Decided<()> {
        self.add_transition(TransitionRow {
            entity: Entity::Worker,
            id: change.worker.clone(),
            seq: change.seq,
            from: change.from.map(|from| from.name().to_owned()),
            to: change.to.name().to_owned(),
            trigger: change.trigger.clone(),
            reason: change.reason.as_deref().map(note),
            actor: actor(&change.asked).to_owned(),
            node: self.node.to_string(),
            request_id: change.asked.request_id.clone(),
            at: change.at.as_millisecond(),
        });
        let (workspace, dedicated, created_at) = match known {
            Some(known) => (known.workspace, known.dedicated, known.created_at),
            None => (change.workspace.clone(), change.dedicated, self.now),
        };
        self.put_worker(WorkerRow {
            id: change.worker.clone(),
            name: change.name.clone(),
            pool: change.pool.clone(),
            workspace,
            dedicated,
            node: self.node.to_string(),
            status: change.to,
            seq: change.seq,
            created_at,
            updated_at: self.now,
            finished_at: change.to.terminal().then_some(self.now),
        });
        self.note_number(&change.pool, &change.name).await
    }

    /// No later worker of this pool has the number of this one.
    async fn note_number(&mut self, pool: &str, worker: &str) -> Decided<()> {
        let number = worker.strip_prefix(pool).and_then(|rest| rest.strip_prefix('-'));
        let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) else {
            return Ok(());
        };
        let row = self.pool_row(pool).await?;
        if number >= row.next_worker {
            self.put_pool(PoolRow { next_worker: number + 1, ..row });
        }
        Ok(())
    }

    /// Made if it is new.
    async fn pool_row(&mut self, name: &str) -> Decided<PoolRow> {
        if let Some(row) = self.pool(name).await? {
            return Ok(row);
        }
        let number = self.stored().await?.last_pool_number().await? + 1;
        let row = PoolRow { name: name.to_owned(), number, next_worker: 1 };
        self.put_pool(row.clone());
        Ok(row)
    }
}

/// What a pool is to know when it starts.
#[derive(Debug)]
pub(in crate::ledger) struct Past {
    pub pool: String,
}

impl Operation for Past {
    type Answer = PoolPast;

    async fn decide(&self, draft: &mut Draft) -> Decided<PoolPast> {
        let row = draft.pool_row(&self.pool).await?;
        let open = draft.stored().await?.open_workers(Some(&self.pool)).await?;
        let dedicated = open.into_iter().filter(|worker| worker.dedicated);
        Ok(PoolPast {
            number: row.number,
            next_worker: row.next_worker,
            dedicated: dedicated.map(shown::worker).collect(),
        })
    }
}
