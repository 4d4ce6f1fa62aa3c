//! The NDJSON wire: one JSON object per line, with the same content as a frame.

use std::{borrow::Cow, fmt::Write};

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Body, EncodeError, Encoding, Limits, Tail, Violation, Wire, base64, check_json,
    json::{id, on_one_line, present},
    kind::{FAILED, GRACEFUL, IdKey, Kind, NO_INDEX, NOT_STARTED, NumberKey, RAW, STREAM},
    meta::Meta,
    parts::{Content, Draft, Parts, Unit, object_text},
    violation::shortened,
};

/// A message as far as it can be read without knowing its direction.
#[derive(Debug)]
pub(crate) enum Parsed<'a> {
    Known(Parts<'a>),
    Unknown(String),
}

/// The keys that stand for the header of a frame, and the bodies as text. One pass over the line
/// finds them, whatever the kind; only kinds with rarer keys need a second.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default, deserialize_with = "id")]
    request_id: Option<u64>,
    #[serde(default, deserialize_with = "id")]
    call_id: Option<u64>,
    #[serde(default, deserialize_with = "id")]
    nonce: Option<u64>,
    #[serde(borrow, default, deserialize_with = "present")]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    deadline_ms: Option<u32>,
    seq: Option<u32>,
    #[serde(alias = "n")]
    chunks: Option<u32>,
    bytes: Option<u32>,
    stream: Option<bool>,
    graceful: Option<bool>,
    started: Option<bool>,
}

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

/// Reads one line, without its newline.
pub(crate) fn parse(unit: Unit<'_>) -> Result<Parsed<'_>, Violation> {
    let text = std::str::from_utf8(unit.bytes()).map_err(|_| Violation::NotUtf8)?;
    object_text("line", text.as_bytes())?;
    let line: Line<'_> = match serde_json::from_str(text) {
        Ok(line) => line,
        Err(e) => return unknown_or(text, Violation::from_json("line", &e)),
    };
    match Kind::from_name(&line.kind) {
        None => Ok(Parsed::Unknown(shortened(&line.kind))),
        Some(kind) => Ok(Parsed::Known(line.into_parts(kind, unit)?)),
    }
}

/// Keys of a message from a later version may have other types: it is still merely unknown.
fn unknown_or(text: &str, violation: Violation) -> Result<Parsed<'_>, Violation> {
    let Ok(Tag { kind }) = serde_json::from_str(text) else {
        return Err(violation);
    };
    match (Kind::from_name(&kind), violation) {
        (None, _) => Ok(Parsed::Unknown(shortened(&kind))),
        (Some(kind), Violation::BadMessage { why, .. }) => {
            Err(Violation::bad_message(kind.name(), why))
        }
        (Some(_), other) => Err(other),
    }
}

impl<'a> Line<'a> {
    fn into_parts(self, kind: Kind, unit: Unit<'a>) -> Result<Parts<'a>, Violation> {
        Ok(Parts {
            unit,
            wire: Wire::Ndjson,
            kind,
            flags: self.flags(kind),
            code: NO_INDEX,
            id: self.id(kind)?,
            a: self.chunks.unwrap_or(0),
            b: self.number(kind),
            meta: self.meta(kind, unit),
            content: self.content(kind),
        })
    }

    fn flags(&self, kind: Kind) -> u8 {
        let (flag, set) = match kind {
            Kind::Query => (STREAM, self.stream == Some(true)),
            Kind::Shutdown => (GRACEFUL, self.graceful != Some(false)),
            Kind::Cancelled => (NOT_STARTED, self.started == Some(false)),
            Kind::CallResult => (FAILED, self.error.is_some()),
            _ => return 0,
        };
        if set { flag } else { 0 }
    }

    fn id(&self, kind: Kind) -> Result<u64, Violation> {
        let (key, id) = match kind.id_key() {
            IdKey::None => return Ok(0),
            IdKey::OptionalRequest => return Ok(self.request_id.unwrap_or(0)),
            IdKey::Request => ("requestId", self.request_id),
            IdKey::Call => ("callId", self.call_id),
            IdKey::Nonce => ("nonce", self.nonce),
        };
        id.ok_or_else(|| Violation::missing(kind.name(), key, Wire::Ndjson))
    }

    fn number(&self, kind: Kind) -> Option<u32> {
        match kind.number_key() {
            NumberKey::DeadlineMs => self.deadline_ms,
            NumberKey::Seq => self.seq,
            NumberKey::Chunks => self.chunks,
            NumberKey::Bytes => self.bytes,
            NumberKey::None => None,
        }
    }

    /// Kinds whose every key is in [`Line`] have no meta.
    fn meta(&self, kind: Kind, unit: Unit<'a>) -> Option<&'a [u8]> {
        match kind {
            Kind::Error | Kind::CallResult => self.error.map(|raw| raw.get().as_bytes()),
            Kind::Message | Kind::Complete | Kind::Progress => None,
            _ => Some(unit.bytes()),
        }
    }

    fn content(&self, kind: Kind) -> Content<'a> {
        let value = match kind.body_key() {
            Some("payload") => self.payload,
            Some("content") => self.content,
            Some("result") => self.result,
            _ => None,
        };
        let Some(value) = value else {
            return Content::Absent;
        };
        match kind.may_be_raw().then(|| raw_bytes(value.get())).flatten() {
            Some((bytes, content_type)) => Content::Decoded { bytes, content_type },
            None => Content::Inside(value.get().as_bytes()),
        }
    }
}

/// Raw bytes in JSON: an object of `$bytes` and perhaps `contentType`, and nothing else. What only
/// resembles that is an ordinary value, since a user's own data must not end a worker.
fn raw_bytes(text: &str) -> Option<(Vec<u8>, Option<String>)> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct RawBytes<'a> {
        #[serde(borrow, rename = "$bytes")]
        bytes: Cow<'a, str>,
        #[serde(rename = "contentType")]
        content_type: Option<String>,
    }

    let first_key = text.strip_prefix('{')?.trim_ascii_start();
    if !first_key.starts_with("\"$bytes\"") && !first_key.starts_with("\"contentType\"") {
        return None;
    }
    let raw: RawBytes<'_> = serde_json::from_str(text).ok()?;
    Some((base64::decode(raw.bytes.as_bytes())?, raw.content_type))
}

/// Appends a line to `out`, up to its JSON body if it has one; body and closing brace are the tail.
pub(crate) fn write(
    draft: &Draft<'_>,
    limits: &Limits,
    out: &mut BytesMut,
) -> Result<Tail, EncodeError> {
    let start = out.len();
    write_header(draft, out);
    write_meta(&draft.meta, out)?;
    let tail = write_body(draft, out)?;
    let newline = 1;
    let length = (out.len() - start + tail.body.len() + tail.end.len() - newline) as u64;
    let limit = u64::from(limits.max_line);
    match length > limit {
        true => Err(EncodeError::TooLong { length, limit }),
        false => Ok(tail),
    }
}

fn write_header(draft: &Draft<'_>, out: &mut BytesMut) {
    let (kind, id) = (draft.kind, draft.id);
    put(out, format_args!("{{\"type\":\"{}\"", kind.name()));
    match kind.id_key() {
        IdKey::Request => put(out, format_args!(",\"requestId\":\"{id}\"")),
        IdKey::OptionalRequest if id != 0 => put(out, format_args!(",\"requestId\":\"{id}\"")),
        IdKey::Call => put(out, format_args!(",\"callId\":\"{id}\"")),
        IdKey::Nonce => put(out, format_args!(",\"nonce\":\"{id}\"")),
        IdKey::OptionalRequest | IdKey::None => {}
    }
    if kind == Kind::Credit {
        put(out, format_args!(",\"chunks\":{}", draft.a));
    }
    if let Some(number) = draft.b {
        match kind.number_key() {
            NumberKey::DeadlineMs => put(out, format_args!(",\"deadlineMs\":{number}")),
            NumberKey::Seq => put(out, format_args!(",\"seq\":{number}")),
            NumberKey::Chunks => put(out, format_args!(",\"chunks\":{number}")),
            NumberKey::Bytes => put(out, format_args!(",\"bytes\":{number}")),
            NumberKey::None => {}
        }
    }
    match kind {
        Kind::Query if draft.flags & STREAM != 0 => put(out, format_args!(",\"stream\":true")),
        Kind::Shutdown => {
            let graceful = draft.flags & GRACEFUL != 0;
            put(out, format_args!(",\"graceful\":{graceful}"));
        }
        Kind::Cancelled if draft.flags & NOT_STARTED != 0 => {
            put(out, format_args!(",\"started\":false"));
        }
        _ => {}
    }
}

fn put(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a buffer in memory grows");
}

/// The meta's keys join those of the line, except that an error is a value of its own.
fn write_meta(meta: &Meta<'_>, out: &mut BytesMut) -> Result<(), EncodeError> {
    if matches!(meta, Meta::None) {
        return Ok(());
    }
    let own_value = matches!(meta, Meta::Error(_) | Meta::Problem(_));
    if own_value {
        out.put_slice(b",\"error\":");
    }
    let start = out.len();
    serde_json::to_writer(out.writer(), meta)?;
    flatten_newlines(&mut out[start..]);
    if own_value {
        return Ok(());
    }
    if out[start..] == *b"{}" {
        out.truncate(start);
    } else {
        out[start] = b',';
        out.truncate(out.len() - 1);
    }
    Ok(())
}

/// Text that was handed in as JSON (a schema, a problem) may have newlines between its tokens.
fn flatten_newlines(text: &mut [u8]) {
    for byte in text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn write_body(draft: &Draft<'_>, out: &mut BytesMut) -> Result<Tail, EncodeError> {
    let (body, key) = match (draft.body, draft.kind.body_key()) {
        (Some(body), Some(key)) if !body.is_empty() || draft.flags & RAW != 0 => (body, key),
        _ => return Ok(Tail::end_of_line(Bytes::new())),
    };
    put(out, format_args!(",\"{key}\":"));
    if draft.flags & RAW != 0 {
        write_raw(body, out)?;
        return Ok(Tail::end_of_line(Bytes::new()));
    }
    check_json(&body.bytes)?;
    let flat = on_one_line(&body.bytes).map(Bytes::from);
    Ok(Tail::end_of_line(flat.unwrap_or_else(|| body.bytes.clone())))
}

pub(crate) fn write_raw(body: &Body, out: &mut BytesMut) -> Result<(), EncodeError> {
    out.put_slice(b"{\"$bytes\":\"");
    out.put_slice(&base64::encode(&body.bytes));
    out.put_u8(b'"');
    if let Encoding::Raw { content_type: Some(content_type) } = &body.encoding {
        out.put_slice(b",\"contentType\":");
        serde_json::to_writer(out.writer(), content_type)?;
    }
    out.put_u8(b'}');
    Ok(())
}
