//! Contained processes over one transport, up to the moment at which they have said ready.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use ostler_proto::{Decoder, FromWorker, PROTOCOL_VERSION, Violation, env};
use ostler_runtime::containment::{RootShim, SpawnError, SpawnSpec};
use ostler_runtime::{Profile, Resolved};
use tokio::net::UnixStream;

use super::meeting::{Meeting, Met, Unopened, first_message};
use super::stream::Stream;
use super::subject::{Process, Subject};
use super::{LIMITS, Transport};

/// The wires that a server of this version offers.
pub(super) const BOTH_WIRES: &str = "binary,ndjson";
/// The one that every server offers.
pub(super) const LINES_ONLY: &str = "ndjson";

#[derive(Debug, Clone, Copy)]
pub(super) struct Launcher<'a> {
    root: &'a RootShim,
    program: &'a Resolved,
    profile: Profile,
    transport: Transport,
}

/// Why there is no worker to test.
#[derive(Debug)]
pub(super) enum Unready {
    /// It never ran.
    Spawn(String),
    /// It sent something else, or not in time.
    NoReady(String),
    /// It sent a `ready` that is none.
    BadReady(String),
}

impl Unready {
    pub fn why(self) -> String {
        match self {
            Unready::Spawn(why) | Unready::NoReady(why) | Unready::BadReady(why) => why,
        }
    }
}

impl From<SpawnError> for Unready {
    fn from(error: SpawnError) -> Self {
        Unready::Spawn(error.to_string())
    }
}

impl From<io::Error> for Unready {
    fn from(error: io::Error) -> Self {
        Unready::Spawn(format!("cannot make the worker's socket: {error}"))
    }
}

impl<'a> Launcher<'a> {
    pub fn new(root: &'a RootShim, program: &'a Resolved, profile: Profile) -> Self {
        Launcher { root, program, profile, transport: Transport::Inherited }
    }

    pub fn over(self, transport: Transport) -> Self {
        Launcher { transport, ..self }
    }

    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Starts the `generation`th process and waits until it is ready.
    pub async fn start(
        &self,
        generation: u32,
        wires: &str,
        timeout: Duration,
    ) -> Result<Subject, Unready> {
        let meeting = match self.transport {
            Transport::Inherited => None,
            Transport::Named => Some(Meeting::open()?),
        };
        let spec = self.spec(generation, wires, meeting.as_ref());
        let mut contained = self.root.spawn(spec).await?;
        let streams = (contained.data.take(), contained.control.take());
        let mut process = Process::new(contained);
        let opened = tokio::select! {
            opened = tokio::time::timeout(timeout, open(meeting.as_ref(), streams)) => opened,
            () = process.exited() => Ok(Err(Unopened::HungUp)),
        };
        let met = match opened {
            Ok(Ok(met)) => met,
            Ok(Err(Unopened::Violation(violation))) => return Err(not_opened(violation)),
            Ok(Err(Unopened::HungUp)) => {
                return Err(Unready::NoReady(format!("{} before ready", process.end().await)));
            }
            Err(_) => {
                let told = process.last_words();
                return Err(Unready::NoReady(format!("no ready within {timeout:?}{told}")));
            }
        };
        let token = meeting.map(|meeting| meeting.token().to_owned());
        Ok(Subject::new(met, token, process, timeout))
    }

    fn spec(&self, generation: u32, wires: &str, meeting: Option<&Meeting>) -> SpawnSpec {
        let mut variables: BTreeMap<OsString, OsString> = self.program.env.clone();
        let mut set = |key: &str, value: String| variables.insert(key.into(), value.into());
        set(env::PROTOCOL, PROTOCOL_VERSION.to_string());
        set(env::WIRES, wires.to_owned());
        set(env::POOL, "conform".to_owned());
        set(env::WORKER, "conform-1".to_owned());
        set(env::GENERATION, generation.to_string());
        set(env::PROFILE, self.profile.name().to_owned());
        set(env::CAPACITY, self.profile.capacity().to_string());
        set(env::THREAD_SAFETY, "warn".to_owned());
        set(env::MAX_FRAME, LIMITS.max_frame.to_string());
        set(env::MAX_LINE, LIMITS.max_line.to_string());
        match meeting {
            None => {
                set(env::FD, "3".to_owned());
                set(env::CTL_FD, "4".to_owned());
            }
            Some(meeting) => {
                set(env::SOCKET, meeting.path().display().to_string());
                set(env::TOKEN, meeting.token().to_owned());
            }
        }
        SpawnSpec {
            env: variables.into_iter().collect(),
            data: meeting.is_none(),
            control: meeting.is_none(),
            ..SpawnSpec::new("conform-1", self.program.argv.clone())
        }
    }
}

type Inherited = Option<std::os::unix::net::UnixStream>;

async fn open(
    meeting: Option<&Meeting>,
    (data, control): (Inherited, Inherited),
) -> Result<Met, Unopened> {
    if let Some(meeting) = meeting {
        return meeting.meet().await;
    }
    let adopted = |stream: Inherited| stream.and_then(|stream| UnixStream::from_std(stream).ok());
    let data = adopted(data).ok_or(Unopened::HungUp)?;
    match first_message(data).await? {
        (data, FromWorker::Ready(ready)) => {
            let decoder = Decoder::new(ready.wire, LIMITS);
            let control = adopted(control).filter(|_| ready.control);
            let control = control.map(|stream| Stream::new(stream, decoder));
            Ok(Met { ready: *ready, data, control, tokens: Vec::new() })
        }
        (_, other) => {
            let got = format!("{other:?}");
            Err(Unopened::Violation(Violation::ReadyExpected { got }))
        }
    }
}

/// A bad `ready` is still a `ready`; all else is something else in its place.
fn not_opened(violation: Violation) -> Unready {
    let why = violation.to_string();
    match violation {
        Violation::BadMessage { kind: "ready", .. } | Violation::UnsupportedProtocol { .. } => {
            Unready::BadReady(why)
        }
        _ => Unready::NoReady(why),
    }
}
