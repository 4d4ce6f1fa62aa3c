//! Writes the golden vectors of `testdata/protocol` anew from the catalogue of the tests.
//! The committed files are what counts: read the difference before keeping it.

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;

use ostler_proto::Wire;
use support::vectors;

fn main() -> std::io::Result<()> {
    for wire in [Wire::Ndjson, Wire::Binary] {
        let text = vectors::file_text(&vectors::of_wire(wire));
        fs::write(vectors::path(&format!("{wire}.json")), text)?;
    }
    let text = vectors::file_text(&vectors::of_violations());
    fs::write(vectors::path("violations.json"), text)
}
