//! A session as others see it, and what they may ask of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::content::Content;

/// A session at one moment.
#[derive(Debug, Clone)]
pub struct Session {
    /// How pools know it. Never given to another session.
    pub number: u64,
    pub id: Arc<str>,
    /// A JSON object.
    pub metadata: Arc<RawValue>,
    /// By name.
    pub programs: Vec<ProgramInfo>,
    pub created_at: Timestamp,
    pub last_accessed: Timestamp,
    /// It is gone when nobody used it for this long.
    pub ttl: Duration,
    /// It is gone then, used or not.
    pub expires_at: Option<Timestamp>,
    pub last_worker: Option<Arc<str>>,
    /// Rises by one with each change of metadata, times or programs.
    pub version: u64,
    /// What it counts towards `memory_max`.
    pub bytes: u64,
    /// Whether a worker's state waits to be taken.
    pub saved: bool,
}

impl Session {
    /// When it will be gone if nobody uses it until then.
    pub fn gone_at(&self) -> Timestamp {
        let idle = self.last_accessed.checked_add(self.ttl).unwrap_or(Timestamp::MAX);
        self.expires_at.map_or(idle, |at| at.min(idle))
    }

    /// How many members its metadata has.
    pub fn items(&self) -> usize {
        serde_json::from_str::<HashMap<String, IgnoredAny>>(self.metadata.get())
            .map_or(0, |members| members.len())
    }
}

/// A program without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramInfo {
    pub name: Arc<str>,
    pub content_type: Box<str>,
    pub bytes: u64,
    /// The version that its session had when the program was put.
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub content: Content,
    /// The version that its session had when the program was put.
    pub version: u64,
}

#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// Made (`s_…`) if there is none.
    pub id: Option<String>,
    /// A JSON object; empty if there is none.
    pub metadata: Option<Box<RawValue>>,
    /// The default if there is none or it is zero.
    pub ttl: Option<Duration>,
    pub expires_at: Option<Timestamp>,
}

/// What to change. What is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct Patch {
    /// A merge patch (RFC 7396) of the metadata: an object; members that are `null` go.
    pub metadata: Option<Box<RawValue>>,
    /// `Some(None)` and zero give the default back.
    pub ttl: Option<Option<Duration>>,
    /// `Some(None)` takes it away.
    pub expires_at: Option<Option<Timestamp>>,
    /// Only if this is the current version.
    pub version: Option<u64>,
}

/// A session that a call goes into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    pub number: u64,
    pub id: Arc<str>,
    pub created: bool,
    /// Bound under a strict mode by a server that is gone, with the state of its process: the
    /// caller is told once. Asking again gives false.
    pub lost: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Alive: what has expired does not count, swept or not.
    pub current: u64,
    pub max: u64,
    pub memory_bytes: u64,
    pub memory_max: u64,
    /// The rest is counted since the store was opened.
    pub created: u64,
    pub deleted: u64,
    pub expired: u64,
    pub sweeps: u64,
    /// Transactions.
    pub commits: u64,
    /// Rows written or removed in them.
    pub rows_written: u64,
    /// Entries of the index of expiry that were looked at.
    pub expiry_looks: u64,
    /// Operations that the disk refused.
    pub disk_refusals: u64,
}
