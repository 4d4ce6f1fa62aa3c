//! The one who stands between the core and everything else. Facts come in from any task, the core
//! decides under one short lock, and the orders are carried out: what is mere bookkeeping under
//! the lock, so that its order is the core's order, what makes system calls after it.
//!
//! A call crosses the driver twice: when it arrives and when its worker has let go of it. Neither
//! time does its payload.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use ostler_core::{
    Command, Event, IdMap, Notice, OrderId, Outcome, Pool as Core, ProcessId, Recording, Refusal,
    Reply, RequestId, Settings, Time,
};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::exchange::Exchange;
use crate::failure::{CallError, Failure, Refused};
use crate::journal::Journal;
use crate::launcher::Launcher;
use crate::link::Link;
use crate::trace::Trace;

/// Lines of a dead worker's stderr that its callers get to see.
const STDERR_LINES: usize = 20;

#[derive(Debug)]
pub(crate) struct Driver {
    pub clock: Clock,
    pub launcher: Launcher,
    inner: Mutex<Inner>,
    /// The next deadline came nearer.
    rearm: Notify,
    pub readiness: watch::Sender<Readiness>,
    tasks: Mutex<JoinSet<()>>,
    me: Weak<Driver>,
}

/// How far the pool has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readiness {
    pub first_ready: bool,
    pub all_ready: bool,
    /// Every worker's process is gone.
    pub cleared: bool,
    /// And so is the root shim.
    pub stopped: bool,
}

#[derive(Debug)]
struct Inner {
    core: Core,
    commands: Vec<Command>,
    exchanges: IdMap<RequestId, Arc<Exchange>>,
    links: HashMap<ProcessId, Arc<Link>>,
    orders: IdMap<OrderId, oneshot::Sender<Reply>>,
    journal: Journal,
    armed: Option<Time>,
    trace: Option<Trace>,
}

/// Orders that are carried out after the lock is released.
#[derive(Debug, Default)]
struct Afterwards {
    flush: Vec<Arc<Link>>,
    cancel: Vec<(Arc<Link>, u64, bool)>,
    acts: Vec<Act>,
    rearm: bool,
}

#[derive(Debug)]
enum Act {
    Spawn(ProcessId),
    Terminate(Arc<Link>),
    Kill(Arc<Link>),
    Freeze(Arc<Link>),
    Thaw(Arc<Link>),
}

impl Driver {
    pub fn new(settings: Settings, launcher: Launcher, traced: bool) -> Arc<Self> {
        let trace = traced.then(|| Trace::of(settings.clone()));
        Arc::new_cyclic(|me| Driver {
            clock: Clock::start(),
            launcher,
            inner: Mutex::new(Inner {
                core: Core::new(settings),
                commands: Vec::with_capacity(16),
                exchanges: IdMap::default(),
                links: HashMap::new(),
                orders: IdMap::default(),
                journal: Journal::default(),
                armed: None,
                trace,
            }),
            rearm: Notify::new(),
            readiness: watch::Sender::default(),
            tasks: Mutex::default(),
            me: me.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("the core does not panic; if it did, nothing it says can be used")
    }

    /// A call arrives.
    pub fn arrive(&self, exchange: Arc<Exchange>, event: Event) {
        let mut after = Afterwards::default();
        {
            let mut inner = self.lock();
            inner.exchanges.insert(exchange.id, exchange);
            self.decide(&mut inner, event, &mut after);
        }
        self.carry_out(after);
    }

    pub fn report(&self, event: Event) {
        self.report_all(&mut vec![event]);
    }

    /// Takes in what happened, in order, under one lock.
    pub fn report_all(&self, events: &mut Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut after = Afterwards::default();
        {
            let mut inner = self.lock();
            for event in events.drain(..) {
                self.decide(&mut inner, event, &mut after);
            }
        }
        self.carry_out(after);
    }

    pub fn order(&self, order: OrderId, event: Event) -> oneshot::Receiver<Reply> {
        let (sender, receiver) = oneshot::channel();
        self.lock().orders.insert(order, sender);
        self.report(event);
        receiver
    }

    pub fn link_up(&self, link: &Arc<Link>) {
        self.lock().links.insert(link.process, Arc::clone(link));
    }

    pub fn look<T>(&self, look: impl FnOnce(&Core, &HashMap<ProcessId, Arc<Link>>) -> T) -> T {
        let inner = self.lock();
        look(&inner.core, &inner.links)
    }

    pub fn take_trace(&self) -> Option<Trace> {
        self.lock().trace.take()
    }

    fn decide(&self, inner: &mut Inner, event: Event, after: &mut Afterwards) {
        let now = self.clock.now();
        let mut commands = std::mem::take(&mut inner.commands);
        match &mut inner.trace {
            None => inner.core.handle(now, event, &mut commands),
            Some(trace) => {
                inner.core.handle(now, event.clone(), &mut commands);
                trace.note(now, event, &commands);
            }
        }
        let mut recorded = Vec::new();
        for command in commands.drain(..) {
            self.perform(inner, command, after, &mut recorded);
        }
        inner.commands = commands;
        for event in recorded {
            self.decide(inner, event, after);
        }
        let deadline = inner.core.next_deadline();
        if deadline.is_some() && (inner.armed.is_none() || deadline < inner.armed) {
            inner.armed = deadline;
            after.rearm = true;
        }
    }

    fn perform(
        &self,
        inner: &mut Inner,
        command: Command,
        after: &mut Afterwards,
        recorded: &mut Vec<Event>,
    ) {
        let link = |process: &ProcessId| inner.links.get(process).cloned();
        match command {
            Command::Assign { request, attempt, process, deadline, tries, .. } => {
                let link = link(&process).expect("only a ready process is assigned to");
                let exchange = Arc::clone(&inner.exchanges[&request]);
                link.assign(exchange, attempt, deadline, tries);
                after.flush(link);
            }
            Command::Cancel { request, process, withdraw, .. } => {
                let flight = inner.exchanges.get(&request).and_then(|exchange| exchange.link());
                let flight = flight.filter(|(link, _)| link.process == process);
                after.cancel.extend(flight.map(|(link, wire_id)| (link, wire_id, withdraw)));
            }
            Command::Resolve { request, outcome } => inner.resolve(request, outcome),
            Command::Refuse { request, refusal } => {
                let why = self.launcher.last_failure();
                inner.refuse(request, refused(refusal, why));
            }
            Command::Spawn { process } => after.acts.push(Act::Spawn(process)),
            Command::Ping { process } => {
                if let Some(link) = link(&process) {
                    link.ping();
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
                inner.journal.note(record, change);
                recorded.push(Event::Recorded { record, result: Recording::Stored });
            }
            Command::Reply { order, reply } => {
                if let Some(waiting) = inner.orders.remove(&order) {
                    drop(waiting.send(reply));
                }
            }
            Command::Notify(notice) => self.announce(inner, &notice),
            Command::Stopped => {
                self.readiness.send_modify(|readiness| readiness.cleared = true);
            }
            Command::Grant { .. }
            | Command::RefuseLease { .. }
            | Command::LosePlace { .. }
            | Command::EndLease { .. } => unreachable!("nobody can ask for a lease yet"),
        }
    }

    fn announce(&self, inner: &mut Inner, notice: &Notice) {
        let name = |process: &ProcessId| self.launcher.name(*process);
        match notice {
            Notice::FirstReady => self.readiness.send_modify(|ready| ready.first_ready = true),
            Notice::AllReady => self.readiness.send_modify(|ready| ready.all_ready = true),
            Notice::Crashed { process, exit } => {
                let stderr = inner.links.get(process).map(|link| link.output.tail(3));
                tracing::warn!(worker = name(process), ?exit, ?stderr, "worker ended unplanned");
            }
            Notice::Stopping { process, reason } if !reason.planned() => {
                tracing::warn!(worker = name(process), ?reason, "worker is stopped");
            }
            Notice::Unresponsive { process } => {
                tracing::warn!(worker = name(process), "worker is busy and silent");
            }
            Notice::BreakerOpened { .. } => {
                let pool = self.launcher.pool();
                tracing::error!(pool, "workers keep failing; no new ones for restart_cooldown");
            }
            other => tracing::debug!(?other),
        }
    }

    fn carry_out(&self, mut after: Afterwards) {
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
        self.report_all(&mut events);
    }

    fn act(&self, act: Act) {
        match act {
            Act::Spawn(process) => {
                let me = self.me.upgrade().expect("the driver is in use");
                self.run(crate::attend::attend(me, process));
            }
            Act::Terminate(link) => drop(link.handle.signal(libc::SIGTERM)),
            Act::Kill(link) => self.run(async move { link.handle.sweep().await }),
            Act::Freeze(link) => drop(link.handle.freeze()),
            Act::Thaw(link) => drop(link.handle.thaw()),
        }
    }

    /// Runs a task that ends with the pool at the latest.
    pub fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().expect("no code panics here");
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Nothing runs on behalf of this pool any more.
    pub fn abort(&self) {
        self.tasks.lock().expect("no code panics here").abort_all();
    }

    /// Sends `DeadlineReached` when the core's next deadline has come.
    pub async fn keep_time(self: Arc<Self>) {
        loop {
            let rearmed = self.rearm.notified();
            let Some(armed) = self.lock().armed else {
                rearmed.await;
                continue;
            };
            let deadline = tokio::time::Instant::from(self.clock.instant(armed));
            tokio::select! {
                () = rearmed => {}
                () = tokio::time::sleep_until(deadline) => {
                    self.lock().armed = None;
                    self.report(Event::DeadlineReached);
                }
            }
        }
    }

    pub fn unlink(&self, process: ProcessId) {
        self.lock().links.remove(&process);
    }
}

impl Afterwards {
    fn flush(&mut self, link: Arc<Link>) {
        if !self.flush.iter().any(|known| Arc::ptr_eq(known, &link)) {
            self.flush.push(link);
        }
    }
}

impl Inner {
    fn resolve(&mut self, request: RequestId, outcome: Outcome) {
        let Some(exchange) = self.exchanges.remove(&request) else { return };
        match outcome {
            Outcome::Answered => exchange.deliver_answer(),
            Outcome::Cancelled { started } => {
                exchange.finish(Err(Failure::Cancelled { started }.into()));
            }
            Outcome::TimedOut { phase, started } => {
                exchange.finish(Err(Failure::TimedOut { phase, started }.into()));
            }
            Outcome::Lost { exit, reason, started } => {
                let link = exchange.link().map(|(link, _)| link);
                let failure = Failure::Crashed {
                    worker: link.as_ref().map_or_else(String::new, |link| link.name.to_string()),
                    exit,
                    reason,
                    started,
                    stderr: link.map_or_else(Vec::new, |link| link.output.tail(STDERR_LINES)),
                    chunks: exchange.delivered(),
                };
                exchange.finish(Err(failure.into()));
            }
        }
    }

    fn refuse(&mut self, request: RequestId, refused: Refused) {
        if let Some(exchange) = self.exchanges.remove(&request) {
            exchange.finish(Err(CallError::Refused(refused)));
        }
    }
}

fn refused(refusal: Refusal, why: Option<String>) -> Refused {
    match (refusal, why) {
        (Refusal::PoolFailed, Some(why)) => Refused::PoolFailed { why },
        (refusal, _) => Refused::Pool(refusal),
    }
}
