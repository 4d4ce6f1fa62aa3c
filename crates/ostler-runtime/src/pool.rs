//! A running pool, as its users hold it. Dropping the last handle ends every process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use ostler_core::{
    Action, Event, OrderId, PoolView, Reply, RequestId, RequestSpec, Settings, Target, WorkerView,
};
use ostler_proto::{Body, FunctionSpec};

use crate::containment::Level;
use crate::driver::{Driver, Readiness};
use crate::exchange::{Details, Exchange, Item};
use crate::failure::{CallError, Failure, Refused};
use crate::launcher::{Launcher, ProcessSettings};
use crate::program::Program;
use crate::python::PythonError;
use crate::reader;
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
    /// Keep everything the core was told, for a replay. Grows without bound: for tests.
    pub traced: bool,
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
            traced: false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("pool `{pool}`: {source}")]
    Python { pool: String, source: PythonError },
    #[error("pool `{pool}`: cannot start its root shim: {source}")]
    RootShim { pool: String, source: std::io::Error },
}

/// One call to be made.
#[derive(Debug, Clone, Default)]
pub struct Call {
    pub function: String,
    pub body: Body,
    /// The pool's `request_timeout` if none.
    pub timeout: Option<Duration>,
    /// The caller takes chunks as they come.
    pub stream: bool,
    pub priority: i8,
    pub owner: u64,
    pub idempotent: bool,
    pub request_id: Option<String>,
    pub traceparent: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    driver: Arc<Driver>,
    request_timeout: Duration,
    max_body: u64,
    max_result: u64,
    next_request: AtomicU64,
    next_order: AtomicU64,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A worker as operators see it: the core's view and the process behind it.
#[derive(Debug, Clone)]
pub struct WorkerInfo {
    pub name: String,
    pub view: WorkerView,
    pub pid: Option<i32>,
    pub output: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct PoolInfo {
    pub name: String,
    pub view: PoolView,
    pub level: Level,
    pub last_failure: Option<String>,
    pub workers: Vec<WorkerInfo>,
}

impl Pool {
    /// Starts a pool. Its workers come up afterwards: see [`Pool::readiness`].
    pub async fn start(spec: PoolSpec) -> Result<Pool, StartError> {
        let pool = || spec.name.clone();
        let program = spec.program.resolve(&spec.env_pass).await;
        let program = program.map_err(|source| StartError::Python { pool: pool(), source })?;
        let limits = reader::limits(spec.max_result.max(spec.max_body), spec.max_line);
        let launcher =
            Launcher::new(pool(), program, spec.processes.clone(), limits, spec.max_result).await;
        let launcher = launcher.map_err(|source| StartError::RootShim { pool: pool(), source })?;
        let driver = Driver::new(spec.settings, launcher, spec.traced);
        driver.run(Arc::clone(&driver).keep_time());
        driver.run(crate::attend::keep_root(Arc::clone(&driver)));
        driver.report(Event::PoolStarted);
        Ok(Pool {
            shared: Arc::new(Shared {
                driver,
                request_timeout: spec.request_timeout,
                max_body: spec.max_body,
                max_result: spec.max_result,
                next_request: AtomicU64::new(1),
                next_order: AtomicU64::new(1),
            }),
        })
    }

    pub fn name(&self) -> &str {
        self.shared.driver.launcher.pool()
    }

    /// The largest payload that a call may bring.
    pub fn max_body(&self) -> u64 {
        self.shared.max_body
    }

    /// Hands a call to the pool. Dropping what comes back cancels it.
    pub fn call(&self, call: Call) -> Running {
        let driver = &self.shared.driver;
        let id = RequestId(self.shared.next_request.fetch_add(1, Ordering::Relaxed));
        let details = (call.request_id.is_some() || call.traceparent.is_some() || call.idempotent)
            .then(|| {
                Box::new(Details {
                    request_id: call.request_id,
                    traceparent: call.traceparent,
                    idempotent: call.idempotent,
                })
            });
        let missing = self.lacks(&call.function);
        let function = call.function.into_boxed_str();
        let exchange = Arc::new(Exchange::new(id, function, call.body, call.stream, details));
        let mut running = Running { pool: self.clone(), exchange, open: true };
        if let Some(refused) = missing {
            running.exchange.finish(Err(refused.into()));
            running.open = false;
            return running;
        }
        let timeout = call.timeout.unwrap_or(self.shared.request_timeout);
        let spec = RequestSpec {
            deadline: driver.clock.now().after(timeout),
            priority: call.priority.clamp(-100, 100),
            owner: call.owner,
            idempotent: call.idempotent,
            target: Target::Any,
        };
        let event = Event::RequestArrived { request: id, spec };
        driver.arrive(Arc::clone(&running.exchange), event);
        running
    }

    /// Workers that announce their functions are believed.
    fn lacks(&self, function: &str) -> Option<Refused> {
        let known = self.functions();
        if known.is_empty() || known.iter().any(|known| known.name == function) {
            return None;
        }
        Some(Refused::FunctionNotFound {
            pool: self.name().to_owned(),
            function: function.to_owned(),
            known: known.iter().map(|function| function.name.clone()).collect(),
        })
    }

    pub fn functions(&self) -> &[FunctionSpec] {
        self.shared.driver.launcher.functions().unwrap_or_default()
    }

    /// Asks something of the supervisor and waits for its answer.
    pub async fn order(&self, action: Action) -> Reply {
        let order = OrderId(self.shared.next_order.fetch_add(1, Ordering::Relaxed));
        let reply = self.shared.driver.order(order, Event::Ordered { order, action });
        reply.await.unwrap_or(Reply::ShuttingDown)
    }

    pub fn info(&self) -> PoolInfo {
        let driver = &self.shared.driver;
        let now = driver.clock.now();
        driver.look(|core, links| PoolInfo {
            name: self.name().to_owned(),
            view: core.view(now),
            level: driver.launcher.level(),
            last_failure: driver.launcher.last_failure(),
            workers: core
                .workers()
                .map(|view| {
                    let process =
                        ostler_core::ProcessId { worker: view.id, generation: view.generation };
                    let link = links.get(&process);
                    WorkerInfo {
                        name: driver.launcher.name(process),
                        pid: link.map(|link| link.pid),
                        output: link.map_or_else(Vec::new, |link| link.output.tail(20)),
                        view,
                    }
                })
                .collect(),
        })
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

/// A call on its way. Dropping it cancels the call.
#[derive(Debug)]
pub struct Running {
    pool: Pool,
    exchange: Arc<Exchange>,
    open: bool,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub body: Body,
    pub worker: Option<Arc<str>>,
}

impl Running {
    pub fn id(&self) -> RequestId {
        self.exchange.id
    }

    /// Who works on it, once somebody does.
    pub fn worker(&self) -> Option<Arc<str>> {
        self.exchange.worker()
    }

    /// Ends the call; its end is still to be read.
    pub fn cancel(&self) {
        self.pool.shared.driver.report(Event::CancelRequested { request: self.exchange.id });
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Item> {
        let Poll::Ready((item, grant)) = self.exchange.poll_item(cx) else { return Poll::Pending };
        if let Some(grant) = grant {
            let mut unsent = grant.link.grant(grant.wire_id, grant.credit);
            self.pool.shared.driver.report_all(&mut unsent);
        }
        if matches!(item, Item::End(_)) {
            self.open = false;
        }
        Poll::Ready(item)
    }

    /// The next chunk, or the end. After the end it is never ready again.
    pub async fn next(&mut self) -> Item {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The whole result. What a generator yields comes as a list.
    pub async fn result(mut self) -> Result<Answered, CallError> {
        let mut chunks = Gathered::default();
        loop {
            match self.next().await {
                Item::Chunk(chunk) => {
                    chunks.push(&chunk);
                    if chunks.len() as u64 > self.pool.shared.max_result {
                        let limit = self.pool.shared.max_result;
                        return Err(Failure::ResultTooLarge { limit }.into());
                    }
                }
                Item::End(end) => {
                    let (body, worker) = (chunks.finish(end?), self.worker());
                    return Ok(Answered { body, worker });
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.open {
            self.exchange.abandon();
            self.cancel();
        }
    }
}

/// Chunks as one JSON list; chunks of bytes one after the other.
#[derive(Debug, Default)]
struct Gathered {
    bytes: BytesMut,
    count: usize,
    raw: Option<Body>,
}

impl Gathered {
    fn push(&mut self, chunk: &Body) {
        if chunk.is_raw() {
            self.raw.get_or_insert_with(|| chunk.clone());
        } else {
            self.bytes.put_u8(if self.count == 0 { b'[' } else { b',' });
        }
        self.count += 1;
        self.bytes.extend_from_slice(&if chunk.is_raw() {
            chunk.bytes.clone()
        } else {
            chunk.value()
        });
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn finish(mut self, result: Body) -> Body {
        match (self.count, self.raw) {
            (0, _) => result,
            (_, Some(raw)) => Body { bytes: self.bytes.freeze(), encoding: raw.encoding },
            (_, None) => {
                self.bytes.put_u8(b']');
                Body::json(Bytes::from(self.bytes))
            }
        }
    }
}
