//! The text of a configuration file, and places in it.
//!
//! Separate because it is the only code that counts lines and draws carets. It knows nothing of
//! TOML or of settings.

use std::fmt::Write as _;
use std::ops::Range;

use super::postgres::struck_out;
use crate::text::printable;

/// Columns of a source line that are shown around an error.
const WINDOW: usize = 100;

/// A file's name as it is shown, and its text.
#[derive(Debug, Clone)]
pub struct Source {
    pub name: String,
    pub text: String,
}

/// A place in a source, counted from 1; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// Where a byte offset is. An offset beyond the end is the end.
    pub fn position(&self, offset: usize) -> Position {
        let before = &self.text[..self.floor(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// The line at the start of `span`, with carets under the part that `span` covers:
    ///
    /// ```text
    ///   |
    /// 7 | sise = 4
    ///   | ^^^^
    /// ```
    pub fn excerpt(&self, span: &Range<usize>) -> String {
        let start = self.floor(span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[line_start..].lines().next().unwrap_or("");
        let line_end = line_start + line.len();
        let end = self.floor(span.end).clamp(start.min(line_end), line_end);

        let column = self.text[line_start..start].chars().count();
        let width = self.text[start.min(end)..end].chars().count().max(1);
        let skipped = column.saturating_sub(WINDOW / 2);
        // Struck out first: a window could cut off what tells a password.
        let shown: String = struck_out(line).chars().skip(skipped).take(WINDOW).collect();

        let number = self.position(start).line.to_string();
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(column - skipped);
        let carets = "^".repeat(width.min(WINDOW - (column - skipped).min(WINDOW - 1)));
        let mut out = String::new();
        // One column per character keeps the caret under its place: a tab or a control character
        // is shown as one space.
        let shown = printable(&shown.replace(|c: char| c.is_control(), " ")).into_owned();
        let _ = write!(out, "{gutter} |\n{number} | {shown}\n{gutter} | {indent}{carets}");
        out
    }

    fn floor(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("x", "a\nbüc\n");
        let at = |offset| source.position(offset);
        assert_eq!(at(0), Position { line: 1, column: 1 });
        assert_eq!(at(2), Position { line: 2, column: 1 });
        assert_eq!(at(5), Position { line: 2, column: 3 });
        assert_eq!(at(4), Position { line: 2, column: 2 }, "inside ü");
        assert_eq!(at(999), Position { line: 3, column: 1 });
    }

    #[test]
    fn the_caret_stands_under_the_span() {
        let source = Source::new("x", "one\n\tsise = 4\n");
        assert_eq!(source.excerpt(&(5..9)), "  |\n2 |  sise = 4\n  |  ^^^^");
    }

    #[test]
    fn a_span_over_several_lines_is_marked_on_its_first() {
        let source = Source::new("x", "ab = [\n1,\n]");
        assert_eq!(source.excerpt(&(5..11)), "  |\n1 | ab = [\n  |      ^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}HERE{}", "x".repeat(500), "y".repeat(500));
        let excerpt = Source::new("x", text).excerpt(&(500..504));
        let widest = excerpt.lines().map(|line| line.chars().count()).max();
        assert!(excerpt.contains("xHEREy"), "{excerpt}");
        assert!(widest <= Some(WINDOW + 4), "{excerpt}");
    }

    #[test]
    fn control_characters_do_not_reach_the_reader() {
        let excerpt = Source::new("x", "a = \u{1b}[31m").excerpt(&(4..5));
        assert!(!excerpt.contains('\u{1b}'), "{excerpt:?}");
    }
}
