//! The name of a pool: what may be one, and how a file gets one.

use std::fmt;
use std::path::Path;

use super::declared::Names;

const LENGTH_MAX: usize = 63;

/// Workers call the server itself, and the program that embeds it, by these names.
const RESERVED: &[&str] = &["ostler", "host"];

/// A lower-case letter, then up to 62 letters, digits, `_` or `-`, and neither `ostler` nor `host`.
/// It appears in paths, metrics and worker names, so it needs no escaping anywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolName(String);

impl PoolName {
    /// The same as a regular expression.
    pub(super) const RULE: Names = Names { pattern: "^[a-z][a-z0-9_-]{0,62}$", reserved: RESERVED };

    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() <= LENGTH_MAX
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(is_inner)
            && !RESERVED.contains(&text);
        fits.then(|| Self(text.to_owned()))
    }

    /// The name of the pool that serves a file: its stem, with what is not allowed replaced.
    pub fn of_file(file: &Path) -> Self {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        Self::like(&stem).unwrap_or_else(|| Self("pool".to_owned()))
    }

    /// The nearest allowed name, if anything of the text can be kept.
    pub fn like(text: &str) -> Option<Self> {
        let mapped: String = text
            .to_lowercase()
            .chars()
            .map(|c| if is_inner(c) { c } else { '-' })
            .skip_while(|c| !c.is_ascii_lowercase())
            .take(LENGTH_MAX)
            .collect();
        Self::parse(mapped.trim_end_matches('-'))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn is_inner(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_letter_and_up_to_62_more() {
        for name in ["a", "py", "a-b_c9", &"x".repeat(63)] {
            assert!(PoolName::parse(name).is_some(), "{name}");
        }
        for name in
            ["", "ostler", "host", "9a", "-a", "_a", "Py", "a b", "a.b", "ä", &"x".repeat(64)]
        {
            assert!(PoolName::parse(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_file_lends_its_stem() {
        for (file, name) in [
            ("hello.py", "hello"),
            ("dir/My Worker.v2.py", "my-worker-v2"),
            ("9lives.py", "lives"),
            ("日本.py", "pool"),
            (".py", "py"),
            ("", "pool"),
        ] {
            assert_eq!(PoolName::of_file(Path::new(file)).as_str(), name, "{file}");
        }
    }
}
