//! Which processes there are, what the core was told of each, and what it asked of each.

use std::collections::BTreeMap;

use ostler_core::{
    Bond, CapacityFrom, KeyId, LeaseId, ProcessId, Ready, RequestId, Settings, Time, WorkerId,
};

use super::health::Health;

use crate::violation::{Verdict, Violation, require};

/// At most one per worker: two that live at once are a finding.
#[derive(Debug, Default)]
pub(super) struct Processes {
    rows: BTreeMap<WorkerId, Row>,
    pub spawns: u64,
}

#[derive(Debug)]
pub(super) struct Row {
    pub id: ProcessId,
    pub dedicated: bool,
    pub spawned: Time,
    /// Which kind of worker it is.
    pub edition: u32,
    pub ready_at: Option<Time>,
    /// When its time may be over, and when it must be.
    pub ttl_from: Option<Time>,
    pub ttl_by: Option<Time>,
    /// Whose requests it was given, in a keyed pool.
    pub key: Option<KeyId>,
    /// Requests that it let go of.
    pub served: u64,
    pub memory: u64,
    pub measured: Option<Time>,
    /// Told to the core; with it the capacity that holds.
    pub ready: Option<Ready>,
    pub capacity: usize,
    /// What may lie behind those that it works on.
    pub prefetch: usize,
    pub exited: bool,
    /// It ended by itself, and nobody had a reason to end it.
    pub crashed: bool,
    /// Sent and not let go of, in the order of sending.
    pub held: Vec<Held>,
    /// Places on it that belong to granted leases.
    pub leased: usize,
    pub stopping: Option<Stop>,
    pub frozen: bool,
    pub health: Health,
    /// Told to the core: it cannot be trusted any more.
    pub tainted: Option<Time>,
    /// When it last let go of something; at first, its spawn.
    pub last_answer: Time,
    /// Told to the core: its stream closed, or it broke the protocol.
    pub broken: bool,
    pub retire_asked: bool,
    /// It asked, and nothing has happened since that could keep it here after all.
    pub leaving: bool,
    /// A lease on it was given back with the wish to discard it.
    pub discarded: bool,
    /// Something that was still wanted could not be written to it, and it has said nothing since.
    pub mute: bool,
    /// It kept a cancelled request for longer than the grace.
    pub overstayed: bool,
    /// Since when it has been open for more work, as far as was looked.
    pub open_since: Option<Time>,
    pub heard: Time,
    /// It did at some time keep silent.
    pub was_silent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub request: RequestId,
    pub attempt: u32,
    /// The lease whose place it runs on.
    pub lease: Option<LeaseId>,
    /// The session whose own process this is.
    pub bond: Option<Bond>,
    /// The session was taken from it meanwhile, by somebody who knew.
    pub freed: bool,
    pub since: Time,
    /// It was sent behind others and has not moved up.
    pub behind: bool,
    /// It was to come back, to run elsewhere.
    pub withdrawn: bool,
    pub cancelled: Option<Time>,
}

/// How far down the stop ladder it was sent, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) struct Stop {
    pub rung: Rung,
    pub since: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rung {
    Asked,
    Terminated,
    Killed,
}

impl Processes {
    pub fn rows(&self) -> impl Iterator<Item = &Row> + '_ {
        self.rows.values()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn of(&self, worker: WorkerId) -> Option<&Row> {
        self.rows.get(&worker)
    }

    pub fn get(&self, id: ProcessId) -> Option<&Row> {
        self.rows.get(&id.worker).filter(|row| row.id == id)
    }

    pub fn get_mut(&mut self, id: ProcessId) -> Option<&mut Row> {
        self.rows.get_mut(&id.worker).filter(|row| row.id == id)
    }

    /// A successor may have come to nothing: those who asked to go may have to stay.
    pub fn forget_retirements(&mut self) {
        for row in self.rows.values_mut() {
            row.leaving = false;
        }
    }

    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> + '_ {
        self.rows.values_mut()
    }

    pub fn remove(&mut self, id: ProcessId) {
        if self.get(id).is_some() {
            self.rows.remove(&id.worker);
        }
    }

    pub fn spawn(
        &mut self,
        now: Time,
        id: ProcessId,
        (dedicated, edition): (bool, u32),
        (settings, beside): (&Settings, usize),
    ) -> Verdict {
        self.spawns += 1;
        let row = Row { edition, ..Row::new(now, id, dedicated, settings) };
        let before = self.rows.insert(id.worker, row);
        require!(
            before.is_none(),
            "one incarnation at a time",
            "{id} is spawned before {:?} is cleared",
            before.map(|row| row.id)
        );
        let starting = |row: &&Row| row.ready.is_none() && !row.exited;
        let starting = self.rows.values().filter(starting).count();
        require!(
            starting <= settings.start_batch as usize + beside,
            "starts come in batches",
            "{starting} processes start at once, {} and {beside} may",
            settings.start_batch
        );
        let kin = |row: &&Row| row.dedicated && row.stopping.is_none() && !row.exited;
        let kin: Vec<_> = self.rows.values().filter(kin).map(|row| row.id.to_string()).collect();
        let most = settings.dedicated_max as usize;
        require!(
            !dedicated || kin.len() <= most + 1,
            "no more processes than allowed",
            "{kin:?} with {id}, allowed: {most}"
        );
        Ok(())
    }

    /// The process that a command is about: the current one of its worker, not known to be dead.
    pub fn addressed(&mut self, id: ProcessId, what: &'static str) -> Result<&mut Row, Violation> {
        let row = self.rows.get_mut(&id.worker).filter(|row| row.id == id && !row.exited);
        row.ok_or_else(|| Violation {
            checker: "commands go to living processes",
            text: format!("{what} is addressed to {id}, which is not there"),
        })
    }
}

impl Row {
    pub fn new(now: Time, id: ProcessId, dedicated: bool, settings: &Settings) -> Self {
        Row {
            id,
            dedicated,
            spawned: now,
            edition: 1,
            ready_at: None,
            ttl_from: None,
            ttl_by: None,
            key: None,
            served: 0,
            memory: 0,
            measured: None,
            ready: None,
            capacity: settings.capacity as usize,
            prefetch: 0,
            exited: false,
            crashed: false,
            held: Vec::new(),
            leased: 0,
            stopping: None,
            frozen: false,
            health: Health::new(now),
            tainted: None,
            last_answer: now,
            broken: false,
            retire_asked: false,
            leaving: false,
            discarded: false,
            mute: false,
            overstayed: false,
            open_since: None,
            heard: now,
            was_silent: false,
        }
    }

    pub fn become_ready(&mut self, now: Time, ready: Ready, settings: &Settings) {
        if self.ready.is_none() && !self.exited {
            self.ready = Some(ready);
            self.ready_at = Some(now);
            let ttl = |factor: f64| settings.ttl.map(|ttl| now.after(ttl.mul_f64(factor)));
            self.ttl_from = ttl((1.0 - settings.ttl_jitter) * 0.999);
            self.ttl_by = ttl((1.0 + settings.ttl_jitter) * 1.001);
            let pools = settings.capacity;
            let said = ready.capacity.unwrap_or(pools);
            self.capacity = match settings.capacity_from {
                CapacityFrom::Pool => pools,
                CapacityFrom::Worker => said,
                CapacityFrom::Min => pools.min(said),
            } as usize;
            self.heard = now;
            self.health.become_ready(now, ready, settings);
            self.prefetch = if ready.gives_back { settings.prefetch as usize } else { 0 };
        }
    }

    pub fn let_go(&mut self, request: RequestId, attempt: u32) -> Option<Held> {
        let at = self.held.iter().position(|h| h.request == request && h.attempt == attempt);
        self.open_since = None;
        at.map(|at| self.held.remove(at))
    }

    /// The one that may begin because another has gone, if its caller still waits.
    pub fn move_up(&mut self) -> Option<RequestId> {
        let last = self.held.get_mut(self.capacity - 1)?;
        let moved = std::mem::take(&mut last.behind);
        (moved && last.cancelled.is_none()).then_some(last.request)
    }

    pub fn is_idle(&self) -> bool {
        self.held.is_empty() && self.leased == 0
    }

    /// Requests outside leases, and places that belong to leases.
    pub fn used(&self) -> usize {
        self.held.iter().filter(|held| held.lease.is_none()).count() + self.leased
    }

    /// What still runs on a place that was given back is a request like any other.
    pub fn return_place(&mut self, lease: LeaseId) {
        self.open_since = None;
        for held in self.held.iter_mut().filter(|held| held.lease == Some(lease)) {
            held.lease = None;
        }
    }

    /// By all that the core was told, it may be given work.
    pub fn serves(&self) -> bool {
        self.ready.is_some()
            && !self.exited
            && self.stopping.is_none()
            && !self.frozen
            && !self.broken
            && self.tainted.is_none()
            && !self.health.degraded()
            && !self.leaving
            && !self.discarded
    }

    pub fn assign(&mut self, held: Held, prefetched: bool) -> Verdict {
        let (id, request) = (self.id, held.request);
        require!(
            self.ready.is_some() && self.stopping.is_none() && !self.broken && !self.frozen,
            "work goes to those who serve",
            "{request:?} is sent to {self:?}"
        );
        require!(
            self.tainted.is_none(),
            "the tainted get nothing new",
            "{request:?} is sent to {self:?}"
        );
        require!(
            held.lease.is_some() || !self.health.degraded(),
            "the unwell get no work",
            "{request:?} is sent to {self:?}"
        );
        require!(
            held.lease.is_some() || (!self.leaving && !self.discarded),
            "no new work for one that leaves",
            "{request:?} is sent to {self:?}"
        );
        let position = self.held.len();
        require!(
            prefetched == (position >= self.capacity),
            "prefetched means behind another",
            "{request:?} is number {position} on {id} of capacity {}, prefetched: {prefetched}",
            self.capacity
        );
        let room = if self.leased > 0 { self.capacity } else { self.capacity + self.prefetch };
        require!(
            position < self.capacity + self.prefetch
                && (held.lease.is_some() || self.used() < room),
            "no more than a process may hold",
            "{request:?} is one too many for {self:?}"
        );
        self.held.push(held);
        self.open_since = None;
        self.health.given_work();
        Ok(())
    }

    /// `withdraw`: to run it elsewhere, which must not touch what may have begun.
    pub fn cancel(
        &mut self,
        now: Time,
        (request, attempt): (RequestId, u32),
        withdraw: bool,
    ) -> Verdict {
        let at = self.held.iter().position(|h| h.request == request && h.attempt == attempt);
        let fresh = at.filter(|at| match withdraw {
            true => *at >= self.capacity && !self.held[*at].withdrawn,
            false => self.held[*at].cancelled.is_none(),
        });
        require!(
            fresh.is_some(),
            "cancel what is held, once",
            "{request:?} attempt {attempt} is cancelled (withdraw: {withdraw}) on {self:?}"
        );
        let held = &mut self.held[fresh.expect("required above")];
        match withdraw {
            true => held.withdrawn = true,
            false => held.cancelled = Some(now),
        }
        Ok(())
    }
}

impl Held {
    /// Sent just now, to begin at once.
    pub fn of(request: RequestId, now: Time) -> Self {
        Held {
            request,
            attempt: 1,
            lease: None,
            bond: None,
            freed: false,
            since: now,
            behind: false,
            withdrawn: false,
            cancelled: None,
        }
    }

    /// It was to be let go of, and the grace for that is over.
    pub fn overdue(&self, now: Time, settings: &Settings) -> bool {
        self.cancelled.is_some_and(|since| now >= since.after(settings.cancel_grace))
    }
}
