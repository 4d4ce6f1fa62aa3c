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

    /// Room to read into. It grows with what was received, by doubling, and never by what a header
    /// claims: a claim alone costs the sender nothing.
    pub(crate) fn space(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < SCARCE {
            self.buffer.reserve(READ);
        }
        &mut self.buffer
    }

    /// The length of the first line, its newline included. A line that was found has to be taken or
    /// skipped before the next is looked for.
    pub(crate) fn line(&mut self) -> Option<usize> {
        let mut rest = &self.buffer[self.scanned..];
        let passed = rest.skip_until(b'\n').expect("a slice is always readable");
        let end = self.scanned + passed;
        let found = passed > 0 && self.buffer[end - 1] == b'\n';
        self.scanned = end;
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
