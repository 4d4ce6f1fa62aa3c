//! The durable side: which changes were sent to the store, which it confirmed, and which orders
//! they answer.

use std::collections::{BTreeMap, BTreeSet};

use ostler_core::{
    Action, Change, IdMap, OrderId, RecordId, Recording, Reply, Status, Time, Trigger, WorkerId,
};

use super::choice::Usage;
use super::retire::Retiring;
use crate::violation::{Verdict, require};

/// The whole table, in the order of the names: written down again, so that the core's own may be
/// wrong.
const LEGAL: [(Status, Status); 12] = [
    (Status::Completed, Status::Terminated),
    (Status::Failed, Status::Terminated),
    (Status::Idle, Status::Failed),
    (Status::Idle, Status::Running),
    (Status::Idle, Status::Terminated),
    (Status::Paused, Status::Failed),
    (Status::Paused, Status::Running),
    (Status::Paused, Status::Terminated),
    (Status::Running, Status::Completed),
    (Status::Running, Status::Failed),
    (Status::Running, Status::Paused),
    (Status::Running, Status::Terminated),
];

fn legal_from(status: Status) -> Vec<Status> {
    LEGAL.iter().filter(|(from, _)| *from == status).map(|(_, to)| *to).collect()
}

/// Workers that the pool must be able to name after their end.
const REMEMBERED: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Workers {
    rows: IdMap<WorkerId, Row>,
    known: Vec<WorkerId>,
    /// Those that have not come to their end.
    alive: BTreeSet<WorkerId>,
    orders: BTreeMap<OrderId, Order>,
}

#[derive(Debug, Default)]
pub(super) struct Row {
    /// As confirmed to the core.
    pub status: Option<Status>,
    seq: u64,
    pub pending: Option<Change>,
    pub dedicated: bool,
    pub generation: u32,
    pub paused_by_system: bool,
    pub usage: Usage,
    /// Somebody asked for its planned replacement, once.
    pub replacement_asked: bool,
    /// Somebody ordered that.
    pub recycled: bool,
    pub retiring: Option<Retiring>,
    /// As the store has it, confirmed or not.
    stored: Vec<Change>,
}

#[derive(Debug)]
struct Order {
    action: Action,
    /// The change that the store confirmed for it.
    effect: Option<(WorkerId, Status)>,
    refused: bool,
}

impl Workers {
    pub fn known(&self) -> &[WorkerId] {
        &self.known
    }

    pub fn get(&self, worker: WorkerId) -> Option<&Row> {
        self.rows.get(&worker)
    }

    pub fn get_mut(&mut self, worker: WorkerId) -> Option<&mut Row> {
        self.rows.get_mut(&worker)
    }

    pub fn running(&self, worker: WorkerId) -> bool {
        self.get(worker).is_some_and(|row| row.status == Some(Status::Running))
    }

    /// Running, and nothing on its way that would change that.
    pub fn surely_running(&self, worker: WorkerId) -> bool {
        self.get(worker)
            .is_some_and(|row| row.status == Some(Status::Running) && row.pending.is_none())
    }

    /// Nothing is under way that would take it out of service.
    pub fn surely_in_service(&self, worker: WorkerId) -> bool {
        self.surely_running(worker)
            && !self.completing(worker)
            && !self.get(worker).is_some_and(|row| row.replacement_asked)
    }

    pub fn paused(&self) -> Vec<WorkerId> {
        let paused = |id: &&WorkerId| self.rows[*id].status == Some(Status::Paused);
        self.known.iter().filter(paused).copied().collect()
    }

    pub fn alive(&self) -> impl Iterator<Item = WorkerId> + '_ {
        self.alive.iter().copied()
    }

    pub fn is_regular(&self, worker: WorkerId) -> bool {
        self.get(worker).is_some_and(|row| !row.dedicated)
    }

    pub fn recycle(&mut self, worker: WorkerId) {
        if let Some(row) = self.rows.get_mut(&worker) {
            row.recycled = true;
        }
    }

    pub fn recycle_all(&mut self) {
        for id in &self.alive {
            self.rows.get_mut(id).expect("whoever lives is known").recycled = true;
        }
    }

    pub fn ordered(&mut self, order: OrderId, action: Action) {
        self.orders.insert(order, Order { action, effect: None, refused: false });
    }

    pub fn open_order(&self) -> Option<(OrderId, Action)> {
        self.orders.first_key_value().map(|(id, order)| (*id, order.action))
    }

    pub fn unsettled(&self) -> Option<(WorkerId, Change)> {
        self.known.iter().find_map(|id| Some((*id, self.rows[id].pending?)))
    }

    pub fn record(&mut self, now: Time, record: RecordId, change: Change) -> Verdict {
        if !self.rows.contains_key(&record.worker) {
            require!(
                change.trigger == Trigger::Create && self.known.last() < Some(&record.worker),
                "a worker begins with its creation",
                "{record:?} {change:?} is about a worker that is not known"
            );
            let order = change.order.and_then(|order| self.orders.get(&order));
            let dedicated = order.is_some_and(|order| order.action == Action::Create);
            self.known.push(record.worker);
            self.alive.insert(record.worker);
            let usage = Usage { used: now, ..Usage::default() };
            self.rows.insert(record.worker, Row { dedicated, usage, ..Row::default() });
        }
        let row = self.rows.get_mut(&record.worker).expect("made above");
        require!(
            record.seq == row.seq + 1,
            "records have no gaps",
            "{record:?} comes after the {}th confirmed change",
            row.seq
        );
        if let Some(pending) = row.pending {
            require!(
                pending == change,
                "one record, one change",
                "{record:?} was {pending:?} and is now {change:?}"
            );
            return Ok(());
        }
        require!(
            change.from == row.status && change.trigger.leads_to() == change.to,
            "records form a chain",
            "{record:?} {change:?}, the worker is {:?}",
            row.status
        );
        require!(
            change.from.is_none_or(|from| LEGAL.contains(&(from, change.to))),
            "only legal changes of status",
            "{record:?} {change:?}"
        );
        row.pending = Some(change);
        Ok(())
    }

    pub fn stored(&mut self, record: RecordId, change: Change) {
        let row = self.rows.get_mut(&record.worker).expect("only what was sent is stored");
        if record.seq > row.stored.len() as u64 {
            row.stored.push(change);
        }
    }

    /// True if a worker reached its end by it.
    pub fn recorded(&mut self, record: RecordId, result: Recording) -> bool {
        let Some(row) = self.rows.get_mut(&record.worker) else { return false };
        let Some(change) = row.pending.filter(|_| record.seq == row.seq + 1) else { return false };
        match result {
            Recording::Stored => {
                row.seq += 1;
                row.status = Some(change.to);
                row.pending = None;
                row.paused_by_system = change.trigger == Trigger::PauseExhausted;
            }
            // Nobody waits for it: it is sent until it is stored.
            Recording::Refused if change.order.is_none() => return false,
            Recording::Refused => row.pending = None,
            Recording::Unknown => return false,
        }
        if let Some(order) = change.order.and_then(|order| self.orders.get_mut(&order)) {
            match result {
                Recording::Stored => order.effect = Some((record.worker, change.to)),
                _ => order.refused = true,
            }
        }
        let ended = result == Recording::Stored && change.to.terminal();
        let never_was = row_is_gone(change, result);
        if ended || never_was {
            self.alive.remove(&record.worker);
        }
        ended
    }

    pub fn reply(
        &mut self,
        id: OrderId,
        reply: &Reply,
        dedicated_full: bool,
        (shutting_down, keyed): (bool, bool),
    ) -> Verdict {
        let Some(order) = self.orders.remove(&id) else {
            require!(false, "one reply per order", "{id:?} was never given, or has its reply");
            return Ok(());
        };
        let fits = match reply {
            Reply::Done { worker, status } => self.done_fits(&order, *worker, *status),
            Reply::NoSuchWorker => self.unknown(&order),
            Reply::Illegal { from, to, allowed } => {
                let truth = self.target(&order).and_then(|row| row.status);
                let other_way = matches!(
                    (order.action, from),
                    (Action::Start(_), Status::Paused) | (Action::Resume(_), Status::Idle)
                );
                let illegal = other_way || !LEGAL.contains(&(*from, *to));
                truth == Some(*from) && illegal && *allowed == legal_from(*from)
            }
            Reply::InTransition => self.target(&order).is_some(),
            Reply::StoreRefused => order.refused,
            Reply::TimedOut => true,
            Reply::DedicatedFull => dedicated_full,
            Reply::ShuttingDown => shutting_down,
            Reply::PoolDone => matches!(
                order.action,
                Action::PausePool
                    | Action::ResumePool
                    | Action::DrainPool
                    | Action::Scale { .. }
                    | Action::Unbind(_)
            ),
            Reply::Recycling { workers } => {
                let running = |id: &WorkerId| self.running(*id);
                order.action == Action::RecyclePool && workers.iter().all(running)
            }
            Reply::NotServing => matches!(order.action, Action::Bind { .. }),
            Reply::NotInKeyedPool => keyed && matches!(order.action, Action::Bind { .. }),
            Reply::Reloaded { .. } | Reply::ReloadFailed { .. } | Reply::ReloadUnderway => false,
        };
        let target = self.target(&order);
        require!(
            fits,
            "a reply agrees with the store",
            "{id:?} {order:?} is answered {reply:?}; the worker: {target:?}"
        );
        Ok(())
    }

    /// What was acknowledged is in the store.
    fn done_fits(&self, order: &Order, worker: WorkerId, status: Status) -> bool {
        let Some(row) = self.get(worker) else { return false };
        let stored = row.stored.iter().any(|change| change.to == status);
        match order.action {
            Action::Recycle(_) | Action::Bind { .. } => stored,
            _ => stored && order.effect == Some((worker, status)),
        }
    }

    /// It never was, its creation came to nothing, or it ended long ago.
    fn unknown(&self, order: &Order) -> bool {
        let binds = matches!(order.action, Action::Bind { .. });
        self.target(order).is_none_or(|row| {
            let never = row.status.is_none() && row.pending.is_none();
            let long_ago = binds || self.known.len() > REMEMBERED;
            never || (row.status.is_some_and(Status::terminal) && long_ago)
        })
    }

    fn target(&self, order: &Order) -> Option<&Row> {
        match order.action {
            Action::Create => None,
            Action::Start(worker)
            | Action::Pause { worker, .. }
            | Action::Resume(worker)
            | Action::Complete(worker)
            | Action::Terminate(worker)
            | Action::Recycle(worker)
            | Action::Bind { worker, .. } => self.get(worker),
            Action::RecyclePool
            | Action::PausePool
            | Action::ResumePool
            | Action::DrainPool
            | Action::Scale { .. }
            | Action::Unbind(_) => None,
        }
    }

    /// Somebody waits for it to complete.
    pub fn completing(&self, worker: WorkerId) -> bool {
        self.orders.values().any(|order| order.action == Action::Complete(worker))
    }

    pub fn living(&self) -> Vec<(WorkerId, &Row)> {
        self.alive.iter().map(|id| (*id, &self.rows[id])).collect()
    }

    pub fn ended(&self, worker: WorkerId) -> bool {
        let status = self.get(worker).and_then(|row| row.status);
        status.is_some_and(Status::terminal)
    }

    /// Workers made by order that have not come to their end.
    pub fn dedicated(&self) -> usize {
        let living = |row: &&Row| row.dedicated && row.status.is_none_or(|s| !s.terminal());
        self.rows.values().filter(living).count()
    }
}

/// A creation that was refused.
fn row_is_gone(change: Change, result: Recording) -> bool {
    change.trigger == Trigger::Create && result == Recording::Refused
}
