//! One stream to a worker: messages in, bytes out.
//!
//! Writing has a task of its own, so that a worker that writes before it reads cannot bring the
//! tester to a halt.

use bytes::{Bytes, BytesMut};
use ostler_proto::{Decoder, Encoder, FromWorker, ToWorker, Violation, Wire};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::LIMITS;

/// Writes that may wait; no check has so many at a time.
const WAITING: usize = 256;

#[derive(Debug)]
pub(super) struct Stream {
    read: OwnedReadHalf,
    decoder: Decoder,
    write: mpsc::Sender<Bytes>,
    writer: JoinHandle<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

impl Stream {
    pub fn new(stream: UnixStream, decoder: Decoder) -> Stream {
        let (read, half) = stream.into_split();
        let (write, queue) = mpsc::channel(WAITING);
        Stream { read, decoder, write, writer: tokio::spawn(write_all(half, queue)) }
    }

    pub fn set_wire(&mut self, wire: Wire) {
        self.decoder.set_wire(wire);
    }

    /// The next whole message among the bytes that have come.
    pub fn decoded(&mut self) -> Result<Option<FromWorker>, Violation> {
        self.decoder.next()
    }

    /// Waits for more bytes; false at the end of the stream. Losing the future loses nothing.
    pub async fn fill(&mut self) -> bool {
        matches!(self.read.read_buf(self.decoder.space()).await, Ok(1..))
    }

    pub async fn send(&self, message: &ToWorker) {
        self.send_bytes(self.encoded(message)).await;
    }

    /// A peer that is gone is noticed by reading.
    pub async fn send_bytes(&self, bytes: Bytes) {
        drop(self.write.send(bytes).await);
    }

    pub fn encoded(&self, message: &ToWorker) -> Bytes {
        let mut out = BytesMut::new();
        let written = Encoder::new(self.decoder.wire(), LIMITS).encode(message, &mut out);
        written.expect("checks send what fits: payloads are checked JSON within the limit");
        out.freeze()
    }

    pub fn wire(&self) -> Wire {
        self.decoder.wire()
    }
}

async fn write_all(mut stream: OwnedWriteHalf, mut queue: mpsc::Receiver<Bytes>) {
    while let Some(bytes) = queue.recv().await {
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
