//! The core's orders, carried out: what must keep its order under the lock, what makes system calls
//! after it.

use std::sync::Arc;

use ostler_core::{Change, Command, Event, Notice, ProcessId, RecordId, Recording, Reply, Time};

use super::ends::refused;
use super::{Driver, Inner};
use crate::exchange::Began;
use crate::link::Link;
use crate::registry::Origin;

/// Orders that are carried out after the lock is released.
#[derive(Debug, Default)]
pub(super) struct Afterwards {
    pub flush: Vec<Arc<Link>>,
    pub cancel: Vec<(Arc<Link>, u64, bool)>,
    pub acts: Vec<Act>,
    /// To be logged.
    pub told: Vec<(Notice, Option<Arc<Link>>)>,
    pub rearm: bool,
}

#[derive(Debug)]
pub(super) enum Act {
    Spawn(ProcessId, u32),
    Terminate(Arc<Link>),
    Kill(Arc<Link>),
    Freeze(Arc<Link>),
    Thaw(Arc<Link>),
    /// Find out why it is silent.
    Examine(Arc<Link>),
    Store(RecordId, Change, Box<Origin>),
}

impl Afterwards {
    pub fn flush(&mut self, link: Arc<Link>) {
        if !self.flush.iter().any(|known| Arc::ptr_eq(known, &link)) {
            self.flush.push(link);
        }
    }
}

impl Driver {
    pub(super) fn perform(
        &self,
        inner: &mut Inner,
        now: Time,
        command: Command,
        after: &mut Afterwards,
        recorded: &mut Vec<Event>,
    ) {
        let link = |process: &ProcessId| inner.links.get(process).cloned();
        match command {
            Command::Assign {
                request, attempt, process, tries, prefetched, continuity, ..
            } => {
                let link = link(&process).expect("only a ready process is assigned to");
                let exchange = Arc::clone(&inner.exchanges[&request]);
                let continuity = continuity.map(|found| self.meet(&exchange, &link, found));
                link.assign(exchange, tries, Began { now, attempt, prefetched, continuity });
                after.flush(link);
            }
            Command::Begin { request, .. } => {
                if let Some(exchange) = inner.exchanges.get(&request) {
                    exchange.moved_up(now);
                }
            }
            Command::Cancel { request, process, withdraw, .. } => {
                let flight = inner.exchanges.get(&request).and_then(|exchange| exchange.link());
                let flight = flight.filter(|(link, _)| link.process == process);
                after.cancel.extend(flight.map(|(link, wire_id)| (link, wire_id, withdraw)));
            }
            Command::Resolve { request, outcome } => {
                inner.resolve(self.number, now, request, outcome);
            }
            Command::Refuse { request, refusal } => {
                let why = self.launcher.last_failure();
                inner.refuse(self.number, now, request, refused(refusal, why));
            }
            Command::Spawn { process, edition } => after.acts.push(Act::Spawn(process, edition)),
            Command::SaveSession { process, session } => {
                let (link, id) = (link(&process), self.session_id(session));
                match link.zip(id) {
                    Some((link, id)) => {
                        link.save(session, &id, inner.core.settings().save_timeout);
                        after.flush(link);
                    }
                    None => {
                        recorded.push(Event::SessionSaved { process, session, saved: false });
                    }
                }
            }
            Command::Ping { process } => {
                if let Some(link) = link(&process) {
                    link.ping();
                    after.flush(link);
                }
            }
            Command::CheckHealth { process } => {
                if let Some(link) = link(&process) {
                    link.check_health();
                    after.flush(link);
                }
            }
            Command::AskShutdown { process } => {
                if let Some(link) = link(&process) {
                    link.say(ostler_proto::ToWorker::Shutdown { graceful: true });
                    after.flush(link);
                }
            }
            Command::Terminate { process } => after.acts.extend(link(&process).map(Act::Terminate)),
            Command::Kill { process } => match link(&process) {
                Some(link) => after.acts.push(Act::Kill(link)),
                None => self.launcher.condemn(process),
            },
            Command::Freeze { process } => after.acts.extend(link(&process).map(Act::Freeze)),
            Command::Thaw { process } => after.acts.extend(link(&process).map(Act::Thaw)),
            Command::Record { record, change } => {
                let origin =
                    change.order.and_then(|order| Some(inner.orders.get(&order)?.1.clone()));
                let origin = origin.unwrap_or_default();
                if self.registry.is_some() {
                    return after.acts.push(Act::Store(record, change, Box::new(origin)));
                }
                inner.chronicle.record(now, record, change, origin.workspace.as_deref());
                recorded.push(Event::Recorded { record, result: Recording::Stored });
            }
            Command::Reply { order, reply } => {
                if let Reply::Illegal { from, to, .. } = &reply {
                    inner.chronicle.tally.note_refused_status(*from, *to);
                }
                if let Some((waiting, _)) = inner.orders.remove(&order) {
                    drop(waiting.send(reply));
                }
            }
            Command::Notify(notice) => self.announce(inner, now, &notice, after),
            Command::Stopped => {
                inner.chronicle.stopped();
                self.readiness.send_modify(|readiness| readiness.cleared = true);
            }
            Command::Grant { lease, places } => {
                let names = places.iter().map(|place| self.launcher.name(*place).into()).collect();
                inner.answer_lease(lease, Ok(names));
            }
            Command::RefuseLease { lease, refusal } => inner.answer_lease(lease, Err(refusal)),
            // Whoever calls on the lost place is told then.
            Command::LosePlace { .. } => {}
            Command::EndLease { lease, reason } => {
                if let Some(desk) = inner.leases.get(&lease) {
                    desk.end.send_replace(Some(reason));
                }
            }
        }
    }

    /// Returns what came of it.
    pub(super) fn carry_out(&self, mut after: Afterwards) -> Vec<Event> {
        if after.rearm {
            self.rearm.notify_one();
        }
        let mut events = Vec::new();
        for link in after.flush {
            events.extend(link.flush());
        }
        for (link, wire_id, withdraw) in after.cancel {
            events.extend(link.cancel(wire_id, withdraw));
            events.extend(link.flush());
        }
        for act in after.acts.drain(..) {
            self.act(act);
        }
        for (notice, link) in after.told.drain(..) {
            self.log(&notice, link.as_deref());
        }
        events
    }

    fn act(&self, act: Act) {
        match act {
            Act::Spawn(process, edition) => {
                let me = self.me.upgrade().expect("the driver is in use");
                self.run(crate::attend::attend(me, process, edition));
            }
            Act::Terminate(link) => drop(link.handle.signal(libc::SIGTERM)),
            Act::Kill(link) => self.run(async move { link.handle.sweep().await }),
            Act::Freeze(link) => drop(link.handle.freeze()),
            Act::Thaw(link) => drop(link.handle.thaw()),
            Act::Examine(link) => link.examine(),
            Act::Store(record, change, origin) => {
                let me = self.me.upgrade().expect("the driver is in use");
                self.run(me.store(record, change, *origin));
            }
        }
    }
}
