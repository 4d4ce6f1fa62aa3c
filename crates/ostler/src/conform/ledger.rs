//! What the worker was asked and what it answered: one entry per id, and every breach of the rules
//! about ids that shows on the way.
//!
//! It knows no streams and no time, so it may be told of messages in any order.

use std::collections::BTreeMap;

use ostler_proto::{Body, FromWorker, WorkerError};

use super::finding::Fault;

/// More than this is not worth telling.
const OFFENCES_KEPT: usize = 4;
/// Characters of a result that are shown.
const SHOWN: usize = 60;

#[derive(Debug, Clone)]
pub(super) enum Terminal {
    Complete(Body),
    Error(WorkerError),
    Cancelled { started: bool },
}

impl Terminal {
    pub fn kind(&self) -> &'static str {
        match self {
            Terminal::Complete(_) => "complete",
            Terminal::Error(_) => "error",
            Terminal::Cancelled { .. } => "cancelled",
        }
    }
}

impl std::fmt::Display for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Terminal::Complete(body) => {
                write!(f, "complete {}", brief(&String::from_utf8_lossy(&body.to_json())))
            }
            Terminal::Error(error) => write!(f, "error {}: {}", error.code, brief(&error.message)),
            Terminal::Cancelled { started: true } => f.write_str("cancelled"),
            Terminal::Cancelled { started: false } => f.write_str("cancelled, not started"),
        }
    }
}

/// The beginning of a text.
pub(super) fn brief(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[derive(Debug, Default)]
struct Entry {
    chunks: u32,
    terminal: Option<Terminal>,
    /// It was cancelled but never sent: an early cancel may be answered, and only as not started.
    unsent: bool,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    last_id: u64,
    entries: BTreeMap<u64, Entry>,
    offences: Vec<String>,
}

impl Ledger {
    /// A new id, above all others.
    pub fn open(&mut self) -> u64 {
        self.open_at(self.last_id + 1)
    }

    pub fn open_at(&mut self, id: u64) -> u64 {
        self.last_id = id;
        self.entries.insert(id, Entry::default());
        id
    }

    /// An id that is cancelled without ever being used.
    pub fn open_unsent(&mut self) -> u64 {
        let id = self.last_id + 1_000_000;
        self.entries.insert(id, Entry { unsent: true, ..Entry::default() });
        id
    }

    pub fn terminal(&self, id: u64) -> Option<&Terminal> {
        self.entries.get(&id)?.terminal.as_ref()
    }

    pub fn chunks(&self, id: u64) -> u32 {
        self.entries.get(&id).map_or(0, |entry| entry.chunks)
    }

    /// The first breach since this was last asked.
    pub fn take_offence(&mut self) -> Option<Fault> {
        let offences = std::mem::take(&mut self.offences);
        offences.into_iter().next().map(Fault::failed)
    }

    pub fn note(&mut self, message: &FromWorker) {
        match message {
            FromWorker::Message { id, seq, .. } => self.on_chunk(*id, *seq),
            FromWorker::Complete { id, chunks, body } => {
                self.on_terminal(*id, *chunks, Terminal::Complete(body.clone()));
            }
            FromWorker::Error { id, chunks, error } => {
                self.on_terminal(*id, *chunks, Terminal::Error((**error).clone()));
            }
            FromWorker::Cancelled { id, chunks, started, .. } => {
                self.on_terminal(*id, *chunks, Terminal::Cancelled { started: *started });
            }
            FromWorker::Session { id, .. } => self.on_aside(*id, "session"),
            FromWorker::Progress { id, .. } => self.on_aside(*id, "progress"),
            _ => {}
        }
    }

    fn on_chunk(&mut self, id: u64, seq: Option<u32>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return self.offend(format!("a chunk for request {id}, which was never sent"));
        };
        let expected = entry.chunks;
        entry.chunks += 1;
        if entry.terminal.is_some() {
            self.offend(format!("a chunk for request {id} after its terminal message"));
        } else if seq.is_some_and(|seq| seq != expected) {
            let seq = seq.unwrap_or_default();
            self.offend(format!("chunk {expected} of request {id} says seq {seq}"));
        }
    }

    fn on_terminal(&mut self, id: u64, chunks: Option<u32>, terminal: Terminal) {
        let kind = terminal.kind();
        let Some(entry) = self.entries.get_mut(&id) else {
            return self.offend(format!("{kind} for request {id}, which was never sent"));
        };
        let sent = entry.chunks;
        let premature = entry.unsent && !matches!(terminal, Terminal::Cancelled { started: false });
        if entry.terminal.is_some() {
            return self.offend(format!("a second terminal message for request {id}: {kind}"));
        }
        entry.terminal = Some(terminal);
        if premature {
            self.offend(format!("{kind} for request {id}, which was cancelled and never sent"));
        } else if chunks.is_some_and(|chunks| chunks != sent) {
            let said = chunks.unwrap_or_default();
            self.offend(format!("{kind} of request {id} says chunks {said}, there were {sent}"));
        }
    }

    fn on_aside(&mut self, id: u64, kind: &str) {
        match self.entries.get(&id) {
            None => self.offend(format!("{kind} for request {id}, which was never sent")),
            Some(entry) if entry.terminal.is_some() => {
                self.offend(format!("{kind} for request {id} after its terminal message"));
            }
            Some(_) => {}
        }
    }

    fn offend(&mut self, offence: String) {
        if self.offences.len() < OFFENCES_KEPT {
            self.offences.push(offence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(id: u64, seq: u32) -> FromWorker {
        FromWorker::Message { id, seq: Some(seq), body: Body::empty() }
    }

    fn complete(id: u64, chunks: Option<u32>) -> FromWorker {
        FromWorker::Complete { id, chunks, body: Body::empty() }
    }

    fn offence(messages: &[FromWorker]) -> Option<String> {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.open(), 1);
        messages.iter().for_each(|message| ledger.note(message));
        ledger.take_offence().map(|fault| match fault {
            Fault::Failed { found, .. } | Fault::Skipped(found) => found,
        })
    }

    #[test]
    fn chunks_and_one_terminal_message_are_in_order() {
        assert_eq!(offence(&[chunk(1, 0), chunk(1, 1), complete(1, Some(2))]), None);
        assert_eq!(offence(&[complete(1, None)]), None);
    }

    #[test]
    fn each_breach_is_named() {
        let cases: [(&[FromWorker], &str); 6] = [
            (&[chunk(2, 0)], "a chunk for request 2, which was never sent"),
            (&[complete(7, None)], "complete for request 7, which was never sent"),
            (&[chunk(1, 1)], "chunk 0 of request 1 says seq 1"),
            (&[complete(1, Some(1))], "complete of request 1 says chunks 1, there were 0"),
            (
                &[complete(1, None), complete(1, None)],
                "a second terminal message for request 1: complete",
            ),
            (&[complete(1, None), chunk(1, 0)], "a chunk for request 1 after its terminal message"),
        ];
        for (messages, expected) in cases {
            assert_eq!(offence(messages).as_deref(), Some(expected));
        }
    }

    #[test]
    fn an_early_cancel_may_be_answered_only_as_not_started() {
        for (started, allowed) in [(false, true), (true, false)] {
            let mut ledger = Ledger::default();
            let id = ledger.open_unsent();
            ledger.note(&FromWorker::Cancelled { id, chunks: None, started, reason: None });
            assert_eq!(ledger.take_offence().is_none(), allowed, "started: {started}");
        }
    }
}
