//! The connection to one process: its two streams, the requests that travel on them under ids of
//! their own, and what the worker said of itself. It turns messages into facts for the core.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ostler_core::{Answer, Event, IdMap, ProcessId, Ready as CoreReady, RequestId, Time};
use ostler_proto::{
    Body, Call, Context, Credit, Encoder, FromWorker, Function, JsonText, Limits, LogLevel, Query,
    Ready, ToWorker, Wire, WorkerError,
};
use serde_json::value::RawValue;
use tokio::net::unix::OwnedWriteHalf;

use crate::callback::Leash;
use crate::clock::Clock;
use crate::containment::ProcessHandle;
use crate::driver::Driver;
use crate::exchange::{Began, Exchange, Pushed};
use crate::failure::{CallError, Condition, Failure, Refused};
use crate::outbox::{Outbox, Outgoing, Speller, Unsent};
use crate::output::{Output, Stream};

#[derive(Debug)]
pub struct Link {
    /// The number of its pool.
    pool: u64,
    pub(crate) process: ProcessId,
    pub(crate) name: Arc<str>,
    pub(crate) pid: i32,
    pub(crate) handle: ProcessHandle,
    pub(crate) output: Arc<Output>,
    pub(crate) limits: Limits,
    max_result: u64,
    clock: Clock,
    data: OnceLock<Outbox>,
    control: OnceLock<Outbox>,
    opened: OnceLock<Opened>,
    flights: Mutex<Flights>,
    /// A ping is out: the next frame of any kind is a sign of life.
    listening: AtomicBool,
    pings: AtomicU64,
    /// When the last ping and the last check went out, for how long their answers took.
    pinged: AtomicU64,
    checked: AtomicU64,
    ignored: AtomicU64,
    gone: AtomicBool,
    /// Cut when the process is gone.
    leash: Leash,
    /// What a look at the silent process showed.
    condition: Mutex<Option<Condition>>,
    /// What it last said was wrong with it.
    complaint: Mutex<Option<String>>,
    callbacks: AtomicUsize,
}

/// How far a worker has come in speaking to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    Disconnected,
    /// Its process runs and has not said that it is ready.
    Connecting,
    Connected,
}

/// What the worker said when it was ready.
#[derive(Debug)]
struct Opened {
    wire: Wire,
    capacity: u32,
    control: bool,
    honours_credit: bool,
    cancel_signal: Option<i32>,
    functions: HashMap<String, u16>,
}

/// Requests that were handed to the process and that it has not let go of.
#[derive(Debug, Default)]
struct Flights {
    last_id: u64,
    aloft: IdMap<u64, Flight>,
}

#[derive(Debug)]
struct Flight {
    exchange: Arc<Exchange>,
    attempt: u32,
    /// Held by the calls that this request has made.
    leash: Option<Leash>,
}

/// Calls that one process may have open at a time, and answers that it may leave unread.
const CALLS_MAX: usize = 1_000;
/// Larger values of progress are not kept.
const PROGRESS_MAX: usize = 16 << 10;
/// Longer words of complaint are cut.
const COMPLAINT_MAX: usize = 1 << 10;

/// Why a worker is replaced for what it said.
pub(crate) type Offence = String;

/// What a message asks of the reader beyond the event.
#[derive(Debug)]
pub(crate) enum Reaction {
    Nothing,
    Report(Event),
    /// More credit is owed to the worker.
    Grant(crate::exchange::Grant),
    /// The worker calls a function.
    CallBack(Box<Call>),
    /// A request says how far it is.
    Progress(Arc<Exchange>),
    Metric(Box<ostler_proto::Metric>),
    /// The worker sends more than its caller takes, and knows no credit.
    WaitFor(Arc<Exchange>),
}

impl Link {
    pub(crate) fn new(
        driver: &Driver,
        process: ProcessId,
        pid: i32,
        handle: ProcessHandle,
    ) -> Self {
        Link {
            pool: driver.number,
            process,
            name: driver.launcher.name(process).into(),
            pid,
            handle,
            output: driver.output_of(process),
            limits: driver.launcher.limits(),
            max_result: driver.launcher.max_result(),
            clock: driver.clock,
            data: OnceLock::new(),
            control: OnceLock::new(),
            opened: OnceLock::new(),
            flights: Mutex::default(),
            listening: AtomicBool::new(false),
            pings: AtomicU64::new(0),
            pinged: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            ignored: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            leash: Leash::default(),
            condition: Mutex::default(),
            complaint: Mutex::default(),
            callbacks: AtomicUsize::new(0),
        }
    }

    pub(crate) fn connect_data(&self, stream: OwnedWriteHalf) {
        drop(self.data.set(Outbox::new(stream)));
    }

    pub(crate) fn connect_control(&self, stream: OwnedWriteHalf) {
        drop(self.control.set(Outbox::new(stream)));
    }

    pub(crate) fn data(&self) -> Option<&Outbox> {
        self.data.get()
    }

    pub(crate) fn control(&self) -> Option<&Outbox> {
        self.control.get()
    }

    /// The process was waited for and everything it said was read: nobody waits for it here.
    pub(crate) fn forget_flights(&self) {
        let aloft = std::mem::take(&mut self.flights.lock().expect("no code panics here").aloft);
        drop(aloft);
    }

    /// The process is gone: what it left in the sockets is read without waiting for anybody.
    pub(crate) fn hang_up(&self) {
        self.gone.store(true, Ordering::Relaxed);
        self.leash.cut();
        for flight in self.flights.lock().expect("no code panics here").aloft.values() {
            flight.exchange.release_reader();
            flight.let_go();
        }
        for stream in [self.data.get(), self.control.get()].into_iter().flatten() {
            stream.hang_up();
        }
    }

    pub fn wire(&self) -> Option<Wire> {
        self.opened.get().map(|opened| opened.wire)
    }

    /// Queues a request behind those that were queued before it. The caller flushes.
    pub(crate) fn assign(self: &Arc<Self>, exchange: Arc<Exchange>, tries: u32, began: Began) {
        let deadline = exchange.deadline;
        let wire_id = {
            let mut flights = self.flights.lock().expect("no code panics here");
            flights.last_id += 1;
            let wire_id = flights.last_id;
            let attempt = began.attempt;
            let flight = Flight { exchange: Arc::clone(&exchange), attempt, leash: None };
            flights.aloft.insert(wire_id, flight);
            wire_id
        };
        exchange.assigned(Arc::clone(self), wire_id, began);
        if let Some(data) = self.data.get() {
            data.push(Outgoing::Query { wire_id, exchange, deadline, tries });
        }
    }

    /// Asks the worker to let go of a request; if it was never written, that is done at once.
    /// `withdraw`: only if it has not begun.
    pub(crate) fn cancel(&self, wire_id: u64, withdraw: bool) -> Option<Event> {
        if self.data.get().is_some_and(|data| data.take_back(wire_id)) {
            let flight = self.land(wire_id)?;
            return Some(self.answered(&flight, Answer::NotSent));
        }
        if withdraw {
            self.say_urgently(ToWorker::Withdraw { id: wire_id });
            return None;
        }
        let mut flights = self.flights.lock().expect("no code panics here");
        if let Some(flight) = flights.aloft.get_mut(&wire_id) {
            // Also for the calls that it has not made yet.
            flight.leash.get_or_insert_default().cut();
        }
        drop(flights);
        self.say_urgently(ToWorker::Cancel { id: wire_id });
        if let Some(signal) = self.opened.get().and_then(|opened| opened.cancel_signal) {
            // The message first: the signal's handler looks for it.
            self.flush_control();
            drop(self.handle.signal(signal));
        }
        None
    }

    pub(crate) fn ping(&self) {
        self.listening.store(true, Ordering::Relaxed);
        let nonce = self.pings.fetch_add(1, Ordering::Relaxed) + 1;
        self.pinged.store(self.clock.now().as_nanos(), Ordering::Relaxed);
        self.say_urgently(ToWorker::Ping { nonce });
    }

    pub(crate) fn check_health(&self) {
        self.checked.store(self.clock.now().as_nanos(), Ordering::Relaxed);
        self.say_urgently(ToWorker::HealthCheck);
    }

    /// How long ago the last ping and the last check went out.
    pub(crate) fn since_ping(&self, now: Time) -> Duration {
        now.since(Time::from_nanos(self.pinged.load(Ordering::Relaxed)))
    }

    pub(crate) fn since_check(&self, now: Time) -> Duration {
        now.since(Time::from_nanos(self.checked.load(Ordering::Relaxed)))
    }

    /// Looks at a process that has fallen silent.
    pub(crate) fn examine(&self) {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        let condition = match state {
            Some('T' | 't') => Some(Condition::Stopped),
            Some('D') => Some(Condition::Uninterruptible),
            _ => None,
        };
        *self.condition.lock().expect("no code panics here") = condition;
    }

    pub fn condition(&self) -> Option<Condition> {
        *self.condition.lock().expect("no code panics here")
    }

    /// What tells best why it ended: the last it wrote to stderr, and errors that were noted.
    pub(crate) fn last_words(&self, lines: usize) -> Vec<String> {
        let generation = self.process.generation;
        self.output.last_of(generation, lines, |line| {
            line.stream == Stream::Stderr || line.level == LogLevel::Error
        })
    }

    /// All that it last wrote, wherever to.
    pub(crate) fn any_words(&self, lines: usize) -> Vec<String> {
        self.output.last_of(self.process.generation, lines, |_| true)
    }

    pub fn complaint(&self) -> Option<String> {
        self.complaint.lock().expect("no code panics here").clone()
    }

    pub fn connection(&self) -> Connection {
        match (self.gone.load(Ordering::Relaxed), self.opened.get()) {
            (true, _) => Connection::Disconnected,
            (false, None) => Connection::Connecting,
            (false, Some(_)) => Connection::Connected,
        }
    }

    /// The one request that it works on, for what it writes meanwhile. What lies behind it in the
    /// stream has not begun.
    pub(crate) fn working_on(&self) -> Option<Arc<Exchange>> {
        let one_at_a_time = self.opened.get().is_some_and(|opened| opened.capacity == 1);
        let flights = self.flights.lock().expect("no code panics here");
        if flights.aloft.len() > 1 && !one_at_a_time {
            return None;
        }
        let first = flights.aloft.iter().min_by_key(|(wire_id, _)| **wire_id);
        first.map(|(_, flight)| Arc::clone(&flight.exchange))
    }

    pub(crate) fn exchange(&self, wire_id: u64) -> Option<Arc<Exchange>> {
        let flights = self.flights.lock().expect("no code panics here");
        flights.aloft.get(&wire_id).map(|flight| Arc::clone(&flight.exchange))
    }

    /// A request that makes a call of its own, and what tells that call when the request ends.
    pub(crate) fn caller(&self, wire_id: u64) -> Option<(Arc<Exchange>, Leash)> {
        let mut flights = self.flights.lock().expect("no code panics here");
        let flight = flights.aloft.get_mut(&wire_id)?;
        let leash = flight.leash.get_or_insert_default().clone();
        Some((Arc::clone(&flight.exchange), leash))
    }

    /// Cut when the process is gone.
    pub(crate) fn leash(&self) -> &Leash {
        &self.leash
    }

    /// The end of the control stream means something only to a worker that reads it.
    pub(crate) fn needs_control(&self) -> bool {
        self.reads_control()
    }

    pub(crate) fn callbacks(&self) -> &AtomicUsize {
        &self.callbacks
    }

    /// Answers a call that the worker made.
    #[must_use]
    pub(crate) fn answer_call(&self, call: &Call, outcome: Result<Body, JsonText>) -> Vec<Event> {
        let result = ToWorker::CallResult { call_id: call.call_id, outcome };
        match call.answer_on_control {
            true => self.say_urgently(result),
            false => self.say(result),
        }
        self.flush()
    }

    pub(crate) fn say(&self, message: ToWorker) {
        if let Some(data) = self.data.get() {
            data.push(Outgoing::Message(message));
        }
    }

    /// On the stream that is read beside a running handler, where there is one.
    fn say_urgently(&self, message: ToWorker) {
        match self.control.get().filter(|_| self.reads_control()) {
            Some(control) => control.push(Outgoing::Message(message)),
            None => self.say(message),
        }
    }

    fn reads_control(&self) -> bool {
        self.opened.get().is_some_and(|opened| opened.control)
    }

    fn flush_control(&self) {
        if let Some(control) = self.control.get() {
            let unsent = control.flush(self);
            debug_assert!(unsent.is_empty(), "control messages are small");
        }
    }

    /// More chunks may come. A worker that knows no credit is held back by not being read.
    #[must_use]
    pub(crate) fn grant(&self, wire_id: u64, credit: Credit) -> Vec<Event> {
        if !self.honours_credit() {
            return Vec::new();
        }
        self.say(ToWorker::Credit { id: wire_id, credit });
        self.flush()
    }

    fn honours_credit(&self) -> bool {
        self.opened.get().is_some_and(|opened| opened.honours_credit)
    }

    /// Writes what is queued on both streams. Returns what was found to be impossible to write.
    #[must_use]
    pub(crate) fn flush(&self) -> Vec<Event> {
        self.flush_control();
        let unsent = self.data.get().map(|data| data.flush(self)).unwrap_or_default();
        self.reject(unsent)
    }

    pub(crate) fn reject(&self, unsent: Vec<Unsent>) -> Vec<Event> {
        let rejected = unsent.into_iter().filter_map(|unsent| {
            let flight = self.land(unsent.wire_id)?;
            let why = unsent.why.to_string();
            flight.exchange.keep_answer(Err(Refused::Unsendable { why }.into()));
            Some(self.answered(&flight, Answer::Failed { retryable: false }))
        });
        rejected.collect()
    }

    fn land(&self, wire_id: u64) -> Option<Flight> {
        let flight = self.flights.lock().expect("no code panics here").aloft.remove(&wire_id)?;
        flight.let_go();
        Some(flight)
    }

    /// Requests of which the caller has seen chunks.
    pub(crate) fn streamed(&self) -> Vec<RequestId> {
        let flights = self.flights.lock().expect("no code panics here");
        let streamed = flights.aloft.values().filter(|flight| flight.exchange.streamed());
        streamed.map(|flight| flight.exchange.id).collect()
    }

    /// A sign of life, if one is being waited for.
    pub(crate) fn heard(&self) -> Option<Event> {
        let waited =
            self.listening.load(Ordering::Relaxed) && self.listening.swap(false, Ordering::Relaxed);
        if !waited {
            return None;
        }
        *self.condition.lock().expect("no code panics here") = None;
        Some(Event::ProcessHeard { process: self.process })
    }

    pub(crate) fn on_message(&self, message: FromWorker) -> Result<Reaction, Offence> {
        match message {
            FromWorker::Ready(ready) => Ok(Reaction::Report(self.open(&ready))),
            FromWorker::Message { id, body, .. } => self.on_chunk(id, body),
            FromWorker::Complete { id, body, .. } => {
                let limit = self.max_result;
                let fits = body.len() as u64 <= limit;
                let result = if fits { Ok(body) } else { Err(too_large(limit)) };
                self.on_terminal(id, Answer::Completed, result)
            }
            FromWorker::Error { id, error, .. } => {
                let answer = Answer::Failed { retryable: error.retryable };
                self.on_terminal(id, answer, Err(worker_error(*error)))
            }
            FromWorker::Cancelled { id, started, .. } => {
                let began =
                    if started { ostler_core::Started::Yes } else { ostler_core::Started::No };
                let error = Failure::Cancelled { started: began }.into();
                self.on_terminal(id, Answer::Cancelled { started }, Err(error))
            }
            FromWorker::Log(log) => {
                let request = log.id.and_then(|id| self.exchange(id));
                let request = request.map(|exchange| exchange.name(self.pool));
                let generation = self.process.generation;
                self.output.note_text(Stream::Log, log.level, generation, request, &log.message);
                Ok(Reaction::Nothing)
            }
            FromWorker::Retire { reason, tainted } => {
                let reason: String = reason.chars().take(COMPLAINT_MAX).collect();
                tracing::info!(worker = &*self.name, reason, tainted, "worker asks to be replaced");
                let process = self.process;
                Ok(Reaction::Report(match tainted {
                    true => Event::ProcessTainted { process },
                    false => Event::RetireAsked { process },
                }))
            }
            FromWorker::Call(call) => self.on_call(call),
            FromWorker::HealthOk(_) => Ok(self.on_health(None)),
            FromWorker::HealthFailed { reason } => Ok(self.on_health(Some(reason))),
            FromWorker::Progress { id, body } => Ok(self.on_progress(id, &body)),
            FromWorker::Metric(metric) => Ok(Reaction::Metric(metric)),
            FromWorker::Pong { .. } | FromWorker::ShutdownAck | FromWorker::Session { .. } => {
                Ok(Reaction::Nothing)
            }
            FromWorker::Control { .. }
            | FromWorker::TraceResult { .. }
            | FromWorker::Unknown { .. } => {
                self.ignored.fetch_add(1, Ordering::Relaxed);
                Ok(Reaction::Nothing)
            }
        }
    }

    /// A worker that calls and does not read the answers is not to fill the memory.
    fn on_call(&self, call: Box<Call>) -> Result<Reaction, Offence> {
        let unread = self.data.get().map_or(0, Outbox::backlog);
        let open = self.callbacks.load(Ordering::Relaxed);
        if open >= CALLS_MAX || unread >= CALLS_MAX {
            return Err(format!("more than {CALLS_MAX} calls open, or their answers unread"));
        }
        Ok(Reaction::CallBack(call))
    }

    fn on_health(&self, complaint: Option<String>) -> Reaction {
        let well = complaint.is_none();
        let complaint = complaint.map(|text| text.chars().take(COMPLAINT_MAX).collect());
        *self.complaint.lock().expect("no code panics here") = complaint;
        Reaction::Report(Event::HealthReported { process: self.process, well })
    }

    fn on_progress(&self, wire_id: u64, body: &Body) -> Reaction {
        let fits = body.len() <= PROGRESS_MAX;
        let progress = fits.then(|| String::from_utf8(body.to_json().to_vec()).ok()).flatten();
        let progress = progress.and_then(|text| RawValue::from_string(text).ok());
        match (self.exchange(wire_id), progress) {
            (Some(exchange), Some(progress)) => {
                exchange.progressed(progress);
                Reaction::Progress(exchange)
            }
            _ => {
                self.ignored.fetch_add(1, Ordering::Relaxed);
                Reaction::Nothing
            }
        }
    }

    fn open(&self, ready: &Ready) -> Event {
        let functions =
            ready.functions.iter().zip(0..u16::MAX).map(|(f, index)| (f.name.clone(), index));
        let is_worker =
            ready.pid.is_none_or(|pid| i64::from(pid) == i64::from(self.pid) || pid == 2);
        drop(self.opened.set(Opened {
            wire: ready.wire,
            capacity: ready.capacity,
            control: ready.control && self.control.get().is_some(),
            honours_credit: ready.honours_credit(),
            // Only the process itself is signalled, never what a wrapper says it started.
            cancel_signal: ready.cancel_signal.filter(|_| is_worker),
            functions: functions.collect(),
        }));
        let heartbeat = ready.wire == Wire::Binary;
        let gives_back = ready.withdraw && self.reads_control();
        let ready = CoreReady { capacity: Some(ready.capacity), heartbeat, gives_back };
        Event::ProcessReady { process: self.process, ready }
    }

    fn on_chunk(&self, wire_id: u64, body: Body) -> Result<Reaction, Offence> {
        let exchange = {
            let flights = self.flights.lock().expect("no code panics here");
            match flights.aloft.get(&wire_id) {
                Some(flight) => Arc::clone(&flight.exchange),
                None if wire_id <= flights.last_id => {
                    self.ignored.fetch_add(1, Ordering::Relaxed);
                    return Ok(Reaction::Nothing);
                }
                None => return Err(format!("a chunk for request {wire_id}, which it never got")),
            }
        };
        let gone = self.gone.load(Ordering::Relaxed);
        Ok(match exchange.push_chunk(body, || self.clock.now()) {
            Pushed::Discarded(grant) => Reaction::Grant(grant),
            Pushed::Beyond if self.honours_credit() => {
                return Err(format!("chunks of request {wire_id} beyond its credit"));
            }
            Pushed::Full | Pushed::Beyond if !gone && !self.honours_credit() => {
                Reaction::WaitFor(exchange)
            }
            Pushed::Fits | Pushed::Full | Pushed::Beyond => Reaction::Nothing,
        })
    }

    fn on_terminal(
        &self,
        wire_id: u64,
        answer: Answer,
        result: Result<Body, CallError>,
    ) -> Result<Reaction, Offence> {
        let Some(flight) = self.land(wire_id) else {
            return Err(format!("an answer to request {wire_id}, which it does not hold"));
        };
        match answer {
            Answer::Cancelled { started: false } => flight.exchange.keep_unless_answered(result),
            _ => flight.exchange.keep_answer(result),
        }
        Ok(Reaction::Report(self.answered(&flight, answer)))
    }

    fn answered(&self, flight: &Flight, answer: Answer) -> Event {
        Event::Answered {
            process: self.process,
            request: flight.exchange.id,
            attempt: flight.attempt,
            answer,
            streamed: flight.exchange.streamed(),
        }
    }
}

impl Flight {
    /// The worker has let go of it, or is to: what it called is called off.
    fn let_go(&self) {
        if let Some(leash) = &self.leash {
            leash.cut();
        }
    }
}

impl Speller for Link {
    fn encoder(&self) -> Encoder {
        Encoder::new(self.wire().unwrap_or_default(), self.limits)
    }

    fn spell(&self, outgoing: Outgoing) -> ToWorker {
        let (wire_id, exchange, deadline, tries) = match outgoing {
            Outgoing::Message(message) => return message,
            Outgoing::Query { wire_id, exchange, deadline, tries } => {
                (wire_id, exchange, deadline, tries)
            }
        };
        let index = self.opened.get().and_then(|opened| {
            let binary = opened.wire == Wire::Binary;
            opened.functions.get(&*exchange.function).filter(|_| binary).copied()
        });
        let left = deadline.since(self.clock.now()).as_millis();
        ToWorker::Query(Query {
            id: wire_id,
            function: match index {
                Some(index) => Function::Index(index),
                None => Function::Named(exchange.function.to_string()),
            },
            stream: exchange.stream,
            deadline_ms: NonZeroU32::new(u32::try_from(left).unwrap_or(u32::MAX).max(1)),
            body: exchange.body.clone(),
            context: context(&exchange, tries),
        })
    }
}

fn context(exchange: &Exchange, tries: u32) -> Option<Box<Context>> {
    if exchange.details.is_none() && tries == 0 {
        return None;
    }
    let details = exchange.details.as_deref().cloned().unwrap_or_default();
    Some(Box::new(Context {
        attempt: tries + 1,
        traceparent: details.traceparent,
        request_id: details.request_id.map(|id| id.to_string()),
        idempotent: details.idempotent,
        ..Context::default()
    }))
}

/// What a worker calls an error decides whether anything ran.
fn worker_error(error: WorkerError) -> CallError {
    match error.code.as_str() {
        WorkerError::INVALID_ARGUMENTS
        | WorkerError::MALFORMED
        | WorkerError::THREAD_UNSAFE
        | WorkerError::FUNCTION_NOT_FOUND
            if !error.started =>
        {
            Refused::Arguments(error).into()
        }
        _ => Failure::Application(error).into(),
    }
}

fn too_large(limit: u64) -> CallError {
    Failure::ResultTooLarge { limit }.into()
}
