//! What a peer can do wrong. Every variant ends the connection: after it, no byte of the stream
//! can be trusted, because nobody knows where the next message starts or what it means.

use crate::{Wire, wire::PROTOCOL_VERSION};

/// A breach of the protocol by the other side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("a line is longer than the limit of {limit} bytes")]
    LineTooLong { limit: u32 },
    #[error("a frame claims {length} bytes, the limit is {limit}")]
    FrameTooLong { length: u32, limit: u32 },
    #[error("a frame claims {length} bytes, its header alone has 20")]
    FrameTooShort { length: u32 },
    #[error("a {kind} frame claims {meta} bytes of meta where {room} follow its header")]
    MetaTooLong { kind: &'static str, meta: u32, room: u32 },
    #[error("a line is not UTF-8")]
    NotUtf8,
    #[error("bad JSON: {why}")]
    BadJson { why: String },
    #[error("bad {kind} message: {why}")]
    BadMessage { kind: &'static str, why: String },
    #[error("the first message must be ready, it was {got:?}")]
    ReadyExpected { got: String },
    #[error("{kind} may only be the first message of a stream")]
    OpenedTwice { kind: &'static str },
    #[error("the worker speaks protocol {protocol}, this server speaks {PROTOCOL_VERSION}")]
    UnsupportedProtocol { protocol: u32 },
}

impl Violation {
    /// A stable name, used in metrics and in the golden vectors.
    pub fn code(&self) -> &'static str {
        match self {
            Violation::LineTooLong { .. } => "line_too_long",
            Violation::FrameTooLong { .. } => "frame_too_long",
            Violation::FrameTooShort { .. } => "frame_too_short",
            Violation::MetaTooLong { .. } => "meta_too_long",
            Violation::NotUtf8 => "not_utf8",
            Violation::BadJson { .. } => "bad_json",
            Violation::BadMessage { .. } => "bad_message",
            Violation::ReadyExpected { .. } => "ready_expected",
            Violation::OpenedTwice { .. } => "opened_twice",
            Violation::UnsupportedProtocol { .. } => "unsupported_protocol",
        }
    }

    /// Tells text that is not JSON from JSON that does not fit the message.
    pub(crate) fn from_json(kind: &'static str, error: &serde_json::Error) -> Violation {
        let why = shortened(&error.to_string());
        match error.classify() {
            serde_json::error::Category::Data => Violation::BadMessage { kind, why },
            _ => Violation::BadJson { why },
        }
    }

    pub(crate) fn bad_message(kind: &'static str, why: impl Into<String>) -> Violation {
        Violation::BadMessage { kind, why: why.into() }
    }

    pub(crate) fn missing(kind: &'static str, key: &str, wire: Wire) -> Violation {
        Violation::bad_message(kind, format!("{key} is missing ({wire} wire)"))
    }
}

/// What a peer wrote may be quoted in an error, but not at any length.
pub(crate) fn shortened(text: &str) -> String {
    const KEPT: usize = 200;
    match text.char_indices().nth(KEPT) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
