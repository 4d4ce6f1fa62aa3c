//! What ties a caller to a worker: the session it names, or the key that a whole pool goes by.

use std::time::Duration;

use super::declared::Choice;
use super::section::Section;
use super::{DAY, MILLISECOND, MINUTE};

/// How strongly a session is tied to its worker, where a call does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// Its worker if that is free, else any other.
    Hint,
    /// Its worker; wait for it.
    StrictQueue,
    /// Its worker; refused at once when that is busy.
    StrictFailFast,
}

impl Choice for Affinity {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("hint", Self::Hint),
        ("strict_queue", Self::StrictQueue),
        ("strict_fail_fast", Self::StrictFailFast),
    ];
}

/// What every worker of a pool belongs to one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedBy {
    Session,
    Workspace,
}

impl Choice for KeyedBy {
    const WORDS: &'static [(&'static str, Self)] =
        &[("session", Self::Session), ("workspace", Self::Workspace)];
}

/// Which idle worker makes room for a key that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evict {
    /// The one that was used least recently.
    Lru,
    Oldest,
    /// The one with the fewest requests.
    LeastUsed,
}

impl Choice for Evict {
    const WORDS: &'static [(&'static str, Self)] =
        &[("lru", Self::Lru), ("oldest", Self::Oldest), ("least_used", Self::LeastUsed)];
}

/// A pool in which each key has a worker of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyed {
    pub by: KeyedBy,
    pub evict: Evict,
    /// A younger worker is never evicted.
    pub evict_min_age: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub affinity: Affinity,
    /// How long a binding by hint is remembered without a call.
    pub affinity_ttl: Duration,
    pub keyed: Option<Keyed>,
}

impl Default for Binding {
    fn default() -> Self {
        Self { affinity: Affinity::Hint, affinity_ttl: 5 * MINUTE, keyed: None }
    }
}

impl Binding {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let defaults = Self::default();
        let key = section
            .key("key", "gives each session or workspace a worker of its own, made on demand")
            .usually("none")
            .choice_if_any();
        let evict = section
            .key("evict", "which idle worker leaves when a key needs one and there are `max`")
            .choice(Evict::Lru);
        let evict_min_age = section
            .key("evict_min_age", "age below which a worker does not leave for another key")
            .duration(Duration::ZERO, Duration::ZERO..=DAY);
        // What a session finds in its own worker is lost anywhere else.
        let affinity = match key {
            Some(KeyedBy::Session) => Affinity::StrictQueue,
            _ => defaults.affinity,
        };
        let affinity = section
            .key("affinity", "how a call keeps to the worker of its session")
            .usually("`\"hint\"`; `\"strict_queue\"` with `key = \"session\"`")
            .choice(affinity);
        let affinity_ttl = section
            .key("affinity_ttl", "how long a binding by hint holds without a call")
            .duration(defaults.affinity_ttl, 100 * MILLISECOND..=DAY);
        only_with_key(section, "evict");
        only_with_key(section, "evict_min_age");
        let keyed = key.map(|by| Keyed { by, evict, evict_min_age });
        Self { affinity, affinity_ttl, keyed }
    }
}

fn only_with_key(section: &Section<'_>, name: &str) {
    if section.has(name) && !section.has("key") {
        section.blame_key(
            name,
            format!("`{name}` has no meaning without `key`"),
            format!("add `key = \"session\"` or `key = \"workspace\"`, or remove `{name}`"),
        );
    }
}
