//! The one who stands between the core and everything else. Facts come in from any task, the core
//! decides under one short lock, and the orders are carried out: what is mere bookkeeping under
//! the lock, so that its order is the core's order, what makes system calls after it.
//!
//! A call crosses the driver twice: when it arrives and when its worker has let go of it. Neither
//! time does its payload.

mod ends;
mod notices;
mod orders;

use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};

use ostler_core::{
    Change, Command, Event, IdMap, LeaseId, LeaseSpec, OrderId, Pool as Core, ProcessId, RecordId,
    Recording, Refusal, Reply, RequestId, Restored, Settings, Time,
};
use ostler_proto::{Call as WorkerCall, Metric};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;

use crate::chronicle::{CancelledBy, Chronicle, EndOfProcess};
use crate::clock::Clock;
use crate::directory::Directory;
use crate::events::EventLog;
use crate::exchange::Exchange;
use crate::failure::{CallError, Refused};
use crate::launcher::Launcher;
use crate::lease::LeaseDesk;
use crate::link::Link;
use crate::manner::Manner;
use crate::naming;
use crate::output::Output;
use crate::registry::{Origin, Registry};
use crate::trace::Trace;
use crate::workspace::Workspaces;

use orders::Afterwards;

#[derive(Debug)]
pub(crate) struct Driver {
    /// Of this pool, in this process.
    pub number: u64,
    pub clock: Clock,
    pub launcher: Launcher,
    pub directory: Directory,
    manner: RwLock<Manner>,
    pub workspaces: Workspaces,
    /// None: changes of status count at once, and end with this process.
    pub registry: Option<Registry>,
    inner: Mutex<Inner>,
    /// The next deadline came nearer.
    rearm: Notify,
    pub readiness: watch::Sender<Readiness>,
    /// None once nothing is to run any more.
    tasks: Mutex<Option<JoinSet<()>>>,
    /// Where they run, whoever gives the occasion.
    runtime: Handle,
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
    links: IdMap<ProcessId, Arc<Link>>,
    orders: IdMap<OrderId, (oneshot::Sender<Reply>, Origin)>,
    leases: IdMap<LeaseId, LeaseDesk>,
    next_lease: u64,
    chronicle: Chronicle,
    armed: Option<Time>,
    /// Nobody holds the pool any more: nothing that still happens matters.
    closed: bool,
    trace: Option<Trace>,
}

/// What a driver is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub settings: Settings,
    pub launcher: Launcher,
    pub directory: Directory,
    pub events: Arc<EventLog>,
    pub manner: Manner,
    pub registry: Option<Registry>,
    pub requests_kept: usize,
    pub traced: bool,
}

impl Driver {
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { settings, launcher, directory, events, .. } = parts;
        let trace = parts.traced.then(|| Trace::of(settings.clone()));
        let clock = Clock::start();
        let (pool, output) = (launcher.pool(), launcher.output());
        let mut chronicle = Chronicle::new(pool, clock, events, output, parts.requests_kept);
        let mut core = Core::new(settings);
        if let Some(registry) = &parts.registry {
            let restored: Vec<Restored> = registry.dedicated().map(|(known, _)| known).collect();
            core.restore(registry.next_worker(), &restored);
            for (known, worker) in registry.dedicated() {
                chronicle.restore(known.worker, worker);
            }
        }
        Arc::new_cyclic(|me| Driver {
            number: naming::next_pool(),
            clock,
            launcher,
            directory,
            manner: RwLock::new(parts.manner),
            workspaces: Workspaces::default(),
            registry: parts.registry,
            inner: Mutex::new(Inner {
                core,
                commands: Vec::with_capacity(16),
                exchanges: IdMap::default(),
                links: IdMap::default(),
                orders: IdMap::default(),
                leases: IdMap::default(),
                next_lease: 1,
                chronicle,
                armed: None,
                closed: false,
                trace,
            }),
            rearm: Notify::new(),
            readiness: watch::Sender::default(),
            tasks: Mutex::new(Some(JoinSet::new())),
            runtime: Handle::current(),
            me: me.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("the core does not panic; if it did, nothing it says can be used")
    }

    pub fn me(&self) -> Arc<Driver> {
        self.me.upgrade().expect("the driver is in use")
    }

    pub fn manner(&self) -> Manner {
        *self.manner.read().expect("no code panics here")
    }

    pub fn change_manner(&self, manner: Manner) {
        *self.manner.write().expect("no code panics here") = manner;
    }

    /// A call arrives.
    pub fn arrive(&self, exchange: Arc<Exchange>, event: Event) {
        let mut after = Afterwards::default();
        {
            let mut inner = self.lock();
            if let Some(id) = exchange.given_id() {
                inner.chronicle.named.insert(id, exchange.id);
            }
            inner.exchanges.insert(exchange.id, exchange);
            self.decide(&mut inner, event, &mut after);
        }
        let mut events = self.carry_out(after);
        self.report_all(&mut events);
    }

    /// A call that need not go as far as the core.
    pub fn turn_away(&self, exchange: &Exchange, refused: Refused) {
        let ended = exchange.finish(Err(CallError::Refused(refused)), self.clock.now());
        self.lock().chronicle.ended(ended, || exchange.name(self.number));
    }

    pub fn report(&self, event: Event) {
        self.report_all(&mut vec![event]);
    }

    /// Takes in what happened, in order, under one lock.
    pub fn report_all(&self, events: &mut Vec<Event>) {
        // What is carried out may bring new facts, as often as requests wait: not by recursion.
        while !events.is_empty() {
            let mut after = Afterwards::default();
            {
                let mut inner = self.lock();
                for event in events.drain(..) {
                    self.decide(&mut inner, event, &mut after);
                }
            }
            *events = self.carry_out(after);
        }
    }

    pub fn order(&self, order: OrderId, event: Event, origin: Origin) -> oneshot::Receiver<Reply> {
        let (sender, receiver) = oneshot::channel();
        self.lock().orders.insert(order, (sender, origin));
        self.report(event);
        receiver
    }

    /// Has a change stored, and then takes effect.
    async fn store(self: Arc<Self>, record: RecordId, change: Change, origin: Origin) {
        let registry = self.registry.as_ref().expect("only with one is anything stored later");
        let at = self.clock.timestamp(self.clock.now());
        let workspace = origin.workspace.clone();
        let result = registry.store(record, change, origin, at).await;
        let mut after = Afterwards::default();
        {
            let mut inner = self.lock();
            if result == Recording::Stored {
                inner.chronicle.record(self.clock.now(), record, change, workspace.as_deref());
            }
            self.decide(&mut inner, Event::Recorded { record, result }, &mut after);
        }
        let mut events = self.carry_out(after);
        self.report_all(&mut events);
    }

    pub fn ask_for_lease(&self, desk: LeaseDesk, spec: LeaseSpec) -> LeaseId {
        let lease = {
            let mut inner = self.lock();
            let lease = LeaseId(inner.next_lease);
            inner.next_lease += 1;
            inner.leases.insert(lease, desk);
            lease
        };
        self.report(Event::LeaseRequested { lease, spec });
        lease
    }

    pub fn forget_lease(&self, lease: LeaseId) {
        self.lock().leases.remove(&lease);
    }

    /// Calls off a request on behalf of somebody who named it. False: it has its end.
    pub fn cancel(&self, request: RequestId) -> bool {
        let Some(exchange) = self.lock().exchanges.get(&request).cloned() else { return false };
        exchange.note_cancel(CancelledBy::Order);
        self.report(Event::CancelRequested { request });
        true
    }

    /// The id by which a request is known outside.
    pub fn name_of(&self, exchange: &Exchange) -> Arc<str> {
        exchange.name(self.number)
    }

    /// The request that an id names, if it is one of this pool and not forgotten.
    pub fn request_named(&self, id: &str) -> Option<RequestId> {
        let inner = self.lock();
        let chronicle = &inner.chronicle;
        let given = chronicle.named.get(id).copied();
        let given = given.or_else(|| chronicle.register.by_id(id).map(|record| record.number));
        given.or_else(|| naming::request_of(self.number, id))
    }

    pub fn call_back(&self, link: &Arc<Link>, call: WorkerCall) {
        let me = self.me();
        self.run(crate::callback::serve(me, Arc::clone(link), call));
    }

    pub fn note_progress(&self, link: &Link, exchange: &Exchange) {
        let inner = self.lock();
        if !inner.chronicle.log().wants_requests() {
            return;
        }
        if let Some(progress) = exchange.record().and_then(|record| record.progress) {
            inner.chronicle.progress(link, exchange.name(self.number), progress.get());
        }
    }

    pub fn note_metric(&self, metric: Metric) {
        self.lock().chronicle.metric(metric);
    }

    pub fn output_of(&self, process: ProcessId) -> Arc<Output> {
        Arc::clone(&self.lock().chronicle.dossier(process.worker).output)
    }

    pub fn cleared(&self, process: ProcessId, usage: Option<EndOfProcess>) {
        self.lock().chronicle.cleared(process, usage);
        self.report(Event::ProcessCleared { process });
    }

    pub fn link_up(&self, link: &Arc<Link>) {
        self.lock().links.insert(link.process, Arc::clone(link));
    }

    pub fn look<T>(&self, look: impl FnOnce(&Core, &IdMap<ProcessId, Arc<Link>>) -> T) -> T {
        let inner = self.lock();
        look(&inner.core, &inner.links)
    }

    /// Looks at what is remembered; `live` are the requests without an end.
    pub fn recall<T>(
        &self,
        recall: impl FnOnce(&Chronicle, &IdMap<RequestId, Arc<Exchange>>) -> T,
    ) -> T {
        let inner = self.lock();
        recall(&inner.chronicle, &inner.exchanges)
    }

    pub fn take_trace(&self) -> Option<Trace> {
        self.lock().trace.take()
    }

    fn decide(&self, inner: &mut Inner, event: Event, after: &mut Afterwards) {
        if inner.closed {
            return;
        }
        let now = self.clock.now();
        inner.note_event(now, &event);
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
            self.perform(inner, now, command, after, &mut recorded);
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

    /// Runs a task that ends with the pool at the latest.
    pub fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().expect("no code panics here");
        let Some(tasks) = tasks.as_mut() else { return };
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }

    /// Nothing runs on behalf of this pool any more, and nobody waits for it.
    pub fn abort(&self) {
        self.lock().closed = true;
        // Dropping them ends them; what they hold may itself have something to report.
        let tasks = self.tasks.lock().expect("no code panics here").take();
        drop(tasks);
        let mut inner = self.lock();
        inner.orders.clear();
        inner.leases.clear();
        let waiting: Vec<RequestId> = inner.exchanges.keys().copied().collect();
        for request in waiting {
            let gone = Refused::Pool(Refusal::ShuttingDown);
            inner.refuse(self.number, self.clock.now(), request, gone);
        }
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

impl Inner {
    fn note_event(&mut self, now: Time, event: &Event) {
        match event {
            Event::ProcessHeard { process } => {
                if let Some(link) = self.links.get(process) {
                    self.chronicle.tally.note_heartbeat(link.since_ping(now));
                }
            }
            Event::ShutdownRequested { .. } => self.chronicle.draining(),
            _ => {}
        }
    }

    fn answer_lease(&mut self, lease: LeaseId, answer: Result<Vec<Arc<str>>, Refusal>) {
        if let Some(granted) = self.leases.get_mut(&lease).and_then(|desk| desk.granted.take()) {
            drop(granted.send(answer));
        }
    }
}
