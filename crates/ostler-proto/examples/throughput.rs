//! How fast messages are read and written, per body size. Run it with `--release`; the argument
//! is the number of messages per figure.

use std::{hint::black_box, time::Instant};

use bytes::{BufMut, Bytes, BytesMut};
use ostler_proto::{Body, Decoder, Encoder, FromWorker, Function, Limits, Query, ToWorker, Wire};

fn main() {
    let count = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let count: usize = count.unwrap_or(200_000);
    println!("ns per message: {:>10} {:>10} {:>10}", "bytes", "read", "write");
    for wire in [Wire::Binary, Wire::Ndjson] {
        for size in [64, 512, 1 << 10, 4 << 10, 8 << 10, 64 << 10] {
            let rounds = (count * 64 / size.max(64)).max(1_000);
            let (read, write) =
                (best(|| read(wire, size, rounds)), best(|| write(wire, size, rounds)));
            println!("{:<15} {size:>10} {read:>10.0} {write:>10.0}", wire.name());
        }
    }
}

/// The least disturbed of some runs.
fn best(run: impl Fn() -> f64) -> f64 {
    (0..9).map(|_| run()).fold(f64::INFINITY, f64::min)
}

fn read(wire: Wire, size: usize, rounds: usize) -> f64 {
    let message = FromWorker::Complete {
        id: 17,
        chunks: Some(0),
        body: Body::json(format!("\"{}\"", "x".repeat(size - 2))),
    };
    let mut one = BytesMut::new();
    let encoder = Encoder::new(wire, Limits::default());
    encoder.encode(&message, &mut one).expect("it fits");
    let piece = one.repeat((32 << 10) / one.len() + 1);
    let mut decoder: Decoder = Decoder::new(wire, Limits::default());
    let mut done = 0;
    // Some answers are still held while the next are read, as in a busy server.
    let mut held = Vec::with_capacity(64);
    let start = Instant::now();
    while done < rounds {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let space = decoder.space();
            let room = (space.capacity() - space.len()).min(rest.len());
            space.put_slice(&rest[..room]);
            rest = &rest[room..];
            while let Some(message) = decoder.next().expect("good frames") {
                held.push(black_box(message));
                if held.len() == 64 {
                    held.clear();
                }
                done += 1;
            }
        }
    }
    start.elapsed().as_nanos() as f64 / done as f64
}

fn write(wire: Wire, size: usize, rounds: usize) -> f64 {
    let payload = Bytes::from(format!("\"{}\"", "x".repeat(size - 2)));
    let encoder = Encoder::new(wire, Limits::default());
    let mut out = BytesMut::with_capacity(256);
    let start = Instant::now();
    for id in 0..rounds as u64 {
        let function = match wire {
            Wire::Binary => Function::Index(0),
            Wire::Ndjson => Function::Unnamed,
        };
        let query = Query::new(id, function, Body::json(payload.clone()));
        out.clear();
        let tail = encoder.encode_head(&ToWorker::Query(query), &mut out);
        black_box((&out, tail.expect("it fits")));
    }
    start.elapsed().as_nanos() as f64 / rounds as f64
}
