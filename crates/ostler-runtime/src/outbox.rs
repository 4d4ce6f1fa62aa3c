//! What is to be written to one stream of a worker. Any task may add a message and write as much
//! as the socket takes; what is left over is written by the stream's own task. A message is whole
//! before it is queued, so a caller that vanishes leaves no half frame behind.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes, BytesMut};
use ostler_core::Time;
use ostler_proto::{EncodeError, Encoder, ToWorker};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Notify;

use crate::exchange::Exchange;

/// Bodies up to this size are copied behind their head, so that one write carries many messages.
const COPIED_UP_TO: usize = 16 << 10;
const SLICES: usize = 16;

#[derive(Debug)]
pub(crate) enum Outgoing {
    Query { wire_id: u64, exchange: Arc<Exchange>, deadline: Time, tries: u32 },
    Message(ToWorker),
}

/// A query that could not be spelled; nothing of it was written.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub wire_id: u64,
    pub why: EncodeError,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    stream: OwnedWriteHalf,
    queue: Mutex<VecDeque<Outgoing>>,
    writer: Mutex<Writer>,
    /// The socket is full: the stream's task goes on when it is not.
    full: Notify,
}

#[derive(Debug, Default)]
struct Writer {
    unwritten: VecDeque<Bytes>,
    buffer: BytesMut,
    full: bool,
    broken: bool,
}

/// Spells a queued message; the link knows how.
pub(crate) trait Speller {
    fn encoder(&self) -> Encoder;
    fn spell(&self, outgoing: Outgoing) -> ToWorker;
}

impl Outbox {
    pub fn new(stream: OwnedWriteHalf) -> Self {
        Outbox { stream, queue: Mutex::default(), writer: Mutex::default(), full: Notify::new() }
    }

    /// Nothing more is written, and whoever reads the other half finds its end.
    pub fn hang_up(&self) {
        let _ = rustix::net::shutdown(self.stream.as_ref(), rustix::net::Shutdown::Both);
    }

    pub fn push(&self, outgoing: Outgoing) {
        self.queue.lock().expect("no code panics here").push_back(outgoing);
    }

    /// How many messages wait to be written.
    pub fn backlog(&self) -> usize {
        self.queue.lock().expect("no code panics here").len()
    }

    /// Takes back a query that nobody has begun to write.
    pub fn take_back(&self, wanted: u64) -> bool {
        let mut queue = self.queue.lock().expect("no code panics here");
        let at = queue.iter().position(
            |outgoing| matches!(outgoing, Outgoing::Query { wire_id, .. } if *wire_id == wanted),
        );
        at.and_then(|at| queue.remove(at)).is_some()
    }

    /// Writes what is queued, as far as the socket takes it.
    pub fn flush(&self, speller: &impl Speller) -> Vec<Unsent> {
        let mut unsent = Vec::new();
        // Whoever holds the writer looks at the queue again before it lets go for good.
        while let Ok(mut writer) = self.writer.try_lock() {
            while !writer.full && self.collect(&mut writer, speller, &mut unsent) {
                self.write(&mut writer);
            }
            let full = writer.full;
            drop(writer);
            if full || self.queue.lock().expect("no code panics here").is_empty() {
                break;
            }
        }
        unsent
    }

    fn collect(
        &self,
        writer: &mut Writer,
        speller: &impl Speller,
        unsent: &mut Vec<Unsent>,
    ) -> bool {
        let batch = std::mem::take(&mut *self.queue.lock().expect("no code panics here"));
        if batch.is_empty() {
            return false;
        }
        let encoder = speller.encoder();
        for outgoing in batch {
            let wire_id = match &outgoing {
                Outgoing::Query { wire_id, .. } => *wire_id,
                Outgoing::Message(_) => 0,
            };
            if let Err(why) = writer.encode(encoder, &speller.spell(outgoing)) {
                unsent.push(Unsent { wire_id, why });
            }
        }
        writer.cut();
        true
    }

    fn write(&self, writer: &mut Writer) {
        while !writer.unwritten.is_empty() && !writer.broken {
            match self.write_some(writer) {
                Ok(written) => writer.advance(written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    writer.full = true;
                    return self.full.notify_one();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The process is gone or going; its exit says the rest.
                Err(_) => writer.broken = true,
            }
        }
        if writer.broken {
            writer.unwritten.clear();
        }
    }

    fn write_some(&self, writer: &Writer) -> io::Result<usize> {
        if let [only] = writer.unwritten.as_slices().0
            && writer.unwritten.len() == 1
        {
            return self.stream.try_write(only);
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut used = 0;
        for (slice, bytes) in slices.iter_mut().zip(&writer.unwritten) {
            *slice = IoSlice::new(bytes);
            used += 1;
        }
        self.stream.try_write_vectored(&slices[..used])
    }

    /// Goes on whenever the socket has room again. Ends with the task that runs it.
    pub async fn attend(&self, speller: &impl Speller, mut report: impl FnMut(Vec<Unsent>)) {
        loop {
            self.full.notified().await;
            if self.stream.writable().await.is_err() {
                return;
            }
            {
                let mut writer = self.writer.lock().expect("no code panics here");
                writer.full = false;
                self.write(&mut writer);
            }
            let unsent = self.flush(speller);
            if !unsent.is_empty() {
                report(unsent);
            }
        }
    }
}

impl Writer {
    fn encode(&mut self, encoder: Encoder, message: &ToWorker) -> Result<(), EncodeError> {
        let tail = encoder.encode_head(message, &mut self.buffer)?;
        if tail.body.len() <= COPIED_UP_TO {
            self.buffer.extend_from_slice(&tail.body);
        } else {
            self.cut();
            self.unwritten.push_back(tail.body);
        }
        self.buffer.extend_from_slice(tail.end);
        Ok(())
    }

    fn cut(&mut self) {
        if !self.buffer.is_empty() {
            self.unwritten.push_back(self.buffer.split().freeze());
        }
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(first) = self.unwritten.front_mut() {
            if written < first.len() {
                return first.advance(written);
            }
            written -= first.len();
            self.unwritten.pop_front();
        }
    }
}
