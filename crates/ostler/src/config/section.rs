//! One table of the file, read value by value.
//!
//! Every reader returns something usable even when the value is wrong, and notes the problem, so
//! that one pass finds all of them. The keys that were asked for are the keys that are known: there
//! is no second list that could drift. This module knows kinds of values, not settings.

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Surroundings;
use super::error::Problem;
use super::substitute::substitute;
use super::suggest::nearest;
use super::units::{self, UnitError, show_duration, show_size};

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
    /// As the user writes it: `[pools.py]`.
    title: String,
    span: Range<usize>,
    table: &'a DeTable<'a>,
    reading: &'a Reading<'a>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Section<'a> {
    pub fn new(
        title: impl Into<String>,
        span: Range<usize>,
        table: &'a DeTable<'a>,
        reading: &'a Reading<'a>,
    ) -> Self {
        Self { title: title.into(), span, table, reading, asked: RefCell::default() }
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn reading(&self) -> &'a Reading<'a> {
        self.reading
    }

    /// Notes a problem of the section as a whole.
    pub fn blame(&self, message: impl Into<String>, help: impl Into<String>) {
        self.reading.note(self.span.clone(), message, Some(help.into()));
    }

    /// The value of a key as written; asking makes the key known.
    pub fn value(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&key) {
            asked.push(key);
        }
        self.table.get(key)
    }

    /// Where a key's value is, or the section if the key is absent.
    pub fn span_of(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or_else(|| self.span.clone(), Spanned::span)
    }

    pub fn string(&self, key: &'static str) -> Option<Spanned<String>> {
        let value = self.value(key)?;
        self.text_of(key, value, "a string")
    }

    pub fn strings(&self, key: &'static str) -> Option<Vec<Spanned<String>>> {
        let value = self.value(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong_kind(key, value, "an array of strings");
            return None;
        };
        let texts = items.iter();
        Some(texts.filter_map(|item| self.text_of(key, item, "an array of strings")).collect())
    }

    /// A table of strings, such as `env`.
    pub fn string_table(&self, key: &'static str) -> Vec<(Spanned<String>, String)> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_kind(key, value, "a table of strings");
            return Vec::new();
        };
        let entries = table.iter().filter_map(|(name, value)| {
            let text = self.text_of(key, value, "a table of strings")?;
            let name = Spanned::new(name.span(), name.get_ref().to_string());
            Some((name, text.into_inner()))
        });
        entries.collect()
    }

    pub fn count(&self, key: &'static str, default: u32, range: RangeInclusive<u32>) -> u32 {
        let Some(value) = self.value(key) else {
            return default;
        };
        // A string is welcome as well: it is how `${WORKERS:-4}` is written.
        let number = match value.get_ref() {
            DeValue::Integer(number) => whole(number.as_str(), number.radix()),
            DeValue::String(_) => self
                .text_of(key, value, "a whole number")
                .map(|text| whole(text.get_ref().trim(), 10))
                .unwrap_or(Some(u64::from(default))),
            _ => {
                self.wrong_kind(key, value, "a whole number");
                return default;
            }
        };
        match number.and_then(|number| u32::try_from(number).ok()) {
            Some(number) if range.contains(&number) => number,
            _ => {
                let (low, high) = (range.start(), range.end());
                self.out_of_range(key, value, &low.to_string(), &high.to_string());
                default
            }
        }
    }

    pub fn duration(
        &self,
        key: &'static str,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        const KIND: &str = "a duration such as 10, \"10s\" or \"200ms\"";
        let Some(value) = self.value(key) else {
            return default;
        };
        let parsed = match value.get_ref() {
            DeValue::Integer(number) => {
                whole(number.as_str(), number.radix()).and_then(|n| units::seconds(n as f64))
            }
            DeValue::Float(number) => number.as_str().parse().ok().and_then(units::seconds),
            DeValue::String(_) => match self.measured(key, value, KIND, units::duration) {
                Some(duration) => Some(duration),
                None => return default,
            },
            _ => {
                self.wrong_kind(key, value, KIND);
                return default;
            }
        };
        match parsed {
            Some(duration) if range.contains(&duration) => duration,
            _ => {
                let (low, high) = (show_duration(*range.start()), show_duration(*range.end()));
                self.out_of_range(key, value, &low, &high);
                default
            }
        }
    }

    pub fn size(&self, key: &'static str, default: u64, range: RangeInclusive<u64>) -> u64 {
        const KIND: &str = "a size such as 4096, \"64kB\" or \"16MiB\"";
        let Some(value) = self.value(key) else {
            return default;
        };
        let parsed = match value.get_ref() {
            DeValue::Integer(number) => whole(number.as_str(), number.radix()),
            DeValue::String(_) => match self.measured(key, value, KIND, units::size) {
                Some(size) => Some(size),
                None => return default,
            },
            _ => {
                self.wrong_kind(key, value, KIND);
                return default;
            }
        };
        match parsed {
            Some(size) if range.contains(&size) => size,
            _ => {
                let (low, high) = (show_size(*range.start()), show_size(*range.end()));
                self.out_of_range(key, value, &low, &high);
                default
            }
        }
    }

    /// One of a closed list of words.
    pub fn choice<T: Copy>(&self, key: &'static str, default: T, choices: &[(&str, T)]) -> T {
        let Some(text) = self.string(key) else {
            return default;
        };
        if let Some((_, choice)) = choices.iter().find(|(word, _)| word == text.get_ref()) {
            return *choice;
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        self.reading.note(
            text.span(),
            format!("unknown value `{}` for `{key}`", text.get_ref()),
            Some(did_you_mean(text.get_ref(), &words, "known values")),
        );
        default
    }

    /// Notes every key that nobody asked for. The last call on a section.
    pub fn finish(self) {
        let asked = self.asked.borrow();
        for key in self.table.keys() {
            if asked.contains(&key.get_ref().as_ref()) {
                continue;
            }
            self.reading.note(
                key.span(),
                format!("unknown key `{}` in {}", key.get_ref(), self.title),
                Some(did_you_mean(key.get_ref(), &asked, "known keys")),
            );
        }
    }

    fn text_of(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        kind: &str,
    ) -> Option<Spanned<String>> {
        let DeValue::String(text) = value.get_ref() else {
            self.wrong_kind(key, value, kind);
            return None;
        };
        match substitute(text, self.reading.around.variable) {
            Ok(text) => Some(Spanned::new(value.span(), text)),
            Err(unresolved) => {
                self.reading.note(value.span(), unresolved.message, Some(unresolved.help));
                None
            }
        }
    }

    fn measured<T>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        kind: &str,
        parse: fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let text = self.text_of(key, value, kind)?;
        let error = match parse(text.get_ref()) {
            Ok(parsed) => return Some(parsed),
            Err(error) => error,
        };
        let help = match &error {
            UnitError::UnknownUnit { unit, known } => did_you_mean(unit, known, "known units"),
            _ => format!("write {kind}"),
        };
        self.reading.note(value.span(), format!("`{key}`: {error}"), Some(help));
        None
    }

    fn wrong_kind(&self, key: &str, value: &Spanned<DeValue<'_>>, kind: &str) {
        self.reading.note(
            value.span(),
            format!("`{key}` must be {kind}, not {}", article(value.get_ref().type_str())),
            None,
        );
    }

    fn out_of_range(&self, key: &str, value: &Spanned<DeValue<'_>>, low: &str, high: &str) {
        self.reading.note(value.span(), format!("`{key}` must be between {low} and {high}"), None);
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

fn whole(digits: &str, radix: u32) -> Option<u64> {
    u64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

fn article(kind: &str) -> String {
    match kind {
        "integer" | "array" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
