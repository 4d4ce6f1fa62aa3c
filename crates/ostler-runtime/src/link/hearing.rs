//! What a worker says, turned into facts for the core and into work for its reader. What cannot be
//! right is an offence, and costs the worker its process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ostler_core::{Answer, Event, Ready as CoreReady, SessionId};
use ostler_proto::{Body, Call, FromWorker, LogLevel, Ready, Wire, WorkerError};
use serde_json::value::RawValue;

use super::{Link, Opened};
use crate::exchange::{Exchange, Pushed};
use crate::failure::{CallError, Failure, Refused};
use crate::outbox::Outbox;
use crate::output::Stream;

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
    /// What it kept of a session; none if it could not say.
    Saved(SessionId, Option<Body>),
    /// The worker sends more than its caller takes, and knows no credit.
    WaitFor(Arc<Exchange>),
}

impl Link {
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
                if let Some(exchange) = &request {
                    exchange.tell(|listener| listener.log(level_name(log.level), &log.message));
                }
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
        let streams = [self.data.get(), self.control.get()].into_iter().flatten();
        let unread: usize = streams.map(Outbox::backlog).sum();
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
                exchange.tell(|listener| listener.progress(progress.get()));
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
        let ready = CoreReady {
            capacity: Some(ready.capacity),
            heartbeat,
            gives_back,
            saves_sessions: ready.saves_sessions,
        };
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

    fn saved(&self, wire_id: u64) -> Option<SessionId> {
        self.flights.lock().expect("no code panics here").saves.remove(&wire_id)
    }

    fn on_terminal(
        &self,
        wire_id: u64,
        answer: Answer,
        result: Result<Body, CallError>,
    ) -> Result<Reaction, Offence> {
        if let Some(session) = self.saved(wire_id) {
            return Ok(Reaction::Saved(session, result.ok()));
        }
        let Some(flight) = self.land(wire_id) else {
            return Err(format!("an answer to request {wire_id}, which it does not hold"));
        };
        match answer {
            Answer::Cancelled { started: false } => flight.exchange.keep_unless_answered(result),
            _ => flight.exchange.keep_answer(result),
        }
        Ok(Reaction::Report(self.answered(&flight, answer)))
    }
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

fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
    }
}

fn too_large(limit: u64) -> CallError {
    Failure::ResultTooLarge { limit }.into()
}
