//! A running pool, as its users hold it. Dropping the last handle ends every process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ostler_core::{
    Action, Affinity, Bond, Event, KeyId, OrderId, Reply, RequestId, RequestSpec, SessionId,
    Settings, Target, WorkerId,
};
use ostler_proto::FunctionSpec;
use ostler_store::ledger::key::Asked;
use ostler_store::ledger::{Ledger, LedgerError};

use crate::directory::Directory;
use crate::driver::{Driver, Parts, Readiness};
use crate::events::{EVENTS_KEPT, EventLog, Follower};
use crate::exchange::{Details, Exchange, Part};
use crate::failure::Refused;
use crate::fingerprint;
use crate::launcher::{Launcher, ProcessSettings, Recipe};
use crate::manner::Manner;
use crate::program::Program;
use crate::python::PythonError;
use crate::reader;
use crate::record::ENDED_KEPT;
use crate::registry::{Origin, Registry, worker_of};
use crate::running::{Call, Running, Whither};
use crate::session::KeyedBy;
use crate::trace::Trace;

#[derive(Debug, Clone)]
pub struct PoolSpec {
    pub name: String,
    pub program: Program,
    pub processes: ProcessSettings,
    /// Variables of this process's environment that workers get too.
    pub env_pass: Vec<String>,
    pub settings: Settings,
    pub request_timeout: Duration,
    pub max_body: u64,
    pub max_result: u64,
    pub max_line: u64,
    /// What becomes of a call whose caller goes away.
    pub on_disconnect: OnDisconnect,
    /// How much a session insists on its process, unless its call says so itself.
    pub affinity: Affinity,
    /// Each of these has a worker of its own. Goes with `settings.keyed`.
    pub key: Option<KeyedBy>,
    /// Ended requests that are remembered.
    pub requests_kept: usize,
    /// Whom its workers may call.
    pub directory: Directory,
    /// Where its events go.
    pub events: Arc<EventLog>,
    /// Where changes of its workers' status are stored before they count. None: nowhere.
    pub ledger: Option<Ledger>,
    /// Keep everything the core was told, for a replay. Grows without bound: for tests.
    pub traced: bool,
}

/// No worker has this number: whoever asks for it is told that there is no such worker.
const NOBODY: WorkerId = WorkerId(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDisconnect {
    #[default]
    Cancel,
    Continue,
}

impl PoolSpec {
    pub fn new(name: impl Into<String>, program: Program, settings: Settings) -> Self {
        PoolSpec {
            name: name.into(),
            program,
            processes: ProcessSettings::default(),
            env_pass: Vec::new(),
            settings,
            request_timeout: Duration::from_secs(60),
            max_body: 64 << 20,
            max_result: 64 << 20,
            max_line: 16 << 20,
            on_disconnect: OnDisconnect::Cancel,
            affinity: Affinity::Hint,
            key: None,
            requests_kept: ENDED_KEPT,
            directory: Directory::new(),
            events: Arc::new(EventLog::new(EVENTS_KEPT)),
            ledger: None,
            traced: false,
        }
    }
}

impl PoolSpec {
    pub(crate) async fn recipe(&self) -> Result<Recipe, StartError> {
        let program = self.program.resolve(&self.env_pass).await;
        let program =
            program.map_err(|source| StartError::Python { pool: self.name.clone(), source })?;
        let limits = reader::limits(self.max_result.max(self.max_body), self.max_line);
        Ok(Recipe::new(program, &self.processes, limits, self.max_result))
    }

    pub(crate) fn core_settings(&self) -> Settings {
        let mut settings = self.settings.clone();
        settings.capacity = settings.capacity.max(self.processes.profile.capacity());
        settings
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("pool `{pool}`: {source}")]
    Python { pool: String, source: PythonError },
    #[error("pool `{pool}`: cannot start its root shim: {source}")]
    RootShim { pool: String, source: std::io::Error },
    #[error("pool `{pool}`: {source}")]
    Ledger { pool: String, source: LedgerError },
}

#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

/// A pool that is not kept alive by this.
#[derive(Debug, Clone)]
pub(crate) struct WeakPool {
    shared: Weak<Shared>,
}

impl WeakPool {
    pub fn upgrade(&self) -> Option<Pool> {
        self.shared.upgrade().map(|shared| Pool { shared })
    }
}

#[derive(Debug)]
struct Shared {
    driver: Arc<Driver>,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
    next_request: AtomicU64,
    next_order: AtomicU64,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Pool {
    /// Starts a pool. Its workers come up afterwards: see [`Pool::readiness`].
    pub async fn start(spec: PoolSpec) -> Result<Pool, StartError> {
        let recipe = spec.recipe().await?;
        let launcher = Launcher::new(spec.name.clone(), recipe, &spec.processes).await;
        let launcher =
            launcher.map_err(|source| StartError::RootShim { pool: spec.name.clone(), source })?;
        let registry = match spec.ledger.clone() {
            None => None,
            Some(ledger) => {
                let pool = spec.name.clone();
                let opened = Registry::open(ledger, &pool).await;
                Some(opened.map_err(|source| StartError::Ledger { pool, source })?)
            }
        };
        let driver = Driver::new(Parts {
            settings: spec.core_settings(),
            manner: Manner::of(&spec),
            launcher,
            directory: spec.directory.clone(),
            events: spec.events,
            registry,
            requests_kept: spec.requests_kept,
            traced: spec.traced,
        });
        driver.run(Arc::clone(&driver).keep_time());
        driver.run(crate::attend::keep_root(Arc::clone(&driver)));
        driver.run(crate::vigil::keep(Arc::clone(&driver)));
        driver.report(Event::PoolStarted);
        let pool = Pool {
            shared: Arc::new(Shared {
                driver,
                reloading: tokio::sync::Mutex::default(),
                next_request: AtomicU64::new(1),
                next_order: AtomicU64::new(1),
            }),
        };
        spec.directory.enter(&pool);
        Ok(pool)
    }

    pub(crate) fn downgrade(&self) -> WeakPool {
        WeakPool { shared: Arc::downgrade(&self.shared) }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.shared.driver
    }

    pub fn name(&self) -> &str {
        self.shared.driver.launcher.pool()
    }

    /// As the ledger knows it: `w_1_3`. None without a ledger.
    pub fn worker_id(&self, worker: WorkerId) -> Option<String> {
        Some(self.shared.driver.registry.as_ref()?.worker_id(worker))
    }

    /// The worker that a name like `py-3` means, if it is one of this pool's.
    pub(crate) fn worker_named(&self, name: &str) -> Option<WorkerId> {
        worker_of(self.name(), name)
    }

    /// How many workers it may have.
    pub fn size_max(&self) -> u32 {
        self.shared.driver.look(|core, _| core.settings().max)
    }

    /// How many calls one of its workers takes at a time.
    pub fn capacity(&self) -> u32 {
        self.shared.driver.look(|core, _| core.settings().capacity)
    }

    /// The largest payload that a call may bring.
    pub fn max_body(&self) -> u64 {
        self.shared.driver.manner().max_body
    }

    pub fn on_disconnect(&self) -> OnDisconnect {
        self.shared.driver.manner().on_disconnect
    }

    /// How much its sessions insist on their processes, unless a call says so.
    pub fn affinity(&self) -> Affinity {
        self.shared.driver.manner().affinity
    }

    pub fn keyed_by(&self) -> Option<KeyedBy> {
        self.shared.driver.manner().keyed_by
    }

    pub fn directory(&self) -> &Directory {
        &self.shared.driver.directory
    }

    pub(crate) fn reloading(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.shared.reloading.try_lock().ok()
    }

    /// Hands a call to the pool. Dropping what comes back cancels it.
    pub fn call(&self, call: Call) -> Running {
        self.send(call, Whither::Anyone, Vec::new())
    }

    /// A call made by requests that wait for it, oldest first. It does not keep the pool alive.
    pub(crate) fn call_within(&self, call: Call, lineage: Vec<(u64, RequestId)>) -> Running {
        let mut running = self.send(call, Whither::Anyone, lineage);
        running.keeper = None;
        running
    }

    pub(crate) fn send(
        &self,
        call: Call,
        whither: Whither,
        lineage: Vec<(u64, RequestId)>,
    ) -> Running {
        let driver = &self.shared.driver;
        let now = driver.clock.now();
        let manner = driver.manner();
        let id = RequestId(self.shared.next_request.fetch_add(1, Ordering::Relaxed));
        let spec = RequestSpec {
            deadline: now.after(call.timeout.unwrap_or(manner.request_timeout)),
            priority: call.priority.clamp(-100, 100),
            owner: call.owner,
            idempotent: call.idempotent,
            target: match whither {
                Whither::Anyone => call.worker.as_deref().map_or(Target::Any, |name| {
                    Target::Worker(self.worker_named(name).unwrap_or(NOBODY))
                }),
                Whither::Place(lease, place) => Target::Lease(lease, place),
            },
            bond: call.session.as_ref().map(|session| Bond {
                session: SessionId(session.number),
                affinity: session.affinity,
            }),
            key: self.key_of(&call),
            fingerprint: fingerprint::of(&call.function, &call.body.bytes),
            ancestors: ancestors(driver.number, &lineage),
        };
        let keyless = manner.keyed_by.is_some() && spec.key.is_none();
        let (missing, yields) = match self.look_up(&call.function) {
            Ok(_) if keyless => (Some(Refused::SessionRequired), false),
            Ok(yields) => (None, yields.unwrap_or(false)),
            Err(refused) => (Some(refused), false),
        };
        let part = Part {
            function: call.function.into(),
            body: call.body,
            stream: call.stream,
            deadline: spec.deadline,
            priority: spec.priority,
            owner: spec.owner,
        };
        let plain = call.request_id.is_none()
            && call.traceparent.is_none()
            && !call.idempotent
            && call.session.is_none()
            && call.duty.is_none()
            && call.listener.is_none()
            && lineage.is_empty();
        let details = (!plain).then(|| {
            Box::new(Details {
                request_id: call.request_id.map(Into::into),
                traceparent: call.traceparent,
                idempotent: call.idempotent,
                session_number: call.session.as_ref().map_or(0, |session| session.number),
                session: call.session.map(|session| session.id),
                lineage,
                duty: call.duty,
                listener: call.listener,
            })
        });
        let exchange = Arc::new(Exchange::new(id, part, details, now));
        let mut running =
            Running::new(Arc::clone(driver), Arc::clone(&exchange), manner.max_result, yields);
        running.keeper = Some(self.clone());
        if let Some(refused) = missing {
            driver.turn_away(&exchange, refused);
            return running.refused();
        }
        driver.arrive(exchange, Event::RequestArrived { request: id, spec });
        running
    }

    fn key_of(&self, call: &Call) -> Option<KeyId> {
        let driver = &self.shared.driver;
        match driver.manner().keyed_by? {
            KeyedBy::Session => call.session.as_ref().map(|session| KeyId(session.number)),
            KeyedBy::Workspace => {
                Some(driver.workspaces.key(call.workspace.as_deref().unwrap_or("default")))
            }
        }
    }

    /// Whether a call of this function may be meant for somebody, as far as that is known.
    pub fn knows(&self, function: &str) -> bool {
        self.look_up(function).is_ok()
    }

    /// Whether a function yields, as far as that is known. Workers that announce their functions
    /// are believed.
    fn look_up(&self, function: &str) -> Result<Option<bool>, Refused> {
        let known = self.functions();
        let found = known.iter().find(|known| known.name == function);
        if found.is_some() || known.is_empty() {
            return Ok(found.map(|function| function.streaming));
        }
        Err(Refused::FunctionNotFound {
            pool: self.name().to_owned(),
            function: function.to_owned(),
            known: known.iter().map(|function| function.name.clone()).collect(),
        })
    }

    /// What the workers announce, the last to be ready. Empty if they announce nothing, or none is
    /// ready yet.
    pub fn functions(&self) -> Arc<[FunctionSpec]> {
        self.shared.driver.launcher.functions().unwrap_or_default()
    }

    /// Asks something of the supervisor and waits for its answer.
    pub async fn order(&self, action: Action) -> Reply {
        self.order_by(action, Asked::default()).await
    }

    /// In somebody's name. What changes a worker's status is stored, with who asked for it, when
    /// this returns.
    pub async fn order_by(&self, action: Action, asked: Asked) -> Reply {
        let origin = Origin { asked, workspace: None };
        self.ask(origin, |order| Event::Ordered { order, action }).await
    }

    /// A worker that takes only calls addressed to it. It waits to be started.
    pub async fn create_worker(&self, workspace: &str, asked: Asked) -> Reply {
        let origin = Origin { asked, workspace: Some(workspace.to_owned()) };
        self.ask(origin, |order| Event::Ordered { order, action: Action::Create }).await
    }

    pub(crate) async fn ask(&self, origin: Origin, event: impl FnOnce(OrderId) -> Event) -> Reply {
        let order = OrderId(self.shared.next_order.fetch_add(1, Ordering::Relaxed));
        let reply = self.shared.driver.order(order, event(order), origin);
        reply.await.unwrap_or(Reply::ShuttingDown)
    }

    /// Calls off a request that somebody names. `None`: there is no such; false: it has its end.
    pub fn cancel(&self, id: &str) -> Option<bool> {
        let info = self.request(id)?;
        Some(self.shared.driver.cancel(info.record.number))
    }

    /// Follows the events of this pool, and of those that share its log, from now on.
    pub fn events(&self) -> Follower {
        self.event_log().follow(None)
    }

    pub fn event_log(&self) -> Arc<EventLog> {
        self.shared.driver.recall(|chronicle, _| Arc::clone(chronicle.log()))
    }

    pub fn readiness(&self) -> tokio::sync::watch::Receiver<Readiness> {
        self.shared.driver.readiness.subscribe()
    }

    /// Waits until a worker is ready, or the pool has stopped.
    pub async fn ready(&self) {
        let mut readiness = self.readiness();
        drop(readiness.wait_for(|ready| ready.first_ready || ready.stopped).await);
    }

    pub async fn all_ready(&self) {
        let mut readiness = self.readiness();
        drop(readiness.wait_for(|ready| ready.all_ready || ready.stopped).await);
    }

    /// Begins the end: nobody new, those inside finish. `now`: nobody finishes.
    pub fn shut_down(&self, now: bool) {
        self.shared.driver.report(Event::ShutdownRequested { now });
    }

    /// Waits until every process is gone.
    pub async fn stopped(&self) {
        let mut readiness = self.readiness();
        drop(readiness.wait_for(|ready| ready.stopped).await);
    }

    /// What the core was told so far, if the pool is traced.
    pub fn take_trace(&self) -> Option<Trace> {
        self.shared.driver.take_trace()
    }
}

/// The requests of this pool among those that wait for a call.
fn ancestors(pool: u64, lineage: &[(u64, RequestId)]) -> Vec<RequestId> {
    lineage.iter().filter(|(of, _)| *of == pool).map(|(_, request)| *request).collect()
}
