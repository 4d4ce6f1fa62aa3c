//! Memory follows what was received, not what was claimed, and bodies are not copied.

mod support;

use bytes::{BufMut, Bytes, BytesMut};
use ostler_proto::{
    Body, Decoder, EncodeError, Encoder, FromWorker, Function, Limits, Query, ToWorker, Wire,
};

const SLACK: usize = 192 << 10;

#[test]
fn a_claim_of_64_mib_reserves_next_to_nothing() {
    let mut decoder: Decoder = Decoder::new(Wire::Binary, Limits::default());
    decoder.push(&(64u32 << 20).to_le_bytes());
    assert_eq!(decoder.next(), Ok(None));
    assert!(decoder.space().capacity() <= SLACK);
}

#[test]
fn the_buffer_grows_with_a_large_body_and_leaves_with_it() {
    let body = vec![0xA5; 64 << 20];
    let mut frame = support::frame(0x84, 0x80, 0, 1, 0, 0, &[]);
    frame[..4].copy_from_slice(&(20 + body.len() as u32).to_le_bytes());
    let mut decoder: Decoder = Decoder::new(Wire::Binary, Limits::default());
    decoder.push(&frame);
    let mut received = frame.len();
    let mut rest = &body[..];
    while !rest.is_empty() {
        assert_eq!(decoder.next(), Ok(None));
        let space = decoder.space();
        let room = (space.capacity() - space.len()).min(rest.len());
        assert!(room > 0, "a read always has room");
        space.put_slice(&rest[..room]);
        received += room;
        rest = &rest[room..];
        assert!(space.capacity() <= 2 * received + SLACK, "{}", space.capacity());
    }
    let complete = FromWorker::Complete { id: 1, chunks: Some(0), body: Body::raw(body, None) };
    assert_eq!(decoder.next(), Ok(Some(complete)));
    // The body is gone. Its memory must not come back as the buffer of the small messages.
    let pong = support::frame(0x8A, 0, 0, 1, 0, 0, b"");
    for _ in 0..3 * SLACK / pong.len() {
        decoder.space().put_slice(&pong);
        assert_eq!(decoder.next(), Ok(Some(FromWorker::Pong { nonce: 1 })));
        assert!(decoder.space().capacity() <= SLACK);
    }
}

#[test]
fn a_kept_small_body_does_not_keep_the_buffer() {
    let mut decoder: Decoder = Decoder::new(Wire::Binary, Limits::default());
    decoder.push(&support::frame(0x84, 0, 0, 1, 0, 0, b"\"kept\""));
    let before = decoder.space().as_ptr();
    let Ok(Some(FromWorker::Complete { body, .. })) = decoder.next() else {
        panic!("a complete was sent");
    };
    assert!(!std::ptr::eq(body.bytes.as_ptr(), before.wrapping_add(24)));
}

#[test]
fn a_large_body_is_read_where_it_arrived() {
    let body = vec![b'7'; 20 << 10];
    let mut decoder: Decoder = Decoder::new(Wire::Binary, Limits::default());
    let frame = support::frame(0x84, 0, 0, 1, 0, 0, &body);
    decoder.push(&frame);
    let arrived = received_at(&mut decoder).wrapping_add(24);
    let Ok(Some(FromWorker::Complete { body, .. })) = decoder.next() else {
        panic!("a complete was sent");
    };
    assert!(std::ptr::eq(body.bytes.as_ptr(), arrived));
}

/// Where the bytes that were received stand. There is room behind them, so asking moves nothing.
fn received_at(decoder: &mut Decoder) -> *const u8 {
    decoder.space();
    decoder.space().as_ptr()
}

#[test]
fn a_payload_is_written_from_where_it_is() {
    for wire in [Wire::Ndjson, Wire::Binary] {
        let payload = Bytes::from(format!("\"{}\"", "x".repeat(1 << 20)));
        let function = Function::Named("f".into());
        let query = ToWorker::Query(Query::new(1, function, Body::json(payload.clone())));
        let mut head = BytesMut::new();
        let encoder = Encoder::new(wire, Limits::default());
        let tail = encoder.encode_head(&query, &mut head).expect("it fits");
        assert!(head.len() < 100);
        assert!(std::ptr::eq(tail.body.as_ptr(), payload.as_ptr()));
    }
}

#[test]
fn what_is_too_long_is_refused_and_leaves_no_trace() {
    let limits = Limits { max_frame: 100, max_line: 100 };
    for (wire, overhead) in [(Wire::Ndjson, 43), (Wire::Binary, 20)] {
        let query = |size: usize| {
            let body = Body::json(vec![b'1'; size]);
            ToWorker::Query(Query::new(1, Function::Unnamed, body))
        };
        let encoder = Encoder::new(wire, limits);
        let mut out = BytesMut::from("before");
        let refused = encoder.encode(&query(101 - overhead), &mut out);
        let expected = EncodeError::TooLong { length: 101, limit: 100 };
        assert_eq!(refused, Err(expected));
        assert_eq!(out, "before");
        encoder.encode(&query(100 - overhead), &mut out).expect("just fits");
        let mut decoder = Decoder::<ToWorker>::new(wire, limits);
        decoder.push(&out[6..]);
        assert_eq!(decoder.next(), Ok(Some(query(100 - overhead))));
    }
}
