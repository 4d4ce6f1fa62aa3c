//! The golden vector files: what is in them and where they are.

use std::path::PathBuf;

use ostler_proto::{Decoder, FromWorker, Limits, Message, ToWorker, Wire};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    breaches::{self, Breach},
    catalogue, decoded_one, encoded,
    form::Form,
    hex,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vector {
    pub name: String,
    pub direction: String,
    pub wire: Wire,
    /// First on its stream.
    pub opening: bool,
    /// The message, written again, gives these very bytes.
    pub canonical: bool,
    /// Lines for people; the bytes are in `hex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub hex: String,
    pub message: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ViolationVector {
    pub name: String,
    pub direction: String,
    pub wire: Wire,
    pub opening: bool,
    pub max_frame: u32,
    pub max_line: u32,
    pub hex: String,
    /// Messages that are read before it.
    pub good: usize,
    pub violation: String,
}

pub fn path(file: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../testdata/protocol").join(file)
}

/// One case per line, so that a change shows as the cases it touches.
pub fn file_text<T: Serialize>(cases: &[T]) -> String {
    let line = |case| serde_json::to_string(case).expect("plain data");
    let lines: Vec<String> = cases.iter().map(line).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

pub fn opening_decoder(opening: bool, wire: Wire, limits: Limits) -> Decoder {
    match opening {
        true => Decoder::opening(limits),
        false => Decoder::new(wire, limits),
    }
}

fn vector<M: Message + Form>(
    name: &str,
    direction: &str,
    decoder: Decoder<M>,
    opening: bool,
    bytes: &[u8],
) -> Vector {
    let wire = decoder.wire();
    let message = decoded_one(decoder, bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    let unknown = message.form()["type"] == "unknown";
    Vector {
        name: name.into(),
        direction: direction.into(),
        wire,
        opening,
        canonical: !unknown && encoded(&message, wire) == bytes,
        text: (wire == Wire::Ndjson)
            .then(|| String::from_utf8(bytes.to_vec()).expect("lines are text")),
        hex: hex(bytes),
        message: message.form(),
    }
}

pub fn of_wire(wire: Wire) -> Vec<Vector> {
    let limits = Limits::default();
    let to = |name: &str, bytes: &[u8]| {
        vector::<ToWorker>(name, "to_worker", Decoder::new(wire, limits), false, bytes)
    };
    let from = |name: &str, opening: bool, bytes: &[u8]| {
        let decoder = opening_decoder(opening, wire, limits);
        vector::<FromWorker>(name, "from_worker", decoder, opening, bytes)
    };
    let mut all = Vec::new();
    for (name, message) in catalogue::to_worker() {
        // A line names its function; an index is for frames.
        let indexed = message.form()["function"]["index"].is_u64();
        if !(indexed && wire == Wire::Ndjson) {
            all.push(to(name, &encoded(&message, wire)));
        }
    }
    for (name, message) in catalogue::from_worker() {
        all.push(from(name, false, &encoded(&message, wire)));
    }
    match wire {
        Wire::Ndjson => {
            for (name, message) in catalogue::opening() {
                all.push(from(name, true, &encoded(&message, wire)));
            }
            for (name, opening, line) in catalogue::other_lines_from_worker() {
                all.push(from(name, opening, format!("{line}\n").as_bytes()));
            }
            for (name, line) in catalogue::other_lines_to_worker() {
                all.push(to(name, format!("{line}\n").as_bytes()));
            }
        }
        Wire::Binary => {
            for (name, frame) in catalogue::other_frames_from_worker() {
                all.push(from(name, false, &frame));
            }
            for (name, frame) in catalogue::other_frames_to_worker() {
                all.push(to(name, &frame));
            }
        }
    }
    all
}

pub fn of_violations() -> Vec<ViolationVector> {
    let vector = |breach: Breach| ViolationVector {
        name: breach.name.into(),
        direction: if breach.to_worker { "to_worker" } else { "from_worker" }.into(),
        wire: breach.wire,
        opening: breach.opening,
        max_frame: breaches::MAX_FRAME,
        max_line: breaches::MAX_LINE,
        hex: hex(&breach.bytes),
        good: breach.good,
        violation: breach.violation.into(),
    };
    breaches::all().into_iter().map(vector).collect()
}
