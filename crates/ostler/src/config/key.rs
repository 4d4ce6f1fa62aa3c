//! One key, read as the kind of value that it is declared to be.
//!
//! Declaring and reading are one call, so nothing can be read that is not described. Every
//! reader returns something usable even when the value is wrong, and notes the problem, so that
//! one pass finds all of them. This module knows kinds of values, not settings.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared::{Choice, Declared, Fallback, Keys, Names, Shape};
use super::section::{Section, did_you_mean};
use super::substitute::substitute;
use super::units::{self, UnitError, show_duration, show_size};

const DURATION: &str = "a duration such as 10, \"10s\" or \"200ms\"";
const SIZE: &str = "a size such as 4096, \"64kB\" or \"16MiB\"";

pub(super) struct Key<'s, 'a> {
    section: &'s Section<'a>,
    name: &'static str,
    about: &'static str,
    fallback: Fallback,
    required: bool,
}

impl<'s, 'a> Key<'s, 'a> {
    pub fn new(section: &'s Section<'a>, name: &'static str, about: &'static str) -> Self {
        Self { section, name, about, fallback: Fallback::Nothing, required: false }
    }

    /// Says in words what holds without the key, where the default depends on something.
    pub fn usually(self, words: &'static str) -> Self {
        Self { fallback: Fallback::Words(words), ..self }
    }

    /// Says which text holds without the key; applying it is the caller's part.
    pub fn or_text(self, text: &str) -> Self {
        Self { fallback: Fallback::Value(text.into()), ..self }
    }

    /// A file without it is refused, by the caller's own words.
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The version of the format: a plain number, whatever surrounds the file.
    pub fn version(self, known: u32) -> Option<bool> {
        self.declare(Shape::Version(known), None);
        let matches = |value: &DeValue<'_>| match value {
            DeValue::Integer(number) => number.as_str() == known.to_string(),
            _ => false,
        };
        self.value().map(|value| matches(value.get_ref()))
    }

    pub fn text(self) -> Option<Spanned<String>> {
        self.declare(Shape::Text, None);
        self.text_of(self.value()?, "a string")
    }

    pub fn texts(self) -> Option<Vec<Spanned<String>>> {
        const KIND: &str = "an array of strings";
        self.declare(Shape::Texts, None);
        let value = self.value()?;
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong_kind(value, KIND);
        };
        Some(items.iter().filter_map(|item| self.text_of(item, KIND)).collect())
    }

    /// A table of strings, such as `env`.
    pub fn text_table(self) -> Vec<(Spanned<String>, String)> {
        const KIND: &str = "a table of strings";
        self.declare(Shape::TextTable, None);
        let Some(value) = self.value() else {
            return Vec::new();
        };
        let DeValue::Table(table) = value.get_ref() else {
            return self.wrong_kind(value, KIND).unwrap_or_default();
        };
        let entries = table.iter().filter_map(|(name, value)| {
            let text = self.text_of(value, KIND)?;
            let name = Spanned::new(name.span(), name.get_ref().to_string());
            Some((name, text.into_inner()))
        });
        entries.collect()
    }

    pub fn flag(self, default: bool) -> bool {
        const KIND: &str = "true or false";
        self.declare(Shape::Flag, Some(default.into()));
        let read = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            DeValue::String(_) => match self.text_of(value, KIND)?.get_ref().trim() {
                "true" => Some(true),
                "false" => Some(false),
                _ => self.wrong_kind(value, KIND),
            },
            _ => self.wrong_kind(value, KIND),
        };
        self.value().and_then(read).unwrap_or(default)
    }

    pub fn count(self, default: u32, range: RangeInclusive<u32>) -> u32 {
        self.declare(Shape::Count(range.clone()), Some(default.into()));
        self.read_count(&range).unwrap_or(default)
    }

    /// A count without a default.
    pub fn count_if_any(self, range: RangeInclusive<u32>) -> Option<u32> {
        self.declare(Shape::Count(range.clone()), None);
        self.read_count(&range)
    }

    /// A part of a whole, such as 0.1.
    pub fn share(self, default: f64, range: RangeInclusive<f64>) -> f64 {
        const KIND: &str = "a number such as 0.1";
        self.declare(Shape::Share(range.clone()), Some(default.into()));
        let read = |value: &Spanned<DeValue<'_>>| {
            let share = match value.get_ref() {
                DeValue::Integer(number) => number.as_str().replace('_', "").parse().ok(),
                DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
                DeValue::String(_) => self.text_of(value, KIND)?.get_ref().trim().parse().ok(),
                _ => return self.wrong_kind(value, KIND),
            };
            self.within(value, share, &range, |share| share.to_string())
        };
        self.value().and_then(read).unwrap_or(default)
    }

    pub fn duration(self, default: Duration, range: RangeInclusive<Duration>) -> Duration {
        self.declare(Shape::Duration(range.clone()), Some(show_duration(default).into()));
        self.read_duration(&range).unwrap_or(default)
    }

    /// A duration without a default.
    pub fn duration_if_any(self, range: RangeInclusive<Duration>) -> Option<Duration> {
        self.declare(Shape::Duration(range.clone()), None);
        self.read_duration(&range)
    }

    pub fn size(self, default: u64, range: RangeInclusive<u64>) -> u64 {
        self.declare(Shape::Size(range.clone()), Some(show_size(default).into()));
        self.read_size(&range).unwrap_or(default)
    }

    /// A size without a default.
    pub fn size_if_any(self, range: RangeInclusive<u64>) -> Option<u64> {
        self.declare(Shape::Size(range.clone()), None);
        self.read_size(&range)
    }

    /// One of a closed list of words.
    pub fn choice<T: Choice>(self, default: T) -> T {
        self.read_choice(Some(default.word())).unwrap_or(default)
    }

    /// One of a closed list of words, without a default.
    pub fn choice_if_any<T: Choice>(self) -> Option<T> {
        self.read_choice(None)
    }

    /// A table of settings. One that is not written is read all the same: that gives the defaults.
    pub fn table<T>(self, read: impl FnOnce(&Section<'a>) -> T) -> T {
        let table = self.as_table("a table", self.section.inner(self.name, None, None).title());
        let inner = self.section.inner(self.name, self.value().map(Spanned::span), table);
        let result = read(&inner);
        self.declare(Shape::Table(inner.finish()), None);
        result
    }

    /// Tables of one kind under names of the user's own, read in the order of the file. Empty when
    /// the key is absent or no table.
    pub fn tables<T>(
        self,
        names: Names,
        count: RangeInclusive<usize>,
        mut read: impl FnMut(&Spanned<Cow<'a, str>>, &Section<'a>) -> T,
    ) -> Vec<T> {
        let tables = self
            .as_table(&format!("a table of {}", self.name), format!("[{}.NAME]", self.name))
            .inspect(|tables| self.check_count(tables.len(), &count));
        let outer = self.section.inner(self.name, None, None);
        let (mut each, mut results) = (Keys::default(), Vec::new());
        for (name, value) in tables.map(in_order).unwrap_or_default() {
            let table = value.get_ref().as_table();
            let inner = outer.inner(name.get_ref(), Some(name.span()), table);
            if table.is_none() {
                let message = format!("{} must be a table", inner.title());
                self.section.reading().note(value.span(), message, None);
                continue;
            }
            results.push(read(name, &inner));
            each = inner.finish();
        }
        self.declare(Shape::Tables { names, count, each }, None);
        results
    }

    /// The table that is written here; another kind of value is noted.
    fn as_table(&self, kind: &str, title: String) -> Option<&'a DeTable<'a>> {
        let value = self.value()?;
        let table = value.get_ref().as_table();
        if table.is_none() {
            let message = format!("`{}` must be {kind}", self.name);
            self.section.blame_key(self.name, message, format!("write {title}"));
        }
        table
    }

    fn check_count(&self, found: usize, count: &RangeInclusive<usize>) {
        if count.contains(&found) {
            return;
        }
        let (low, high, name) = (count.start(), count.end(), self.name);
        let message = format!("there must be between {low} and {high} {name}, not {found}");
        self.section.reading().note(self.section.span_of(name), message, None);
    }

    fn declare(&self, shape: Shape, default: Option<Value>) {
        let fallback = match (&self.fallback, default) {
            (Fallback::Nothing, Some(default)) => Fallback::Value(default),
            (said, _) => said.clone(),
        };
        let (name, about, required) = (self.name, self.about, self.required);
        self.section.declare(Declared { name, about, shape, fallback, required });
    }

    fn value(&self) -> Option<&'a Spanned<DeValue<'a>>> {
        self.section.value(self.name)
    }

    fn read_count(&self, range: &RangeInclusive<u32>) -> Option<u32> {
        const KIND: &str = "a whole number";
        let value = self.value()?;
        // A string is welcome as well: it is how `${WORKERS:-4}` is written.
        let number = match value.get_ref() {
            DeValue::Integer(number) => whole(number.as_str(), number.radix()),
            DeValue::String(_) => whole(self.text_of(value, KIND)?.get_ref().trim(), 10),
            _ => return self.wrong_kind(value, KIND),
        };
        let number = number.and_then(|number| u32::try_from(number).ok());
        self.within(value, number, range, |number| number.to_string())
    }

    fn read_size(&self, range: &RangeInclusive<u64>) -> Option<u64> {
        let value = self.value()?;
        let bytes = match value.get_ref() {
            DeValue::Integer(number) => whole(number.as_str(), number.radix()),
            DeValue::String(_) => Some(self.measured(value, SIZE, units::size)?),
            _ => return self.wrong_kind(value, SIZE),
        };
        self.within(value, bytes, range, |bytes| show_size(*bytes))
    }

    fn read_choice<T: Choice>(&self, default: Option<&'static str>) -> Option<T> {
        let words: Vec<&'static str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        self.declare(Shape::Choice(words.clone()), default.map(Value::from));
        let text = self.text_of(self.value()?, "a string")?;
        let found = T::WORDS.iter().find(|(word, _)| word == text.get_ref());
        if found.is_none() {
            let message = format!("unknown value `{}` for `{}`", text.get_ref(), self.name);
            let help = did_you_mean(text.get_ref(), &words, "known values");
            self.section.reading().note(text.span(), message, Some(help));
        }
        found.map(|(_, choice)| *choice)
    }

    fn read_duration(&self, range: &RangeInclusive<Duration>) -> Option<Duration> {
        let value = self.value()?;
        let duration = match value.get_ref() {
            DeValue::Integer(number) => {
                whole(number.as_str(), number.radix()).and_then(|n| units::seconds(n as f64))
            }
            DeValue::Float(number) => number.as_str().parse().ok().and_then(units::seconds),
            DeValue::String(_) => Some(self.measured(value, DURATION, units::duration)?),
            _ => return self.wrong_kind(value, DURATION),
        };
        self.within(value, duration, range, |duration| show_duration(*duration))
    }

    fn text_of(&self, value: &Spanned<DeValue<'_>>, kind: &str) -> Option<Spanned<String>> {
        let DeValue::String(text) = value.get_ref() else {
            return self.wrong_kind(value, kind);
        };
        match substitute(text, self.section.reading().around.variable) {
            Ok(text) => Some(Spanned::new(value.span(), text)),
            Err(unresolved) => {
                let reading = self.section.reading();
                reading.note(value.span(), unresolved.message, Some(unresolved.help));
                None
            }
        }
    }

    fn measured<T>(
        &self,
        value: &Spanned<DeValue<'_>>,
        kind: &str,
        parse: fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let text = self.text_of(value, kind)?;
        let error = match parse(text.get_ref()) {
            Ok(parsed) => return Some(parsed),
            Err(error) => error,
        };
        let help = match &error {
            UnitError::UnknownUnit { unit, known } => did_you_mean(unit, known, "known units"),
            _ => format!("write {kind}"),
        };
        let message = format!("`{}`: {error}", self.name);
        self.section.reading().note(value.span(), message, Some(help));
        None
    }

    /// The value if it is there and within its bounds; `None` is noted.
    fn within<T: PartialOrd>(
        &self,
        value: &Spanned<DeValue<'_>>,
        found: Option<T>,
        range: &RangeInclusive<T>,
        show: impl Fn(&T) -> String,
    ) -> Option<T> {
        let fits = found.filter(|found| range.contains(found));
        if fits.is_none() {
            let (low, high) = (show(range.start()), show(range.end()));
            let message = format!("`{}` must be between {low} and {high}", self.name);
            self.section.reading().note(value.span(), message, None);
        }
        fits
    }

    fn wrong_kind<T>(&self, value: &Spanned<DeValue<'_>>, kind: &str) -> Option<T> {
        let found = article(value.get_ref().type_str());
        let message = format!("`{}` must be {kind}, not {found}", self.name);
        self.section.reading().note(value.span(), message, None);
        None
    }
}

type Entry<'a> = (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

fn in_order<'a>(table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
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
