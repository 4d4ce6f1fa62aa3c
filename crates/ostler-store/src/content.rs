//! Bytes and what they are: a program, or the state that a worker saved.

use bytes::Bytes;

/// Kept as it was given and never looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// `application/json` for JSON.
    pub content_type: Box<str>,
    pub bytes: Bytes,
}

/// What a worker remembered of a session when it had to leave.
pub type Saved = Content;

impl Content {
    pub fn new(content_type: impl Into<Box<str>>, bytes: impl Into<Bytes>) -> Self {
        Content { content_type: content_type.into(), bytes: bytes.into() }
    }

    /// In memory of its own: a slice of a request's body would keep the whole body alive.
    pub(crate) fn detached(&self) -> Self {
        Content {
            content_type: self.content_type.clone(),
            bytes: Bytes::copy_from_slice(&self.bytes),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.content_type.len() as u64 + self.bytes.len() as u64
    }
}
