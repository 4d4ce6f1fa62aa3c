//! Text from elsewhere, made safe for a terminal.
//!
//! Separate because everything that comes from a server, a worker or a file passes here before it
//! is shown to a person.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with control characters written as escapes. Newlines and tabs stay.
///
/// Bidirectional overrides are control characters here too: they let text pose as other text.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_unsafe(c) {
            true => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The same on one line: newlines and tabs are escaped as well.
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u001b[2Jb");
        assert_eq!(printable("\u{9b}31m\u{7f}\r"), "\\u009b31m\\u007f\\u000d");
        assert_eq!(printable("ok\u{202e}ko"), "ok\\u202eko");
    }

    #[test]
    fn plain_text_passes_untouched() {
        assert!(matches!(printable("né\tà\n日本"), Cow::Borrowed(_)));
        assert_eq!(one_line("a\n\tb"), "a\\n\\tb");
    }
}
