//! What the tests and the vector writer share.

#![allow(dead_code)]

pub mod breaches;
pub mod catalogue;
pub mod form;
pub mod vectors;

use bytes::BytesMut;
use ostler_proto::{Decoder, Encoder, FromWorker, Limits, Message, Violation, Wire};

pub fn encoded<M: Message>(message: &M, wire: Wire) -> Vec<u8> {
    let mut out = BytesMut::new();
    let encoder = Encoder::new(wire, Limits::default());
    encoder.encode(message, &mut out).expect("it can be written");
    out.to_vec()
}

/// Everything a decoder says of some bytes that arrived in one piece.
pub fn decoded<M: Message>(
    mut decoder: Decoder<M>,
    bytes: &[u8],
) -> (Vec<M>, Result<usize, Violation>) {
    decoder.push(bytes);
    let mut messages = Vec::new();
    let end = drain(&mut decoder, &mut messages);
    (messages, end)
}

/// Reads what is there: the messages, then how many bytes are left or what was wrong.
pub fn drain<M: Message>(
    decoder: &mut Decoder<M>,
    messages: &mut Vec<M>,
) -> Result<usize, Violation> {
    while let Some(message) = decoder.next()? {
        messages.push(message);
    }
    Ok(decoder.pending())
}

pub fn decoded_one<M: Message>(decoder: Decoder<M>, bytes: &[u8]) -> Result<M, Violation> {
    let (mut messages, end) = decoded(decoder, bytes);
    assert_eq!(end?, 0, "bytes are left over");
    assert_eq!(messages.len(), 1, "one message was written");
    Ok(messages.remove(0))
}

/// A line of an opened NDJSON stream, read as the server does.
pub fn line(text: &str) -> Result<FromWorker, Violation> {
    let decoder = Decoder::new(Wire::Ndjson, Limits::default());
    decoded_one(decoder, format!("{text}\n").as_bytes())
}

/// A frame spelled by hand.
pub fn frame(kind: u8, flags: u8, code: u16, id: u64, a: u32, b: u32, rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&(20 + rest.len() as u32).to_le_bytes());
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&a.to_le_bytes());
    out.extend_from_slice(&b.to_le_bytes());
    out.extend_from_slice(rest);
    out
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "hex has two digits per byte");
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex digits");
    (0..text.len()).step_by(2).map(byte).collect()
}
