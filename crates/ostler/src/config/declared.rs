//! What may be written in a configuration, as the readers declare it while they read.
//!
//! Separate because three others live off it: suggestions for unknown keys, the JSON schema and
//! the reference. It describes values and never sees one.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;

/// One key of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Declared {
    pub name: &'static str,
    /// What it is for, as a fragment of a sentence.
    pub about: &'static str,
    pub shape: Shape,
    pub fallback: Fallback,
    pub required: bool,
}

/// What holds where a key is absent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fallback {
    Nothing,
    Value(Value),
    /// It depends on something; on what, in words.
    Words(&'static str),
}

/// What a key's value may be. Texts may hold `${VAR}`, and any single value may be a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Version(u32),
    Text,
    Texts,
    /// A table of texts under names of the user's own.
    TextTable,
    Flag,
    Count(RangeInclusive<u32>),
    /// A part of a whole, as a number.
    Share(RangeInclusive<f64>),
    Duration(RangeInclusive<Duration>),
    Size(RangeInclusive<u64>),
    Choice(Vec<&'static str>),
    Table(Keys),
    /// Tables of one kind under names of the user's own.
    Tables {
        names: Names,
        count: RangeInclusive<usize>,
        each: Keys,
    },
}

/// What the user may call such a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Names {
    /// A regular expression.
    pub pattern: &'static str,
    pub reserved: &'static [&'static str],
}

/// The keys of one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Keys {
    pub keys: Vec<Declared>,
    /// Pairs of which exactly one must be there.
    pub either: Vec<[&'static str; 2]>,
    /// Pairs of which one may be there, not both.
    pub at_most_one: Vec<[&'static str; 2]>,
}

impl Keys {
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}

/// A closed list of words, each of which means one value.
pub trait Choice: Copy + PartialEq + 'static {
    const WORDS: &'static [(&'static str, Self)];

    /// As it is written in the file.
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, value)| *value == self);
        found.map(|(word, _)| *word).expect("every value has its word")
    }
}
