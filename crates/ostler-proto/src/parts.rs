//! The neutral form between the two wires and the typed messages. A line is a frame spelled in
//! JSON: both are read into [`Parts`] and written from a [`Draft`], so that a message means the
//! same on either wire and each is mapped to its type in one place.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::{
    Body, EncodeError, Violation, Wire,
    kind::{Kind, RAW},
    meta::{ContentMeta, Meta},
};

/// A message that travels on a worker's stream: [`crate::ToWorker`] or [`crate::FromWorker`].
pub trait Message: Codec {}

/// How a direction's messages are made from, and turned into, the neutral form.
pub trait Codec: Sized {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn from_parts(parts: Parts<'_>) -> Result<Self, Violation>;

    #[doc(hidden)]
    fn unknown(kind: String) -> Self;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn draft(&self, wire: Wire) -> Result<Draft<'_>, EncodeError>;

    /// The wire of whatever follows this message, if it says so.
    #[doc(hidden)]
    fn wire_after(&self) -> Option<Wire>;
}

/// The bytes of one message. Bodies of long ones share the buffer that they were read into.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit<'a> {
    Brief(&'a [u8]),
    Long(&'a Bytes),
}

/// Bodies up to this size are copied: cheaper than sharing, and a small body that somebody keeps
/// does not keep a whole read buffer with it.
pub(crate) const COPIED_UP_TO: usize = 4 << 10;

impl<'a> Unit<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Unit::Brief(bytes) => bytes,
            Unit::Long(bytes) => bytes,
        }
    }

    fn keep(self, part: &[u8]) -> Bytes {
        match self {
            Unit::Long(bytes) if part.len() > COPIED_UP_TO => bytes.slice_ref(part),
            _ => Bytes::copy_from_slice(part),
        }
    }
}

/// A message's body before it has an owner.
#[derive(Debug)]
pub(crate) enum Content<'a> {
    Absent,
    /// As it stands in the unit; JSON or raw by the flag.
    Inside(&'a [u8]),
    /// Raw bytes that the line held as base64.
    Decoded {
        bytes: Vec<u8>,
        content_type: Option<String>,
    },
}

/// One message as read, its fields sorted but not yet typed.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) unit: Unit<'a>,
    pub(crate) wire: Wire,
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) code: u16,
    pub(crate) id: u64,
    pub(crate) a: u32,
    pub(crate) b: Option<u32>,
    /// A JSON object with the kind's rarer fields; on the NDJSON wire the line itself.
    pub(crate) meta: Option<&'a [u8]>,
    pub(crate) content: Content<'a>,
}

impl Parts<'_> {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The meta, or its defaults where there is none.
    pub(crate) fn meta<T: DeserializeOwned + Default>(&self) -> Result<T, Violation> {
        match self.meta {
            None => Ok(T::default()),
            Some(text) => self.parse(text),
        }
    }

    /// The meta of a kind that cannot do without.
    pub(crate) fn required_meta<T: DeserializeOwned>(&self) -> Result<T, Violation> {
        match self.meta {
            None => Err(Violation::missing(self.kind.name(), "meta", self.wire)),
            Some(text) => self.parse(text),
        }
    }

    fn parse<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T, Violation> {
        object_text(self.kind.name(), text)?;
        serde_json::from_slice(text).map_err(|e| Violation::from_json(self.kind.name(), &e))
    }

    /// The body, whose content type is in a meta of its own.
    pub(crate) fn body(self) -> Result<Body, Violation> {
        let content_type = match self.meta {
            Some(_) if self.has(RAW) => self.meta::<ContentMeta>()?.content_type,
            _ => None,
        };
        Ok(self.body_typed(content_type))
    }

    /// The body, whose content type was found in the kind's meta.
    pub(crate) fn body_typed(self, content_type: Option<String>) -> Body {
        let raw = self.has(RAW);
        match self.content {
            Content::Absent => Body::empty(),
            Content::Inside(part) if raw => Body::raw(self.unit.keep(part), content_type),
            Content::Inside(part) => Body::json(self.unit.keep(part)),
            Content::Decoded { bytes, content_type } => Body::raw(bytes, content_type),
        }
    }
}

/// Serde would also read a struct from an array; the protocol has objects only.
pub(crate) fn object_text(kind: &'static str, text: &[u8]) -> Result<(), Violation> {
    if text.trim_ascii_start().first() == Some(&b'{') {
        return Ok(());
    }
    match crate::check_json(text) {
        Ok(()) => Err(Violation::bad_message(kind, "not a JSON object")),
        Err(e) => Err(Violation::BadJson { why: crate::violation::shortened(&e.why) }),
    }
}

/// A message about to be written.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) code: u16,
    pub(crate) id: u64,
    pub(crate) a: u32,
    pub(crate) b: Option<u32>,
    pub(crate) meta: Meta<'a>,
    pub(crate) body: Option<&'a Body>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(kind: Kind) -> Draft<'a> {
        Draft { kind, flags: 0, code: 0, id: 0, a: 0, b: None, meta: Meta::None, body: None }
    }

    pub(crate) fn id(mut self, id: u64) -> Self {
        self.id = id;
        self
    }

    pub(crate) fn flag(mut self, flag: u8, set: bool) -> Self {
        self.flags |= if set { flag } else { 0 };
        self
    }

    pub(crate) fn number(mut self, b: Option<u32>) -> Self {
        self.b = b;
        self
    }

    pub(crate) fn meta(mut self, meta: Meta<'a>) -> Self {
        self.meta = meta;
        self
    }

    /// Adds the body and its flag; the content type is left to the caller's meta.
    pub(crate) fn body(mut self, body: &'a Body) -> Self {
        self.body = Some(body);
        let raw = self.kind.may_be_raw() && body.is_raw();
        self.flag(RAW, raw)
    }

    /// Adds the body with a meta that holds nothing but its content type.
    pub(crate) fn body_with_type(self, body: &'a Body, wire: Wire) -> Self {
        let meta = ContentMeta::for_wire(body, wire).map_or(Meta::None, Meta::Content);
        self.meta(meta).body(body)
    }
}
