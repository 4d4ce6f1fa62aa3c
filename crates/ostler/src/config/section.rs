//! One table of the file, read key by key.
//!
//! The keys that were asked for are the keys that are known: there is no second list that could
//! drift. What a value may be is the business of [`Key`]; this module knows tables.

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Surroundings;
use super::declared::{Declared, Keys};
use super::error::Problem;
use super::key::Key;
use super::suggest::nearest;

/// What readers share: the facts around the file, and the problems found so far.
pub(super) struct Reading<'a> {
    pub around: &'a Surroundings<'a>,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Reading<'a> {
    pub fn new(around: &'a Surroundings<'a>) -> Self {
        Self { around, problems: RefCell::default() }
    }

    pub fn note(&self, span: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.problems.borrow_mut().push(Problem { span, message: message.into(), help });
    }

    pub fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }
}

pub(super) struct Section<'a> {
    /// The names that lead here, such as `pools.py`; empty for the file itself.
    path: String,
    span: Range<usize>,
    /// `None` for a table that is not written: every key of it has its default.
    table: Option<&'a DeTable<'a>>,
    reading: &'a Reading<'a>,
    declared: RefCell<Keys>,
}

impl<'a> Section<'a> {
    /// The file itself.
    pub fn top(table: &'a DeTable<'a>, reading: &'a Reading<'a>) -> Self {
        Self::new(String::new(), 0..0, Some(table), reading)
    }

    /// A table inside this one; problems of one that is not written are this one's.
    pub fn inner(
        &self,
        name: &str,
        span: Option<Range<usize>>,
        table: Option<&'a DeTable<'a>>,
    ) -> Self {
        let path = match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        Self::new(path, span.unwrap_or_else(|| self.span.clone()), table, self.reading)
    }

    fn new(
        path: String,
        span: Range<usize>,
        table: Option<&'a DeTable<'a>>,
        reading: &'a Reading<'a>,
    ) -> Self {
        Self { path, span, table, reading, declared: RefCell::default() }
    }

    /// As the user writes it: `[pools.py]`.
    pub fn title(&self) -> String {
        match self.path.as_str() {
            "" => "the top level".to_owned(),
            path => format!("[{path}]"),
        }
    }

    pub fn reading(&self) -> &'a Reading<'a> {
        self.reading
    }

    /// A key to be read, and what it is for.
    pub fn key<'s>(&'s self, name: &'static str, about: &'static str) -> Key<'s, 'a> {
        Key::new(self, name, about)
    }

    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// A key's value as written.
    pub fn value(&self, name: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table?.get(name)
    }

    /// Where a key's value is, or the section if the key is absent.
    pub fn span_of(&self, name: &str) -> Range<usize> {
        self.value(name).map_or_else(|| self.span.clone(), Spanned::span)
    }

    /// Notes a problem of the section as a whole.
    pub fn blame(&self, message: impl Into<String>, help: impl Into<String>) {
        self.reading.note(self.span.clone(), message, Some(help.into()));
    }

    /// Notes a problem of one key.
    pub fn blame_key(&self, name: &str, message: impl Into<String>, help: impl Into<String>) {
        self.reading.note(self.span_of(name), message, Some(help.into()));
    }

    pub fn declare(&self, declared: Declared) {
        self.declared.borrow_mut().keys.push(declared);
    }

    /// Exactly one of the two must be written. Which of them are, is for the caller to judge.
    pub fn declare_either(&self, first: &'static str, second: &'static str) {
        self.declared.borrow_mut().either.push([first, second]);
    }

    /// At most one of the two may be written. Which of them are, is for the caller to judge.
    pub fn declare_at_most_one(&self, first: &'static str, second: &'static str) {
        self.declared.borrow_mut().at_most_one.push([first, second]);
    }

    /// Notes every key that nobody asked for. The last call on a section: it gives the keys that
    /// somebody did.
    pub fn finish(self) -> Keys {
        let declared = self.declared.take();
        let known = declared.names();
        for key in self.table.into_iter().flat_map(DeTable::keys) {
            if known.contains(&key.get_ref().as_ref()) {
                continue;
            }
            self.reading.note(
                key.span(),
                format!("unknown key `{}` in {}", key.get_ref(), self.title()),
                Some(did_you_mean(key.get_ref(), &known, "known keys")),
            );
        }
        declared
    }
}

/// `did you mean …?`, or else the list of what would be known.
pub(super) fn did_you_mean(word: &str, known: &[&str], label: &str) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => format!("there are no {label} here"),
        None => format!("{label}: {}", known.join(", ")),
    }
}
