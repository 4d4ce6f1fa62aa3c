//! The bytes that were received and not yet read as messages. It finds where a unit (a line, a
//! frame) ends and hands it out; it does not know what is inside one.

use std::io::BufRead;

use bytes::{Buf, Bytes, BytesMut};

/// The usual room for one read.
const READ: usize = 64 << 10;
/// Less room than this is not worth a system call.
const SCARCE: usize = 4 << 10;
/// A buffer that grew beyond this for one message is given away with it.
const KEPT: usize = 256 << 10;

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    buffer: BytesMut,
    /// Bytes from the start in which no newline was found.
    scanned: usize,
}

impl Inbox {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(crate) fn clear(&mut self) {
        *self = Inbox::default();
    }

    /// Room to read into. A message of `expected` bytes gets the room it still needs, but never
    /// more than what was really received for it: a claim alone costs the sender nothing.
    pub(crate) fn space(&mut self, expected: usize) -> &mut BytesMut {
        let received = self.buffer.len();
        let missing = expected.saturating_sub(received);
        let room = self.buffer.capacity() - received;
        if room < missing.clamp(SCARCE, READ) {
            let wanted = missing.min(received).max(READ);
            self.buffer.reserve(wanted);
        }
        &mut self.buffer
    }

    /// The length of the first line, its newline included.
    pub(crate) fn line(&mut self) -> Option<usize> {
        let mut rest = &self.buffer[self.scanned..];
        let passed = rest.skip_until(b'\n').expect("a slice is always readable");
        let end = self.scanned + passed;
        let found = passed > 0 && self.buffer[end - 1] == b'\n';
        self.scanned = if found { 0 } else { end };
        found.then_some(end)
    }

    pub(crate) fn skip(&mut self, length: usize) {
        self.scanned = 0;
        self.buffer.advance(length);
    }

    /// Takes the first `length` bytes without copying them.
    pub(crate) fn take(&mut self, length: usize) -> Bytes {
        self.scanned = 0;
        let unit = self.buffer.split_to(length).freeze();
        if length > KEPT {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        unit
    }
}
