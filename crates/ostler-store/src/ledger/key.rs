//! Idempotency: what was asked under which key, and what was answered.
//!
//! ```text
//!  begin ──Fresh──▶ the effect, with the key in `Asked` ──▶ finish (the answer is kept)
//!    │                                                └──refused──▶ abandon (the key is free)
//!    └── Replay · InFlight · Mismatch · Applied · Unknown
//! ```

use jiff::Timestamp;

/// Who asked for a change, and under which key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// `system` if empty.
    pub actor: String,
    /// The request that asked for it.
    pub request_id: Option<String>,
    pub reason: Option<String>,
    /// The effect and this mark of it are stored together.
    pub key: Option<Key>,
}

impl Asked {
    pub fn by(actor: impl Into<String>) -> Self {
        Asked { actor: actor.into(), ..Asked::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub caller: String,
    /// Method and path as matched, with its ids: `POST /api/jobs`.
    pub route: String,
    /// 1 to 255 printable characters.
    pub key: String,
}

/// What a key was found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Nobody used it: go on. It is in progress from now on.
    Fresh,
    /// Answer this again.
    Replay(Answer),
    /// The effect is stored, the answer is not: make it from the resource.
    Applied { resource: String },
    /// Somebody is at it.
    InFlight,
    /// It was used for something else.
    Mismatch,
    /// The server ended while somebody was at it, and what came of it is not in the ledger.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Those that belong to the answer: content type, location, …
    pub headers: Vec<(String, String)>,
    pub body: bytes::Bytes,
    pub at: Timestamp,
}
