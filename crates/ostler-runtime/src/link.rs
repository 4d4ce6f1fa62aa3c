//! The connection to one process: its two streams, the requests that travel on them under ids of
//! their own, and what the worker said of itself. It turns messages into facts for the core.

mod hearing;
mod spelling;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ostler_core::{Answer, Event, IdMap, ProcessId, RequestId, SessionId, Time};
use ostler_proto::{Body, Call, Credit, JsonText, Limits, LogLevel, ToWorker, Wire};
use tokio::net::unix::OwnedWriteHalf;

pub(crate) use hearing::{Offence, Reaction};

use crate::callback::Leash;
use crate::clock::Clock;
use crate::containment::ProcessHandle;
use crate::driver::Driver;
use crate::exchange::{Began, Exchange};
use crate::failure::{Condition, Refused};
use crate::launcher::Recipe;
use crate::outbox::{Outbox, Outgoing, Unsent};
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

/// What a message may have beside its body.
const HEAD_ROOM: usize = 1 << 10;

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
    /// Sessions whose state it was asked for.
    saves: IdMap<u64, SessionId>,
}

#[derive(Debug)]
struct Flight {
    exchange: Arc<Exchange>,
    attempt: u32,
    /// Held by the calls that this request has made.
    leash: Option<Leash>,
}

impl Link {
    pub(crate) fn new(
        driver: &Driver,
        recipe: &Recipe,
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
            limits: recipe.limits,
            max_result: recipe.max_result,
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

    /// Asks for what the worker keeps of a session. The caller flushes.
    pub(crate) fn save(&self, session: SessionId, id: &str, within: Duration) {
        let wire_id = {
            let mut flights = self.flights.lock().expect("no code panics here");
            flights.last_id += 1;
            let wire_id = flights.last_id;
            flights.saves.insert(wire_id, session);
            wire_id
        };
        self.say(spelling::save(wire_id, id, within));
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

    /// Whether a body fits into one message to this worker.
    pub(crate) fn takes(&self, body: &Body) -> bool {
        let spelled = match self.wire().unwrap_or_default() {
            // Bytes are spelled in base 64.
            Wire::Ndjson if body.is_raw() => body.len() / 3 * 4 + 4,
            Wire::Ndjson | Wire::Binary => body.len(),
        };
        (spelled + HEAD_ROOM) as u64 <= self.message_max()
    }

    /// The longest message to this worker.
    pub(crate) fn message_max(&self) -> u64 {
        u64::from(match self.wire().unwrap_or_default() {
            Wire::Ndjson => self.limits.max_line,
            Wire::Binary => self.limits.max_frame,
        })
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
