//! The bounds of the sessions.

use std::time::Duration;

/// How many sessions there may be, how large, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// Sessions alive at once.
    pub max: u32,
    /// A session that nobody used for this long is gone, unless it has a time of its own.
    pub ttl: Duration,
    /// Whether a call with an unknown id makes the session.
    pub auto_create: bool,
    /// Bytes of one session's metadata, as JSON text.
    pub metadata_max: u64,
    /// Programs of one session.
    pub programs_max: u32,
    /// Bytes of all programs of one session.
    pub program_bytes_max: u64,
    /// Bytes of all sessions together, with what it costs to keep them.
    pub memory_max: u64,
    /// How often what has expired is removed; zero: only by hand. Nobody sees it before that either.
    pub sweep: Duration,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings {
            max: 10_000,
            ttl: Duration::from_secs(3600),
            auto_create: true,
            metadata_max: 64 << 10,
            programs_max: 64,
            program_bytes_max: 1 << 20,
            memory_max: 256 << 20,
            sweep: Duration::from_secs(60),
        }
    }
}
