//! The binary wire: a 24-byte little-endian header, the meta, the body.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{
    EncodeError, Limits, Tail, Violation, Wire,
    kind::{Kind, NumberKey},
    line::Parsed,
    meta::Meta,
    parts::{Content, Draft, Parts, Unit},
};

/// The whole header.
const HEADER: usize = 24;
/// What the length field does not count: itself.
const LENGTH: usize = 4;
/// The smallest length: a header and nothing behind it.
const SHORTEST: u32 = (HEADER - LENGTH) as u32;

/// How many bytes the frame at the start of `buffer` has, once that is known and within bounds.
pub(crate) fn announced(buffer: &[u8], limits: &Limits) -> Result<Option<usize>, Violation> {
    let Some(field) = buffer.first_chunk::<LENGTH>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*field);
    if length < SHORTEST {
        return Err(Violation::FrameTooShort { length });
    }
    if length > limits.max_frame {
        let limit = limits.max_frame;
        return Err(Violation::FrameTooLong { length, limit });
    }
    Ok(Some(LENGTH + length as usize))
}

/// Reads one whole frame.
pub(crate) fn parse(unit: Unit<'_>) -> Result<Parsed<'_>, Violation> {
    let (head, rest) = unit
        .bytes()
        .split_first_chunk::<HEADER>()
        .expect("a frame is announced with at least its header");
    let code = head[4];
    // `control` has no frame: a worker sends it as a line or not at all.
    let Some(kind) = Kind::from_code(code).filter(|kind| *kind != Kind::Control) else {
        return Ok(Parsed::Unknown(format!("{code:#04x}")));
    };
    let a = u32_at(head, 16);
    let (meta, body) = split_meta(kind, a, rest)?;
    Ok(Parsed::Known(Parts {
        unit,
        wire: Wire::Binary,
        kind,
        flags: head[5],
        code: u16::from_le_bytes([head[6], head[7]]),
        id: u64::from(u32_at(head, 8)) | u64::from(u32_at(head, 12)) << 32,
        a,
        b: (kind.number_key() != NumberKey::None).then(|| u32_at(head, 20)),
        meta: (!meta.is_empty()).then_some(meta),
        content: match body {
            [] => empty_content(kind),
            body => Content::Inside(body),
        },
    }))
}

/// Raw bytes may be none, which is not the same as no value.
fn empty_content(kind: Kind) -> Content<'static> {
    match kind.body_key() {
        Some(_) => Content::Inside(&[]),
        None => Content::Absent,
    }
}

fn u32_at(head: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

fn split_meta(kind: Kind, a: u32, rest: &[u8]) -> Result<(&[u8], &[u8]), Violation> {
    if kind == Kind::Credit {
        return Ok((&[], rest));
    }
    rest.split_at_checked(a as usize).ok_or_else(|| Violation::MetaTooLong {
        kind: kind.name(),
        meta: a,
        room: rest.len() as u32,
    })
}

/// Appends header and meta to `out`; the body follows as the tail.
pub(crate) fn write(
    draft: &Draft<'_>,
    limits: &Limits,
    out: &mut BytesMut,
) -> Result<Tail, EncodeError> {
    let start = out.len();
    out.put_bytes(0, HEADER);
    let meta = write_meta(&draft.meta, out)?;
    let body = body_of(draft);
    let length = u64::from(SHORTEST) + meta as u64 + body.len() as u64;
    if length > u64::from(limits.max_frame) {
        let limit = u64::from(limits.max_frame);
        return Err(EncodeError::TooLong { length, limit });
    }
    let a = match draft.kind {
        Kind::Credit => draft.a,
        _ => meta as u32,
    };
    let mut head = &mut out[start..start + HEADER];
    head.put_u32_le(length as u32);
    head.put_u8(draft.kind as u8);
    head.put_u8(draft.flags);
    head.put_u16_le(draft.code);
    head.put_u64_le(draft.id);
    head.put_u32_le(a);
    head.put_u32_le(draft.b.unwrap_or(0));
    Ok(Tail { body, end: b"" })
}

/// An empty object says no more than none at all, and none is cheaper to read.
fn write_meta(meta: &Meta<'_>, out: &mut BytesMut) -> Result<usize, EncodeError> {
    let start = out.len();
    if matches!(meta, Meta::None | Meta::Text(_)) {
        return Ok(0);
    }
    serde_json::to_writer(out.writer(), meta)?;
    if out[start..] == *b"{}" {
        out.truncate(start);
    }
    Ok(out.len() - start)
}

fn body_of(draft: &Draft<'_>) -> Bytes {
    match (&draft.meta, draft.body) {
        (Meta::Text(meta), _) => Bytes::copy_from_slice(meta.text.as_bytes()),
        (_, Some(body)) => body.bytes.clone(),
        (_, None) => Bytes::new(),
    }
}
