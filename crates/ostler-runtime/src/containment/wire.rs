//! The messages between the server, the root shim, the worker shims and the fork server.
//!
//! Every message has the same fixed layout, so that the shims need no allocation and the fork
//! server can read it with one `struct.unpack`:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | kind, u32 little endian |
//! | 4..8 | flags, u32 little endian |
//! | 8..40 | four numbers, i64 little endian |
//! | 40..44 | length of the text, u32 little endian |
//! | 44..172 | text |
//!
//! Descriptors travel beside it, in an order that each kind fixes. This module knows bytes, not
//! what anybody does with them.

use std::io;
use std::os::fd::BorrowedFd;

use super::sys::{self, Fds};

pub const MESSAGE_SIZE: usize = 44 + TEXT_ROOM;
pub const TEXT_ROOM: usize = 128;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// What a message says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Kind { $($(#[$doc])* $name = $number,)* }

        impl Kind {
            fn from_number(number: u32) -> Option<Kind> {
                match number { $($number => Some(Kind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// Server to root shim, first: what to build. Descriptors: server pidfd, then, if `CGROUP` is
    /// set, the cgroup in which to make the pool's. Text: the name of the pool's cgroup.
    Configure = 1,
    /// Server to root shim. Descriptors: specification, report, stdout, stderr, then data,
    /// control and cgroup as the flags say. Number: that of the cgroup. Text: the worker's name.
    Spawn = 2,
    /// Server to root shim. Descriptors: specification, fork server channel, stdout, stderr.
    StartForkServer = 3,
    /// Root shim to server: what could be built. Flags: that. Numbers: the errno of namespaces and
    /// of the cgroup that could not. Descriptor: the root shim's pidfd.
    Configured = 10,
    /// Worker shim to server. Descriptor: the shim's own pidfd.
    ShimStarted = 20,
    /// Worker shim to server. Number: the worker's host pid. Descriptor: the worker's pidfd.
    WorkerForked = 21,
    /// Worker shim to server: the program has replaced the forked process.
    Running = 22,
    /// Anyone on the way to a program: it could not be run. Numbers: stage, errno.
    Refused = 23,
    /// Worker shim to server. Numbers: wait status, user and system microseconds, peak KiB.
    Exited = 24,
    /// Worker shim to server: nothing is left below it.
    Clean = 25,
    /// Root shim to server: the worker shim is dead. Sent also after `Clean`, as a matter of course.
    ShimDeparted = 26,
    /// Root shim to server: whatever the departed shim left was killed and reaped.
    Swept = 27,
    /// Server to worker shim: kill everything now.
    Sweep = 30,
    /// Fork server to root shim: a worker shim that it forked. Descriptors: the shim's pidfd,
    /// its report socket. Number: that of the worker's cgroup.
    Register = 40,
    /// Server to fork server; as `Spawn`.
    Fork = 50,
    /// Fork server to server: preloaded. Numbers: threads, open descriptors beyond the known.
    ForkServerReady = 51,
    /// Fork server to server: it cannot serve. Text: why.
    ForkServerRefused = 52,
    /// Root shim to server: the fork server runs. Descriptor: its pidfd.
    ForkServerForked = 53,
    /// Root shim to server, on the fork server's channel. Number: wait status.
    ForkServerExited = 54,
}

/// Flags of `Spawn` and `Fork`: which optional descriptors follow.
pub const DATA: u32 = 1;
pub const CONTROL: u32 = 1 << 1;
pub const CGROUP: u32 = 1 << 2;
/// Flag of `Configure` and `Fork`: a PID namespace per worker is wanted.
pub const NAMESPACE: u32 = 1 << 3;
/// Flag of `Configured` and `Fork`: the namespace needs a user namespace around it.
pub const USER_NAMESPACE: u32 = 1 << 4;
/// Flag of `Configured` and `Fork`: the namespace has its own /proc.
pub const OWN_PROC: u32 = 1 << 5;

#[derive(Clone, Debug)]
pub struct Message {
    pub kind: Kind,
    pub flags: u32,
    pub numbers: [i64; 4],
    text: [u8; TEXT_ROOM],
    text_length: usize,
}

impl Message {
    pub fn new(kind: Kind) -> Message {
        Message { kind, flags: 0, numbers: [0; 4], text: [0; TEXT_ROOM], text_length: 0 }
    }

    pub fn flags(mut self, flags: u32) -> Message {
        self.flags = flags;
        self
    }

    pub fn numbers(mut self, numbers: &[i64]) -> Message {
        self.numbers[..numbers.len()].copy_from_slice(numbers);
        self
    }

    /// Cuts what does not fit: texts are labels, never data.
    pub fn text(mut self, text: &[u8]) -> Message {
        self.text_length = text.len().min(TEXT_ROOM - 1);
        self.text[..self.text_length].copy_from_slice(&text[..self.text_length]);
        self
    }

    pub fn text_bytes(&self) -> &[u8] {
        &self.text[..self.text_length]
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    pub fn encode(&self) -> [u8; MESSAGE_SIZE] {
        let mut bytes = [0; MESSAGE_SIZE];
        bytes[0..4].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.flags.to_le_bytes());
        for (slot, number) in bytes[8..40].chunks_exact_mut(8).zip(self.numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        bytes[40..44].copy_from_slice(&(self.text_length as u32).to_le_bytes());
        bytes[44..].copy_from_slice(&self.text);
        bytes
    }

    /// None for bytes that no party of this version sends.
    pub fn decode(bytes: &[u8]) -> Option<Message> {
        let bytes: &[u8; MESSAGE_SIZE] = bytes.try_into().ok()?;
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let mut message = Message::new(Kind::from_number(u32_at(0))?).flags(u32_at(4));
        for (number, slot) in message.numbers.iter_mut().zip(bytes[8..40].chunks_exact(8)) {
            *number = i64::from_le_bytes(slot.try_into().expect("8 bytes"));
        }
        message.text_length = (u32_at(40) as usize).min(TEXT_ROOM - 1);
        message.text.copy_from_slice(&bytes[44..]);
        Some(message)
    }

    pub fn send(&self, socket: BorrowedFd<'_>, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        sys::send(socket, &self.encode(), fds)
    }
}

/// What was found on a socket.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "shims do not allocate")]
pub enum Received {
    Message(Message, Fds),
    /// Not a message of this version; ignored by all.
    Unknown,
    Nothing,
    Closed,
}

/// Takes one message without waiting. Errors other than "nothing there" count as the end.
pub fn receive(socket: BorrowedFd<'_>) -> Received {
    let mut bytes = [0; MESSAGE_SIZE];
    match sys::receive(socket, &mut bytes) {
        Ok((0, _)) => Received::Closed,
        Ok((length, fds)) => Message::decode(&bytes[..length])
            .map_or(Received::Unknown, |message| Received::Message(message, fds)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Received::Nothing,
            _ => Received::Closed,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_own_encoding() {
        let sent = Message::new(Kind::Exited)
            .flags(CONTROL | CGROUP)
            .numbers(&[-1, 2, i64::MAX])
            .text(b"py-3");
        let read = Message::decode(&sent.encode()).expect("a known kind");
        assert_eq!(read.kind, Kind::Exited);
        assert_eq!(read.flags, CONTROL | CGROUP);
        assert_eq!(read.numbers, [-1, 2, i64::MAX, 0]);
        assert_eq!(read.text_bytes(), b"py-3");
    }

    #[test]
    fn unknown_kinds_and_short_messages_are_not_decoded() {
        let mut bytes = Message::new(Kind::Clean).encode();
        assert!(Message::decode(&bytes[..MESSAGE_SIZE - 1]).is_none());
        bytes[0] = 0xEE;
        assert!(Message::decode(&bytes).is_none());
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let message = Message::new(Kind::Spawn).text(&[b'x'; 500]);
        assert_eq!(message.text_bytes().len(), TEXT_ROOM - 1);
    }
}
