//! The golden vectors hold for this implementation.

mod support;

use std::fs;

use bytes::BytesMut;
use ostler_proto::{Decoder, Encoder, FromWorker, Limits, Message, ToWorker, Wire};
use serde::de::DeserializeOwned;
use support::{
    decoded, decoded_one, encoded,
    form::Form,
    hex, unhex,
    vectors::{self, Vector, ViolationVector},
};

fn load<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let path = vectors::path(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn messages() -> Vec<Vector> {
    let mut all = load::<Vector>("ndjson.json");
    all.extend(load::<Vector>("binary.json"));
    all
}

fn check<M: Message + Form>(vector: &Vector, decoder: Decoder<M>) {
    let bytes = unhex(&vector.hex);
    let message = decoded_one(decoder, &bytes).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
    assert_eq!(message.form(), vector.message, "{}", vector.name);
    if vector.canonical {
        let again = encoded(&message, vector.wire);
        assert_eq!(hex(&again), vector.hex, "{}", vector.name);
    }
}

#[test]
fn the_golden_bytes_mean_the_golden_messages_and_back() {
    for vector in messages() {
        match vector.direction.as_str() {
            "to_worker" => {
                let decoder = Decoder::<ToWorker>::new(vector.wire, Limits::default());
                check(&vector, decoder);
            }
            "from_worker" => {
                let limits = Limits::default();
                check(&vector, vectors::opening_decoder(vector.opening, vector.wire, limits));
            }
            other => panic!("no direction {other}"),
        }
    }
}

#[test]
fn the_text_of_a_line_is_what_its_hex_says() {
    for vector in load::<Vector>("ndjson.json") {
        let text = vector.text.expect("lines have their text beside them");
        assert_eq!(hex(text.as_bytes()), vector.hex, "{}", vector.name);
    }
}

#[test]
fn the_golden_breaches_are_found_after_the_good_messages() {
    for vector in load::<ViolationVector>("violations.json") {
        let limits = Limits { max_frame: vector.max_frame, max_line: vector.max_line };
        let bytes = unhex(&vector.hex);
        let (good, end) = match vector.direction.as_str() {
            "to_worker" => {
                let decoder = Decoder::<ToWorker>::new(vector.wire, limits);
                let (good, end) = decoded(decoder, &bytes);
                (good.len(), end)
            }
            _ => {
                let decoder = vectors::opening_decoder(vector.opening, vector.wire, limits);
                let (good, end) = decoded(decoder, &bytes);
                (good.len(), end)
            }
        };
        assert_eq!(good, vector.good, "{}", vector.name);
        let violation = end.expect_err(&vector.name);
        assert_eq!(violation.code(), vector.violation, "{}", vector.name);
    }
}

#[test]
fn the_committed_vectors_cover_the_whole_catalogue() {
    for wire in [Wire::Ndjson, Wire::Binary] {
        let committed = load::<Vector>(&format!("{wire}.json"));
        assert_eq!(committed, vectors::of_wire(wire), "run the example `vectors`");
    }
    let committed = load::<ViolationVector>("violations.json");
    assert_eq!(committed, vectors::of_violations(), "run the example `vectors`");
}

#[test]
fn every_type_is_in_the_vectors_of_every_wire_it_has() {
    let types = |wire: &str| {
        let mut names: Vec<String> = load::<Vector>(&format!("{wire}.json"))
            .iter()
            .map(|v| v.message["type"].as_str().expect("a type").to_owned())
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let (lines, frames) = (types("ndjson"), types("binary"));
    assert_eq!(lines.len(), 27, "{lines:?}");
    let only_lines: Vec<_> = lines.iter().filter(|name| !frames.contains(name)).collect();
    assert_eq!(only_lines, ["control", "ready"]);
}

#[test]
fn what_opens_a_stream_is_a_line_on_either_wire() {
    for (name, message) in support::catalogue::opening() {
        let mut binary = BytesMut::new();
        let encoder = Encoder::new(Wire::Binary, Limits::default());
        encoder.encode(&message, &mut binary).expect(name);
        assert_eq!(binary, encoded::<FromWorker>(&message, Wire::Ndjson), "{name}");
    }
}
