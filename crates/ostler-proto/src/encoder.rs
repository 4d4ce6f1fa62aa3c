//! Typed messages to bytes.

use bytes::{Bytes, BytesMut};

use crate::{InvalidJson, Limits, Message, Wire, frame, line, parts::Draft};

/// Writes messages in one wire's spelling.
#[derive(Debug, Clone, Copy)]
pub struct Encoder {
    wire: Wire,
    limits: Limits,
}

/// What follows the head on the wire: the body, not copied, and what closes the message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    pub body: Bytes,
    pub end: &'static [u8],
}

impl Tail {
    pub fn is_empty(&self) -> bool {
        self.body.is_empty() && self.end.is_empty()
    }

    pub fn len(&self) -> usize {
        self.body.len() + self.end.len()
    }

    pub(crate) fn end_of_line(body: Bytes) -> Tail {
        Tail { body, end: b"}\n" }
    }
}

/// Why a message cannot be written. Nothing of it was: the stream is as good as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("the message has {length} bytes, the limit of this stream is {limit}")]
    TooLong { length: u64, limit: u64 },
    #[error("the payload is {0}")]
    InvalidJson(#[from] InvalidJson),
    #[error("this query needs its function's name, an index does not reach it")]
    FunctionNeedsName,
    #[error("a message of the unknown kind {kind:?} cannot be written")]
    UnknownKind { kind: String },
    #[error("the message does not fit into JSON: {why}")]
    Unwritable { why: String },
}

impl From<serde_json::Error> for EncodeError {
    fn from(error: serde_json::Error) -> Self {
        EncodeError::Unwritable { why: error.to_string() }
    }
}

impl Encoder {
    pub fn new(wire: Wire, limits: Limits) -> Encoder {
        Encoder { wire, limits }
    }

    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Appends the whole message to `out`, its body copied. Right for small ones.
    pub fn encode<M: Message>(&self, message: &M, out: &mut BytesMut) -> Result<(), EncodeError> {
        let tail = self.encode_head(message, out)?;
        out.extend_from_slice(&tail.body);
        out.extend_from_slice(tail.end);
        Ok(())
    }

    /// Appends everything before the body to `head`; the tail has to be written right behind it.
    pub fn encode_head<M: Message>(
        &self,
        message: &M,
        head: &mut BytesMut,
    ) -> Result<Tail, EncodeError> {
        let start = head.len();
        let written = self.write(&message.draft(self.wire)?, head);
        if written.is_err() {
            head.truncate(start);
        }
        written
    }

    fn write(&self, draft: &Draft<'_>, head: &mut BytesMut) -> Result<Tail, EncodeError> {
        match self.wire {
            Wire::Binary if !draft.kind.opens_a_stream() => frame::write(draft, &self.limits, head),
            _ => line::write(draft, &self.limits, head),
        }
    }
}
