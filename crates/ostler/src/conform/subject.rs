//! The worker under test: one process that has said ready, what it was sent and what it says.

use std::time::Duration;

use bytes::Bytes;
use ostler_proto::{Credit, FromWorker, JsonText, Query, Ready, ToWorker, Violation, Wire};
use ostler_runtime::containment::{Cause, Contained, ProcessHandle, Report, Reports};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::finding::Fault;
use super::ledger::{Ledger, Terminal};
use super::meeting::Met;
use super::output::Output;
use super::stream::Stream;

/// What a dead process has written is read within this time, whoever else holds its stream.
const REST_FOLLOWS: Duration = Duration::from_millis(200);
/// A closed stream is usually the first sign of an exit.
const EXIT_FOLLOWS: Duration = Duration::from_secs(2);
/// A swept process is gone in milliseconds.
const CLEARED_WITHIN: Duration = Duration::from_secs(10);

/// A contained process without its streams.
#[derive(Debug)]
pub(super) struct Process {
    handle: ProcessHandle,
    reports: Reports,
    output: Output,
    /// They empty its pipes, and end with them or with this.
    drains: JoinSet<()>,
    pid: i32,
    exit: Option<Cause>,
}

impl Process {
    pub fn new(contained: Contained) -> Process {
        let output = Output::default();
        let mut drains = JoinSet::new();
        drains.spawn(output.clone().drain(contained.stdout));
        drains.spawn(output.clone().drain(contained.stderr));
        Process {
            handle: contained.handle,
            reports: contained.reports,
            output,
            drains,
            pid: contained.pid,
            exit: None,
        }
    }

    /// Resolves when it has ended. Losing the future loses nothing.
    pub async fn exited(&mut self) {
        while self.exit.is_none() {
            match self.reports.next().await {
                Some(Report::Exited(exit)) => self.exit = Some(exit.cause),
                Some(_) => {}
                None => self.exit = Some(Cause::Unknown),
            }
        }
    }

    /// How it ended, in words, once its stream has.
    pub async fn end(&mut self) -> String {
        drop(tokio::time::timeout(EXIT_FOLLOWS, self.exited()).await);
        // Its exit may be known before its last words are.
        let drained = async { while self.drains.join_next().await.is_some() {} };
        drop(tokio::time::timeout(REST_FOLLOWS, drained).await);
        let end = match self.exit {
            None => "it closed its stream and lives".to_owned(),
            Some(Cause::Code(code)) => format!("it exited with code {code}"),
            Some(Cause::Signal { number, .. }) => {
                format!("it was ended by {}", ostler_runtime::signal_name(number))
            }
            Some(Cause::Unknown) => "it ended".to_owned(),
        };
        end + &self.last_words()
    }

    pub fn last_words(&self) -> String {
        match self.output.last_words() {
            words if words.is_empty() => words,
            words => format!("; it printed: {words}"),
        }
    }

    pub async fn clear(&mut self) {
        self.handle.sweep().await;
        let cleared = async { while self.reports.next().await.is_some() {} };
        drop(tokio::time::timeout(CLEARED_WITHIN, cleared).await);
    }
}

/// Why a worker was not heard.
#[derive(Debug)]
pub(super) enum Trouble {
    Silent(Duration),
    Ended(String),
    Broken(Violation),
}

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Fault {
        let found = match trouble {
            Trouble::Silent(timeout) => format!("nothing within {timeout:?}"),
            Trouble::Ended(how) => how,
            Trouble::Broken(violation) => format!("{}: {violation}", violation.code()),
        };
        Fault::Failed { found, broken: true }
    }
}

#[derive(Debug)]
pub(super) struct Subject {
    pub ready: Ready,
    pub ledger: Ledger,
    /// The token it was given, and those that it presented.
    pub token: Option<String>,
    pub tokens: Vec<Option<String>>,
    data: Stream,
    control: Option<Stream>,
    process: Process,
    timeout: Duration,
}

impl Subject {
    pub fn new(met: Met, token: Option<String>, process: Process, timeout: Duration) -> Subject {
        let Met { ready, data, mut control, tokens } = met;
        if let Some(control) = &mut control {
            control.set_wire(ready.wire);
        }
        let ledger = Ledger::default();
        Subject { ready, ledger, token, tokens, data, control, process, timeout }
    }

    pub fn has_control(&self) -> bool {
        self.control.is_some()
    }

    pub fn wire(&self) -> Wire {
        self.data.wire()
    }

    /// Lines that it has printed.
    pub fn printed(&self) -> usize {
        self.process.output.lines()
    }

    pub fn exit_code(&self) -> Option<i32> {
        match self.process.exit {
            Some(Cause::Code(code)) => Some(code),
            _ => None,
        }
    }

    // Speaking.

    pub async fn send(&self, message: impl Into<ToWorker>) {
        self.data.send(&message.into()).await;
    }

    /// On the control stream, where the worker reads one.
    pub async fn send_urgently(&self, message: ToWorker) {
        self.control.as_ref().unwrap_or(&self.data).send(&message).await;
    }

    pub async fn send_bytes(&self, bytes: Bytes) {
        self.data.send_bytes(bytes).await;
    }

    pub fn encoded(&self, message: impl Into<ToWorker>) -> Bytes {
        self.data.encoded(&message.into())
    }

    /// The message, and the signal if the worker wants one. Only the process itself gets it.
    pub async fn cancel(&self, id: u64) {
        self.send_urgently(ToWorker::Cancel { id }).await;
        let is_worker =
            self.ready.pid.is_none_or(|pid| i64::from(pid) == i64::from(self.process.pid));
        if let Some(signal) = self.ready.cancel_signal.filter(|_| is_worker) {
            drop(self.process.handle.signal(signal));
        }
    }

    pub async fn grant(&self, id: u64, credit: Credit) {
        if self.ready.honours_credit() {
            self.send(ToWorker::Credit { id, credit }).await;
        }
    }

    /// Ends its data stream, and with it the other one.
    pub fn hang_up(self) -> Process {
        self.process
    }

    pub fn hang_up_control(&mut self) {
        self.control = None;
    }

    // Hearing.

    /// When something that is asked for now must have come.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// The next message. What it says of requests is in the ledger.
    pub async fn hear_until(&mut self, deadline: Instant) -> Result<FromWorker, Trouble> {
        let heard = timeout_at(deadline, self.receive()).await;
        let message = heard.unwrap_or(Err(Trouble::Silent(self.timeout)))?;
        self.ledger.note(&message);
        if let FromWorker::Call(call) = &message {
            self.refuse_call(call.call_id, call.answer_on_control).await;
        }
        Ok(message)
    }

    async fn receive(&mut self) -> Result<FromWorker, Trouble> {
        loop {
            if let Some(message) = self.decoded()? {
                return Ok(message);
            }
            let gone = self.process.exit.is_some();
            tokio::select! {
                biased;
                open = self.data.fill() => if !open {
                    return Err(Trouble::Ended(self.process.end().await));
                },
                open = fill(&mut self.control) => if !open {
                    self.control = None;
                },
                () = self.process.exited(), if !gone => {}
                () = tokio::time::sleep(REST_FOLLOWS), if gone => {
                    return Err(Trouble::Ended(self.process.end().await));
                }
            }
        }
    }

    fn decoded(&mut self) -> Result<Option<FromWorker>, Trouble> {
        for stream in [Some(&mut self.data), self.control.as_mut()].into_iter().flatten() {
            if let Some(message) = stream.decoded().map_err(Trouble::Broken)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    async fn refuse_call(&self, call_id: u64, on_control: bool) {
        let problem =
            r#"{"code":"not_available","detail":"the tester serves no calls","retryable":false}"#;
        let problem = JsonText::parse(problem).expect("it is JSON");
        let refused = ToWorker::CallResult { call_id, outcome: Err(problem) };
        match on_control {
            true => self.send_urgently(refused).await,
            false => self.send(refused).await,
        }
    }

    /// Waits for a message that fits.
    pub async fn await_message<T>(
        &mut self,
        fits: impl Fn(&FromWorker) -> Option<T>,
    ) -> Result<T, Trouble> {
        let deadline = self.deadline();
        loop {
            if let Some(found) = fits(&self.hear_until(deadline).await?) {
                return Ok(found);
            }
        }
    }

    /// Sends the query and waits for its terminal message.
    pub async fn call(&mut self, query: Query) -> Result<Terminal, Trouble> {
        let id = query.id;
        self.send(query).await;
        self.answer(id).await
    }

    /// Waits for the terminal message of a request.
    pub async fn answer(&mut self, id: u64) -> Result<Terminal, Trouble> {
        let deadline = self.deadline();
        loop {
            if let Some(terminal) = self.ledger.terminal(id) {
                return Ok(terminal.clone());
            }
            self.hear_until(deadline).await?;
        }
    }

    /// Waits for the end of the process and reads all that it says until then.
    pub async fn last_messages(&mut self) -> Result<Vec<FromWorker>, Trouble> {
        let (mut messages, deadline) = (Vec::new(), self.deadline());
        loop {
            match self.hear_until(deadline).await {
                Ok(message) => messages.push(message),
                Err(Trouble::Ended(_)) if self.process.exit.is_some() => return Ok(messages),
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Kills it and everything that it started, and waits until that is gone.
    pub async fn clear(mut self) {
        self.process.clear().await;
    }
}

/// Never resolves without a stream.
async fn fill(stream: &mut Option<Stream>) -> bool {
    match stream {
        Some(stream) => stream.fill().await,
        None => std::future::pending().await,
    }
}
