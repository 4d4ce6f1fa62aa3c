//! The named socket: the worker connects by itself, once for data and perhaps once for control,
//! in any order.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_proto::{Decoder, FromWorker, Ready, Violation};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::LIMITS;
use super::stream::Stream;

/// How long after `ready` its control stream is waited for. A pool does not wait at all.
const CONTROL_FOLLOWS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Meeting {
    directory: PathBuf,
    path: PathBuf,
    token: String,
    listener: UnixListener,
}

impl Drop for Meeting {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

/// Streams whose first message was read.
#[derive(Debug)]
pub(super) struct Met {
    pub ready: Ready,
    pub data: Stream,
    pub control: Option<Stream>,
    /// What each connection presented, in the order of coming.
    pub tokens: Vec<Option<String>>,
}

/// Why a connection did not open.
#[derive(Debug)]
pub(super) enum Unopened {
    HungUp,
    Violation(Violation),
}

impl Meeting {
    pub fn open() -> io::Result<Meeting> {
        let secret = random()?;
        let (name, token) = secret.split_at(16);
        let directory = std::env::temp_dir().join(format!("ostler-conform-{name}"));
        std::fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let path = directory.join("worker.sock");
        let listener = UnixListener::bind(&path)?;
        Ok(Meeting { directory, path, token: token.to_owned(), listener })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// Waits for the data stream, and a little for the control stream if `ready` announces one.
    pub async fn meet(&self) -> Result<Met, Unopened> {
        let mut arriving = JoinSet::new();
        let (mut opened, mut control, mut tokens) = (None, None, Vec::new());
        loop {
            let patience = tokio::time::sleep(CONTROL_FOLLOWS);
            tokio::select! {
                () = patience, if opened.is_some() => {
                    let (ready, data) = opened.expect("just seen");
                    return Ok(Met { ready, data, control, tokens });
                }
                Ok((stream, _)) = self.listener.accept() => {
                    arriving.spawn(first_message(stream));
                }
                Some(arrived) = arriving.join_next() => {
                    let (stream, first) = arrived.expect("reading does not panic")?;
                    match first {
                        FromWorker::Control { token } => {
                            tokens.push(token);
                            control = Some(stream);
                        }
                        FromWorker::Ready(ready) => {
                            tokens.push(ready.token.clone());
                            opened = Some((*ready, stream));
                        }
                        _ => unreachable!("the decoder takes nothing else as an opening"),
                    }
                }
            }
            match opened.take() {
                Some((ready, data)) if !ready.control || control.is_some() => {
                    return Ok(Met { ready, data, control, tokens });
                }
                unfinished => opened = unfinished,
            }
        }
    }
}

/// The opening of a fresh stream, inherited or connected.
pub(super) async fn first_message(stream: UnixStream) -> Result<(Stream, FromWorker), Unopened> {
    let mut stream = Stream::new(stream, Decoder::opening(LIMITS));
    loop {
        if let Some(message) = stream.decoded().map_err(Unopened::Violation)? {
            return Ok((stream, message));
        }
        if !stream.fill().await {
            return Err(Unopened::HungUp);
        }
    }
}

/// 48 hexadecimal digits.
fn random() -> io::Result<String> {
    let mut bytes = [0; 24];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
