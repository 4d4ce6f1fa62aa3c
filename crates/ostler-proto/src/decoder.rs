//! Bytes to typed messages, in whatever pieces they arrive.

use std::marker::PhantomData;

use bytes::BytesMut;

use crate::{
    FromWorker, Limits, Message, Violation, Wire, frame,
    inbox::Inbox,
    line::{self, Parsed},
    parts::{COPIED_UP_TO, Unit},
};

/// Reads one stream. The messages do not depend on how the bytes were split, and memory is bound
/// by the limits and by what was really received.
///
/// After a violation nothing more is read: [`Decoder::next`] repeats it.
#[derive(Debug)]
pub struct Decoder<M = FromWorker> {
    inbox: Inbox,
    wire: Wire,
    limits: Limits,
    opened: bool,
    violation: Option<Violation>,
    message: PhantomData<fn() -> M>,
}

impl Decoder<FromWorker> {
    /// For a fresh stream of a worker: its first message must be `ready` (or `control`, on a
    /// second connection). The wire that `ready` names is used for what follows it.
    pub fn opening(limits: Limits) -> Self {
        Decoder { opened: false, ..Decoder::new(Wire::Ndjson, limits) }
    }
}

impl<M: Message> Decoder<M> {
    /// For a stream that needs no opening: an inherited control stream, or the worker's side.
    pub fn new(wire: Wire, limits: Limits) -> Self {
        Decoder {
            inbox: Inbox::default(),
            wire,
            limits,
            opened: true,
            violation: None,
            message: PhantomData,
        }
    }

    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// What follows is spelled in `wire`. Needed after `control` only: `ready` switches by itself.
    pub fn set_wire(&mut self, wire: Wire) {
        self.wire = wire;
    }

    /// Where to read into next, with room for a useful read: append what the stream gave.
    pub fn space(&mut self) -> &mut BytesMut {
        self.inbox.space()
    }

    /// Appends bytes that were read elsewhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.inbox.extend(bytes);
    }

    /// Bytes received that are not yet a message. Above zero at the end of a stream, the peer died
    /// in the middle of writing one.
    pub fn pending(&self) -> usize {
        self.inbox.bytes().len()
    }

    /// The next whole message, if it is there.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<M>, Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        let next = match self.wire {
            Wire::Binary => self.next_frame(),
            Wire::Ndjson => self.next_line(),
        };
        if let Err(violation) = &next {
            self.violation = Some(violation.clone());
            self.inbox.clear();
        }
        next
    }

    fn next_frame(&mut self) -> Result<Option<M>, Violation> {
        let bytes = self.inbox.bytes();
        match frame::announced(bytes, &self.limits)? {
            Some(length) if length <= bytes.len() => self.decode(length, length).map(Some),
            _ => Ok(None),
        }
    }

    fn next_line(&mut self) -> Result<Option<M>, Violation> {
        let limit = self.limits.max_line;
        loop {
            let Some(end) = self.inbox.line() else {
                return match self.inbox.bytes().len() > limit as usize {
                    true => Err(Violation::LineTooLong { limit }),
                    false => Ok(None),
                };
            };
            let content = end - 1;
            if content > limit as usize {
                return Err(Violation::LineTooLong { limit });
            }
            if self.inbox.bytes()[..content].trim_ascii().is_empty() {
                self.inbox.skip(end);
                continue;
            }
            return self.decode(content, end).map(Some);
        }
    }

    /// Reads the message in the first `content` of the `length` bytes that it takes up.
    fn decode(&mut self, content: usize, length: usize) -> Result<M, Violation> {
        let message: M = if content <= COPIED_UP_TO {
            let message = self.read(Unit::Brief(&self.inbox.bytes()[..content]))?;
            self.inbox.skip(length);
            message
        } else {
            let unit = self.inbox.take(length).slice(..content);
            self.read(Unit::Long(&unit))?
        };
        self.opened = true;
        if let Some(wire) = message.wire_after() {
            self.wire = wire;
        }
        Ok(message)
    }

    fn read(&self, unit: Unit<'_>) -> Result<M, Violation> {
        let parsed = match self.wire {
            Wire::Binary => frame::parse(unit)?,
            Wire::Ndjson => line::parse(unit)?,
        };
        match parsed {
            Parsed::Known(parts) if parts.kind.opens_a_stream() == self.opened => {
                let kind = parts.kind.name();
                Err(match self.opened {
                    true => Violation::OpenedTwice { kind },
                    false => Violation::ReadyExpected { got: kind.to_owned() },
                })
            }
            Parsed::Known(parts) => M::from_parts(parts),
            Parsed::Unknown(got) if !self.opened => Err(Violation::ReadyExpected { got }),
            Parsed::Unknown(kind) => Ok(M::unknown(kind)),
        }
    }
}
