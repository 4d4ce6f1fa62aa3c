//! The two wires and the sizes both sides agree on.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The protocol version of this crate.
pub const PROTOCOL_VERSION: u32 = 1;

/// How messages are spelled on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// One JSON object per line.
    #[default]
    Ndjson,
    /// A 24-byte header, a JSON object of the rarer fields, an opaque body.
    Binary,
}

impl Wire {
    pub fn name(self) -> &'static str {
        match self {
            Wire::Ndjson => "ndjson",
            Wire::Binary => "binary",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Wire {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "ndjson" => Ok(Wire::Ndjson),
            "binary" => Ok(Wire::Binary),
            other => Err(format!("no wire {other:?}: use \"ndjson\" or \"binary\"")),
        }
    }
}

/// The largest message either side may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest `length` field of a frame.
    pub max_frame: u32,
    /// Longest line in bytes, its newline not counted.
    pub max_line: u32,
}

impl Default for Limits {
    /// 64 MiB of body with 4 KiB beside it, and lines of 16 MiB.
    fn default() -> Self {
        Limits { max_frame: (64 << 20) + (4 << 10), max_line: 16 << 20 }
    }
}
