//! Calls that workers make while they work on a request: to functions of a pool, or of the program
//! that embeds the pools. The deadline is that of the request which waits; when that one ends, for
//! whatever reason, the call is called off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ostler_core::{Started, Time};
use ostler_proto::{Body, Call as WorkerCall, JsonText};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::desk::{DESK_OPERATIONS, DeskAsk};
use crate::directory::{HostCall, HostError};
use crate::driver::Driver;
use crate::exchange::Exchange;
use crate::failure::{CallError, Failure, Refused};
use crate::link::Link;
use crate::pool::Pool;
use crate::running::Call;
use crate::session::{self, CallSession};

/// The pool name under which the functions of the embedding program are called.
const HOST: &str = "host";
/// What the server itself offers to workers: their sessions.
const OWN: &str = "ostler";
/// Deadlines that differ by less are the same.
const ROUNDING: Duration = Duration::from_millis(2);
/// How long the end of a request may lag behind its deadline.
const LAST_MOMENT: Duration = Duration::from_secs(1);
/// Requests that may wait for one another in a row.
const DEPTH_MAX: usize = 16;

/// Tells the calls of a request that it has ended.
#[derive(Debug, Clone)]
pub(crate) struct Leash(watch::Sender<bool>);

impl Default for Leash {
    fn default() -> Self {
        Leash(watch::Sender::new(false))
    }
}

impl Leash {
    pub fn cut(&self) {
        self.0.send_replace(true);
    }

    pub async fn is_cut(&self) {
        let mut cut = self.0.subscribe();
        drop(cut.wait_for(|cut| *cut).await);
    }
}

pub(crate) async fn serve(driver: Arc<Driver>, link: Arc<Link>, call: WorkerCall) {
    let _open = Open::count(link.callbacks());
    let outcome = answer(&driver, &link, &call).await.and_then(|body| {
        let limit = link.message_max();
        if link.takes(&body) { Ok(body) } else { Err(Failure::ResultTooLarge { limit }.into()) }
    });
    let outcome = outcome.map_err(|error| error.spell());
    driver.report_all(&mut link.answer_call(&call, outcome));
}

/// One more call is open, as long as this is kept.
struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    fn count(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Open(calls)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a call got no result.
enum Denied {
    Call(CallError),
    Host(HostError),
}

impl<E: Into<CallError>> From<E> for Denied {
    fn from(error: E) -> Self {
        Denied::Call(error.into())
    }
}

impl Denied {
    /// As a problem of the HTTP API.
    fn spell(self) -> JsonText {
        let (code, detail, retryable) = match &self {
            Denied::Call(error) => {
                let known = error.known();
                (known.code.to_owned(), error.to_string(), known.retryable)
            }
            Denied::Host(error) => (error.code.clone(), error.message.clone(), error.retryable),
        };
        let mut problem = match self {
            Denied::Call(error) => error.details(true),
            _ => serde_json::Map::new(),
        };
        problem.insert("code".to_owned(), code.into());
        problem.insert("detail".to_owned(), detail.into());
        problem.insert("retryable".to_owned(), retryable.into());
        let text = Value::Object(problem).to_string();
        JsonText::parse(&text).expect("a JSON value is spelled as JSON")
    }
}

async fn answer(driver: &Arc<Driver>, link: &Link, call: &WorkerCall) -> Result<Body, Denied> {
    let (parent, leash) = match call.request {
        None => (None, link.leash().clone()),
        Some(wire_id) => match link.caller(wire_id) {
            Some((parent, leash)) => (Some(parent), leash),
            // It ended while this call was on its way.
            None => return Err(cancelled().into()),
        },
    };
    if call.pool == OWN {
        // Quick, and never half done: what was taken from the store must reach the worker.
        return own(driver, link, call, parent.as_deref()).await;
    }
    let deadline = deadline(driver, call, parent.as_deref());
    let time_left = deadline.since(driver.clock.now());
    let called = async {
        match call.pool.as_str() {
            HOST => call_host(driver, link, call, parent.as_deref(), time_left).await,
            _ => call_pool(driver, call, parent.as_deref(), time_left).await,
        }
    };
    tokio::select! {
        result = called => {
            let late = matches!(&result, Err(Denied::Call(CallError::Failed(Failure::TimedOut { .. }))));
            if late && parent.is_some_and(|parent| parent.deadline <= deadline) {
                // The request that waits is out of time too: its own end says so better.
                drop(tokio::time::timeout(LAST_MOMENT, leash.is_cut()).await);
            }
            result
        }
        () = leash.is_cut() => Err(cancelled().into()),
    }
}

fn cancelled() -> Failure {
    Failure::Cancelled { started: Started::Unknown }
}

/// What the worker asks for, and never later than the request that waits.
fn deadline(driver: &Driver, call: &WorkerCall, parent: Option<&Exchange>) -> Time {
    let asked = call.deadline_ms.map(|ms| Duration::from_millis(u64::from(ms.get())));
    let after = |span| driver.clock.now().after(span);
    match (asked.map(after), parent) {
        // What it knows of its own deadline is cut to milliseconds.
        (Some(asked), Some(parent)) if asked.after(ROUNDING) < parent.deadline => asked,
        (Some(_), Some(parent)) => parent.deadline,
        (Some(asked), None) => asked,
        (None, Some(parent)) => parent.deadline,
        (None, None) => after(driver.manner().request_timeout),
    }
}

async fn own(
    driver: &Driver,
    link: &Link,
    call: &WorkerCall,
    parent: Option<&Exchange>,
) -> Result<Body, Denied> {
    let desk = driver.directory.desk();
    if let Some(desk) = desk.filter(|_| DESK_OPERATIONS.contains(&call.function.as_str())) {
        let ask = DeskAsk {
            operation: call.function.clone(),
            body: call.body.clone(),
            pool: driver.launcher.pool().into(),
            worker: Arc::clone(&link.name),
            request: parent.map(|parent| driver.name_of(parent)),
            duty: parent.and_then(|parent| parent.details.as_ref()?.duty.clone()),
        };
        return outcome_of(desk.operate(ask)).await.map_err(Denied::Host);
    }
    let sessions = driver.directory.sessions();
    let pool = driver.launcher.pool();
    Ok(session::operate(&sessions, pool, &call.function, &call.body, parent).await?)
}

async fn call_host(
    driver: &Driver,
    link: &Link,
    call: &WorkerCall,
    parent: Option<&Exchange>,
    time_left: Duration,
) -> Result<Body, Denied> {
    let Some(function) = driver.directory.host_function(&call.function) else {
        return Err(Refused::FunctionNotFound {
            pool: HOST.to_owned(),
            function: call.function.clone(),
            known: driver.directory.host_functions(),
        }
        .into());
    };
    let host_call = HostCall {
        function: call.function.clone(),
        body: call.body.clone(),
        pool: driver.launcher.pool().into(),
        worker: Arc::clone(&link.name),
        request: parent.map(|parent| driver.name_of(parent)),
        time_left,
    };
    match tokio::time::timeout(time_left, outcome_of(function(host_call))).await {
        Ok(result) => result.map_err(Denied::Host),
        Err(_) => Err(Failure::TimedOut {
            phase: ostler_core::Waiting::Worker,
            started: Started::Yes,
            condition: None,
        }
        .into()),
    }
}

/// In a task of its own, so that code that panics is an answer too; it ends with this one.
async fn outcome_of(
    work: impl Future<Output = Result<Body, HostError>> + Send + 'static,
) -> Result<Body, HostError> {
    let mut task = JoinSet::new();
    task.spawn(work);
    match task.join_next().await {
        Some(Ok(result)) => result,
        _ => Err(HostError::new("the function panicked")),
    }
}

async fn call_pool(
    driver: &Driver,
    call: &WorkerCall,
    parent: Option<&Exchange>,
    time_left: Duration,
) -> Result<Body, Denied> {
    let pool = driver.directory.pool(&call.pool).ok_or_else(|| Refused::PoolNotFound {
        pool: call.pool.clone(),
        known: driver.directory.pools(),
    })?;
    let mut lineage = parent.and_then(|parent| parent.details.as_ref()).map(|d| d.lineage.clone());
    if let Some(parent) = parent {
        lineage.get_or_insert_default().push((driver.number, parent.id));
    }
    let lineage = lineage.unwrap_or_default();
    if lineage.len() > DEPTH_MAX {
        return Err(Refused::NestedTooDeep { limit: DEPTH_MAX }.into());
    }
    if call.body.len() as u64 > pool.max_body() {
        let why = format!("it is larger than max_body of pool `{}`", call.pool);
        return Err(Refused::Unsendable { why }.into());
    }
    let traceparent = parent.and_then(|parent| parent.details.as_ref()?.traceparent.clone());
    let nested = Call {
        function: call.function.clone(),
        body: call.body.clone(),
        timeout: Some(time_left),
        priority: parent.map_or(0, |parent| parent.priority),
        owner: parent.map_or(0, |parent| parent.owner),
        traceparent,
        session: inherited(parent, &pool).await?,
        ..Call::default()
    };
    let running = pool.call_within(nested, lineage);
    // The pool is not to be kept alive by what its own workers wait for.
    drop(pool);
    Ok(running.result().await?.body)
}

/// What a request calls belongs to its session too, in the manner of the pool that is called.
async fn inherited(
    parent: Option<&Exchange>,
    pool: &Pool,
) -> Result<Option<CallSession>, CallError> {
    let details = parent.and_then(|parent| parent.details.as_ref());
    let session = details.and_then(|details| Some((details.session.as_ref()?, details)));
    // One that has ended meanwhile is not made anew by what its last request calls.
    let lives = |number| pool.directory().sessions().id_of(number).is_some();
    match session.filter(|(_, details)| lives(details.session_number)) {
        None => Ok(None),
        Some((id, _)) => pool.enter(id, None).await.map(Some),
    }
}
