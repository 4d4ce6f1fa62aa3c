//! `[sessions]`: what callers may keep here, and how long.

use std::time::Duration;

use super::section::Section;
use super::units::show_size;
use super::{DAY, GIB, HOUR, KIB, MIB, MILLISECOND, MINUTE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sessions {
    pub max: u32,
    /// A session that nobody used for this long is gone.
    pub ttl: Duration,
    /// A call that names an unknown session makes it.
    pub auto_create: bool,
    /// Bytes of one session's metadata.
    pub metadata_max: u64,
    /// Programs of one session.
    pub programs_max: u32,
    /// Bytes of all programs of one session.
    pub program_bytes_max: u64,
    /// Bytes of all sessions.
    pub memory_max: u64,
    /// Between two searches for what has expired.
    pub sweep: Duration,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            max: 10_000,
            ttl: HOUR,
            auto_create: true,
            metadata_max: 64 * KIB,
            programs_max: 64,
            program_bytes_max: MIB,
            memory_max: 256 * MIB,
            sweep: MINUTE,
        }
    }
}

impl Sessions {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let defaults = Self::default();
        let sessions = Self {
            max: section
                .key("max", "sessions that there may be")
                .count(defaults.max, 1..=10_000_000),
            ttl: section
                .key("ttl", "how long one lives without a call, unless it says otherwise")
                .duration(defaults.ttl, 100 * MILLISECOND..=365 * DAY),
            auto_create: section
                .key("auto_create", "whether a call that names an unknown session makes it")
                .flag(defaults.auto_create),
            metadata_max: section
                .key("metadata_max", "metadata of one session")
                .size(defaults.metadata_max, KIB..=64 * MIB),
            programs_max: section
                .key("programs_max", "programs of one session; 0: none")
                .count(defaults.programs_max, 0..=10_000),
            program_bytes_max: section
                .key("program_bytes_max", "all programs of one session together")
                .size(defaults.program_bytes_max, KIB..=GIB),
            memory_max: section
                .key("memory_max", "all sessions together")
                .size(defaults.memory_max, MIB..=1024 * GIB),
            sweep: section
                .key("sweep", "between two searches for sessions that have expired")
                .duration(defaults.sweep, 100 * MILLISECOND..=DAY),
        };
        sessions.fits(section, "metadata_max", sessions.metadata_max);
        sessions.fits(section, "program_bytes_max", sessions.program_bytes_max);
        sessions
    }

    /// One session must not be allowed more than all of them.
    fn fits(&self, section: &Section<'_>, name: &str, bytes: u64) {
        if bytes <= self.memory_max {
            return;
        }
        // A default is never to blame.
        let blamed = if section.has(name) { name } else { "memory_max" };
        section.blame_key(
            blamed,
            format!("`{name}` allows one session more than `memory_max` allows all of them"),
            format!(
                "`{name}` is {}, `memory_max` is {}",
                show_size(bytes),
                show_size(self.memory_max)
            ),
        );
    }
}
