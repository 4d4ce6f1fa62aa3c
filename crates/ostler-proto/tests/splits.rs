//! Whatever arrives, in whatever pieces: the decoder says the same, stays within its memory and
//! never panics. Damaged streams come from a seed; `OSTLER_FUZZ_SECS` keeps on for that long,
//! `OSTLER_FUZZ_SEED` starts elsewhere.

mod support;

use std::{
    env,
    fmt::Debug,
    time::{Duration, Instant},
};

use bytes::{BufMut, BytesMut};
use ostler_proto::{
    Body, Decoder, Encoder, FromWorker, Limits, Message, Ready, ToWorker, Violation, Wire,
};
use support::{catalogue, decoded, drain};

const LIMITS: Limits = Limits { max_frame: 48 << 10, max_line: 24 << 10 };
const ROUNDS: u64 = 4_000;

/// A small generator of our own, so that a seed means the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A stream of good messages, some of them larger than what the decoder copies.
fn stream<M: Message>(dice: &mut Dice, wire: Wire, known: &[M], large: &M) -> Vec<u8> {
    let encoder = Encoder::new(wire, LIMITS);
    let mut out = BytesMut::new();
    for _ in 0..dice.below(12) {
        let message = if dice.one_in(8) { large } else { dice.pick(known) };
        // Not every message has a form on every wire; those are left out.
        let _ = encoder.encode(message, &mut out);
    }
    out.to_vec()
}

fn damage(dice: &mut Dice, bytes: &mut Vec<u8>) {
    for _ in 0..dice.below(5) {
        let at = dice.below(bytes.len() + 1);
        let length = dice.below(40).min(bytes.len() - at);
        match dice.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 => bytes.insert(at, dice.roll() as u8),
            2 => drop(bytes.drain(at..at + length)),
            3 => bytes.truncate(at),
            4 => {
                let copy = bytes[at..at + length].to_vec();
                let to = dice.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 if at + 4 <= bytes.len() => {
                let numbers = [0, 19, 20, 1 << 16, LIMITS.max_frame, u32::MAX];
                bytes[at..at + 4].copy_from_slice(&dice.pick(&numbers).to_le_bytes());
            }
            _ => {
                let pieces: [&[u8]; 6] = [b"\n", b"\"", b"{", b"[[[[", b"\\ud800", b"\xFF"];
                let piece = *dice.pick(&pieces);
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
}

/// Feeds the bytes in random pieces, reading in between as a server does.
fn in_pieces<M: Message>(
    dice: &mut Dice,
    mut decoder: Decoder<M>,
    bytes: &[u8],
) -> (Vec<M>, Result<usize, Violation>) {
    let mut messages = Vec::new();
    let mut rest = bytes;
    let mut end = Ok(0);
    while !rest.is_empty() {
        let longest = *dice.pick(&[1, 5, 30, 3_000, 100_000]);
        let (piece, later) = rest.split_at((1 + dice.below(longest)).min(rest.len()));
        rest = later;
        if dice.one_in(2) {
            decoder.push(piece);
        } else {
            decoder.space().put_slice(piece);
        }
        end = drain(&mut decoder, &mut messages);
        let held = decoder.space().capacity();
        assert!(held <= 4 * bytes.len() + (512 << 10), "{held} bytes are held");
    }
    (messages, end)
}

fn compare<M: Message + PartialEq + Debug>(
    dice: &mut Dice,
    decoder: impl Fn() -> Decoder<M>,
    bytes: &[u8],
) {
    let whole = decoded(decoder(), bytes);
    for _ in 0..2 {
        let pieces = in_pieces(dice, decoder(), bytes);
        assert_eq!(pieces, whole, "{}", support::hex(bytes));
    }
}

fn round_from_worker(dice: &mut Dice, known: &[FromWorker]) {
    let wire = *dice.pick(&[Wire::Ndjson, Wire::Binary]);
    let large = FromWorker::Complete {
        id: 9,
        chunks: None,
        body: Body::json(format!("[{}1]", "1, ".repeat(2_000 + dice.below(4_000)))),
    };
    let ready = Ready { wire, ..Ready::default() };
    let mut bytes = support::encoded(&FromWorker::Ready(Box::new(ready)), wire);
    bytes.extend(stream(dice, wire, known, &large));
    if !dice.one_in(4) {
        damage(dice, &mut bytes);
    }
    compare(dice, || Decoder::opening(LIMITS), &bytes);
}

fn round_to_worker(dice: &mut Dice, known: &[ToWorker]) {
    let wire = *dice.pick(&[Wire::Ndjson, Wire::Binary]);
    let large = ToWorker::CallResult {
        call_id: 9,
        outcome: Ok(Body::raw(vec![7; 4_000 + dice.below(8_000)], None)),
    };
    let mut bytes = stream(dice, wire, known, &large);
    if !dice.one_in(4) {
        damage(dice, &mut bytes);
    }
    compare(dice, || Decoder::<ToWorker>::new(wire, LIMITS), &bytes);
}

#[test]
fn damaged_streams_mean_the_same_however_they_are_split() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("OSTLER_FUZZ_SEED").unwrap_or(1);
    let until = number("OSTLER_FUZZ_SECS").map(|secs| Instant::now() + Duration::from_secs(secs));
    let from: Vec<_> = catalogue::from_worker().into_iter().map(|(_, m)| m).collect();
    let to: Vec<_> = catalogue::to_worker().into_iter().map(|(_, m)| m).collect();
    let mut round = 0;
    while until.map_or(round < ROUNDS, |until| Instant::now() < until) {
        let mut dice = Dice(seed.wrapping_add(round).wrapping_mul(0xA076_1D64_78BD_642F));
        round_from_worker(&mut dice, &from);
        round_to_worker(&mut dice, &to);
        round += 1;
    }
    println!("{round} rounds from seed {seed}");
}

#[test]
fn every_split_in_two_of_every_message_gives_that_message() {
    for wire in [Wire::Ndjson, Wire::Binary] {
        for (name, message) in catalogue::from_worker() {
            let bytes = support::encoded(&message, wire);
            for at in 0..=bytes.len() {
                let mut decoder: Decoder = Decoder::new(wire, LIMITS);
                let mut messages = Vec::new();
                decoder.push(&bytes[..at]);
                let early = drain(&mut decoder, &mut messages);
                assert_eq!(early, Ok(if at == bytes.len() { 0 } else { at }), "{name}");
                decoder.push(&bytes[at..]);
                assert_eq!(drain(&mut decoder, &mut messages), Ok(0), "{name}");
                assert_eq!(messages, std::slice::from_ref(&message), "{name}");
            }
        }
    }
}

#[test]
fn bytes_behind_ready_are_read_in_the_wire_that_it_names() {
    let ready = b"{\"type\":\"ready\",\"wire\":\"binary\"}\n".to_vec();
    let pong = support::frame(0x8A, 0, 0, 10, 0, 0, b"");
    let mut decoder = Decoder::opening(LIMITS);
    decoder.push(&[ready, pong].concat());
    assert!(matches!(decoder.next(), Ok(Some(FromWorker::Ready(_)))));
    assert_eq!(decoder.next(), Ok(Some(FromWorker::Pong { nonce: 10 })));
}

#[test]
fn a_control_stream_goes_on_in_the_wire_that_it_is_given() {
    let mut decoder = Decoder::opening(LIMITS);
    decoder.push(b"{\"type\":\"control\",\"token\":\"t\"}\n");
    decoder.push(&support::frame(0x8A, 0, 0, 10, 0, 0, b""));
    let token = Some("t".to_owned());
    assert_eq!(decoder.next(), Ok(Some(FromWorker::Control { token })));
    decoder.set_wire(Wire::Binary);
    assert_eq!(decoder.next(), Ok(Some(FromWorker::Pong { nonce: 10 })));
}

#[test]
fn a_violation_is_repeated_and_nothing_behind_it_is_read() {
    let mut decoder: Decoder = Decoder::new(Wire::Ndjson, LIMITS);
    decoder.push(b"boom\n{\"type\":\"shutdown_ack\"}\n");
    let first = decoder.next().expect_err("not JSON");
    assert_eq!(decoder.pending(), 0, "nothing is kept of a stream that cannot be trusted");
    decoder.push(b"{\"type\":\"shutdown_ack\"}\n");
    assert_eq!(decoder.next(), Err(first));
}
