//! Bodies: the caller's arguments, results and chunks. They pass through as they came.

use bytes::{Bytes, BytesMut};

use crate::line;

/// What the bytes of a body are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Encoding {
    /// JSON text. Empty means that there is no value: no arguments, or `null` as a result.
    #[default]
    Json,
    /// Any bytes; without a content type they are `application/octet-stream`.
    Raw { content_type: Option<String> },
}

/// An opaque body. Cloning it does not copy the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Body {
    pub bytes: Bytes,
    pub encoding: Encoding,
}

impl Body {
    /// No value at all.
    pub fn empty() -> Body {
        Body::default()
    }

    pub fn json(text: impl Into<Bytes>) -> Body {
        Body { bytes: text.into(), encoding: Encoding::Json }
    }

    pub fn raw(bytes: impl Into<Bytes>, content_type: Option<String>) -> Body {
        Body { bytes: bytes.into(), encoding: Encoding::Raw { content_type } }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn is_raw(&self) -> bool {
        matches!(self.encoding, Encoding::Raw { .. })
    }

    /// What an HTTP answer with this body calls it.
    pub fn content_type(&self) -> &str {
        match &self.encoding {
            Encoding::Json => "application/json",
            Encoding::Raw { content_type } => {
                content_type.as_deref().unwrap_or("application/octet-stream")
            }
        }
    }

    /// The body as a value: an empty JSON body is `null`.
    pub fn value(&self) -> Bytes {
        match self.encoding {
            Encoding::Json if self.bytes.is_empty() => Bytes::from_static(b"null"),
            _ => self.bytes.clone(),
        }
    }

    /// The body as JSON text wherever it goes: bytes are an object of `$bytes` in base64.
    pub fn to_json(&self) -> Bytes {
        if !self.is_raw() {
            return self.value();
        }
        let mut out = BytesMut::new();
        line::write_raw(self, &mut out).expect("a content type is text, which JSON can spell");
        out.freeze()
    }
}
