//! What a worker says of itself when it opens its stream.

use serde::{Deserialize, Serialize};

use crate::{JsonText, PROTOCOL_VERSION, Violation, Wire, meta::is_false, parts::Parts};

/// The first message of a worker. `{"type":"ready"}` alone is enough: everything has a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ready {
    pub protocol: u32,
    /// The token of the environment, when the worker connected by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How everything after this line is spelled, both ways.
    pub wire: Wire,
    /// The worker reads the control stream.
    #[serde(skip_serializing_if = "is_false")]
    pub control: bool,
    /// How many requests it takes at a time.
    pub capacity: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionSpec>,
    /// Its own pid, as it sees it; the spawned child may be a wrapper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The signal it wants after a `cancel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_signal: Option<i32>,
    /// The signal that makes it write its stacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_signal: Option<i32>,
    /// Who wrote this, such as `python/0.1.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub free_threaded: bool,
    /// It answers `withdraw`, also while it works: requests may wait in its stream.
    #[serde(skip_serializing_if = "is_false")]
    pub withdraw: bool,
    /// An NDJSON worker honours `credit`; binary ones always do.
    #[serde(skip_serializing_if = "is_false")]
    pub credit: bool,
    /// It hands over what it keeps of a session when asked to, and takes it up again.
    #[serde(skip_serializing_if = "is_false")]
    pub saves_sessions: bool,
}

impl Default for Ready {
    fn default() -> Self {
        Ready {
            protocol: PROTOCOL_VERSION,
            token: None,
            wire: Wire::Ndjson,
            control: false,
            capacity: 1,
            functions: Vec::new(),
            pid: None,
            cancel_signal: None,
            trace_signal: None,
            sdk: None,
            free_threaded: false,
            withdraw: false,
            credit: false,
            saves_sessions: false,
        }
    }
}

impl Ready {
    /// Whether the worker stops sending chunks when its credit is used up.
    pub fn honours_credit(&self) -> bool {
        self.credit || self.wire == Wire::Binary
    }

    pub(crate) fn from_parts(parts: &Parts<'_>) -> Result<Ready, Violation> {
        // The version first: another one may give the other keys another meaning.
        let Version { protocol } = parts.meta()?;
        if protocol != PROTOCOL_VERSION {
            return Err(Violation::UnsupportedProtocol { protocol });
        }
        let ready: Ready = parts.meta()?;
        match ready.capacity {
            0 => Err(Violation::bad_message("ready", "capacity is 0, use 1 or more")),
            _ => Ok(ready),
        }
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct Version {
    protocol: u32,
}

impl Default for Version {
    fn default() -> Self {
        Version { protocol: PROTOCOL_VERSION }
    }
}

/// A function that the worker serves. Its place in the list is its index in binary queries.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FunctionSpec {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// It yields chunks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub streaming: bool,
    /// JSON schema of its parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<JsonText>,
}
