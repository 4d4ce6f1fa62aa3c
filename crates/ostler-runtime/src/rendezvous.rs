//! A socket with a name, for workers that cannot inherit one. It lives in a private directory,
//! takes the streams of one process, and asks for the token that this process was given.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_core::Event;
use ostler_proto::{Decoder, FromWorker};
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::driver::Driver;
use crate::link::Link;
use crate::reader::{self, Stream};

/// A connection that has not said who it is by then is not the worker's.
const WELCOME: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Rendezvous {
    directory: PathBuf,
    path: PathBuf,
    token: String,
    listener: UnixListener,
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

impl Rendezvous {
    pub fn open(worker: &str) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let unique = uuid::Uuid::now_v7().simple().to_string();
        let directory = std::env::temp_dir().join(format!("ostler-{unique}"));
        std::fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let path = directory.join(format!("{worker}.sock"));
        let listener = UnixListener::bind(&path)?;
        Ok(Rendezvous { directory, path, token: token()?, listener })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// Takes the data stream, and a control stream if one comes before or after it, until the
    /// data stream ends.
    pub async fn meet(self, driver: Arc<Driver>, link: Arc<Link>) {
        let mut streams: JoinSet<Stream> = JoinSet::new();
        let mut data_connected = false;
        loop {
            tokio::select! {
                () = link.leash().is_cut() => break,
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else { return };
                    let welcome = self.welcome(&driver, &link, stream, &mut streams);
                    let welcomed = tokio::select! {
                        () = link.leash().is_cut() => break,
                        welcomed = tokio::time::timeout(WELCOME, welcome) => welcomed,
                    };
                    match welcomed.unwrap_or_else(|_| Err("it says nothing".to_owned())) {
                        Ok(is_data) => data_connected |= is_data,
                        Err(offence) => {
                            tracing::warn!(worker = &*link.name, "refused a connection: {offence}");
                            driver.report(Event::ProtocolViolated { process: link.process });
                            return;
                        }
                    }
                }
                Some(Ok(ended)) = streams.join_next() => {
                    if ended == Stream::Data || data_connected && link.needs_control() {
                        return;
                    }
                }
            }
        }
        // The process is gone: what it has said is read to its end.
        while streams.join_next().await.is_some() {}
    }

    async fn welcome(
        &self,
        driver: &Arc<Driver>,
        link: &Arc<Link>,
        stream: UnixStream,
        streams: &mut JoinSet<Stream>,
    ) -> Result<bool, String> {
        let (mut read, write) = stream.into_split();
        let mut decoder = Decoder::opening(link.limits);
        let first = first_message(&mut read, &mut decoder).await?;
        let (token, is_data) = match &first {
            FromWorker::Ready(ready) => (ready.token.as_deref(), true),
            FromWorker::Control { token } => (token.as_deref(), false),
            other => return Err(format!("it opened with {other:?}")),
        };
        if !same(token.unwrap_or_default(), &self.token) {
            return Err("its token is wrong".to_owned());
        }
        let (driver, link) = (Arc::clone(driver), Arc::clone(link));
        if is_data {
            link.connect_data(write);
            streams.spawn(reader::follow_data(driver, link, read, decoder, Some(first)));
        } else {
            link.connect_control(write);
            streams.spawn(reader::follow_control(driver, link, read));
        }
        Ok(is_data)
    }
}

async fn first_message(
    stream: &mut OwnedReadHalf,
    decoder: &mut Decoder,
) -> Result<FromWorker, String> {
    loop {
        if let Some(message) = decoder.next().map_err(|violation| violation.to_string())? {
            return Ok(message);
        }
        match stream.read_buf(decoder.space()).await {
            Ok(0) | Err(_) => return Err("it hung up before it said anything".to_owned()),
            Ok(_) => {}
        }
    }
}

fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// In a time that does not depend on where the difference is.
fn same(given: &str, wanted: &str) -> bool {
    let differences = given.bytes().zip(wanted.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == wanted.len() && differences == 0
}
