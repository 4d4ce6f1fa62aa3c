//! A number that stands for a JSON value: the same for the same value in any process and any year,
//! whatever the order of its keys and the space between them.
//!
//! Names, texts and numbers count as they are written. So no number is too large to be told from
//! the next one; and nothing is built, so no value is nested too deep.

use serde_json::value::RawValue;

/// FNV-1a of 128 bits.
#[derive(Debug)]
pub(crate) struct Digest(u128);

const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Default for Digest {
    fn default() -> Self {
        Digest(BASIS)
    }
}

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// With its length, so that two texts are not one.
    pub fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    pub fn json(&mut self, value: &RawValue) {
        let (mut level, mut around) = (Level::of(""), Vec::new());
        for token in Tokens(value.get()) {
            match token {
                "[" | "{" => around.push(std::mem::replace(&mut level, Level::of(token))),
                "]" | "}" => {
                    let Some(outer) = around.pop() else { break };
                    let closed = std::mem::replace(&mut level, outer).close();
                    level.value(closed);
                }
                plain => level.plain(plain),
            }
        }
        self.bytes(&level.close().to_le_bytes());
    }

    pub fn finish(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// A list or an object that is being read, or the whole of the text.
struct Level<'a> {
    digest: Digest,
    object: bool,
    /// The name of the value that comes next.
    name: Option<&'a str>,
    fields: Vec<(&'a str, u128)>,
}

impl<'a> Level<'a> {
    fn of(bracket: &str) -> Level<'a> {
        let mut digest = Digest::default();
        digest.text(bracket);
        Level { digest, object: bracket == "{", name: None, fields: Vec::new() }
    }

    /// A name, a text, a number, or one of the three words.
    fn plain(&mut self, text: &'a str) {
        if self.object && self.name.is_none() {
            self.name = Some(text);
        } else {
            let mut digest = Digest::default();
            digest.text(text);
            self.value(digest.0);
        }
    }

    fn value(&mut self, value: u128) {
        match self.name.take() {
            Some(name) => self.fields.push((name, value)),
            None => self.digest.bytes(&value.to_le_bytes()),
        }
    }

    fn close(mut self) -> u128 {
        self.fields.sort_unstable();
        for (name, value) in self.fields {
            self.digest.text(name);
            self.digest.bytes(&value.to_le_bytes());
        }
        self.digest.0
    }
}

/// What a JSON text consists of, but for the space, the commas and the colons.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start_matches(between);
        let length = match text.bytes().next()? {
            b'[' | b']' | b'{' | b'}' => 1,
            b'"' => text_length(text),
            _ => text.find(|c| between(c) || c == ']' || c == '}').unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

fn between(c: char) -> bool {
    c.is_ascii_whitespace() || c == ',' || c == ':'
}

/// Up to the quote that ends it.
fn text_length(text: &str) -> usize {
    let mut escaped = false;
    let ends = |byte: &u8| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    };
    text.as_bytes()[1..].iter().position(ends).map_or(text.len(), |at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let mut digest = Digest::default();
        digest.json(serde_json::from_str(text).expect("JSON"));
        digest.finish()
    }

    #[test]
    fn it_is_the_same_in_every_process() {
        let mut digest = Digest::default();
        digest.bytes(b"foobar");
        assert_eq!(digest.finish(), "343e1662793c64bf6f0d3597ba446f18");
    }

    #[test]
    fn the_order_of_keys_and_space_do_not_count() {
        let value = of(r#"{"a":1,"b":[2,{"c":"]","d":null}]}"#);
        assert_eq!(of(r#"{"b":[2,{"d":null,"c":"]"}],"a":1}"#), value);
        assert_eq!(of(" { \"a\" : 1 ,\n\"b\":\t[2, {\"c\": \"]\", \"d\": null} ] } "), value);
    }

    #[test]
    fn everything_else_counts() {
        let others = [
            r#"{"a":1,"b":[2]}"#,
            r#"{"a":1,"b":[3]}"#,
            r#"{"a":2,"b":[1]}"#,
            r#"{"a":"1","b":[2]}"#,
            r#"{"a":1,"b":[[2]]}"#,
            r#"{"a":1,"b":[2],"c":null}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{},"b":1}"#,
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "[1,[2]]",
            r#"["1","2"]"#,
            r#"["1,2"]"#,
            r#"["1\",\"2"]"#,
            r#"["12"]"#,
            r#"["\\","2"]"#,
            r#"["a b"]"#,
            r#"["ab"]"#,
            "12",
            "[]",
            "{}",
            "null",
            "false",
            "1180591620717411303424",
            "1180591620717411303425",
        ];
        for (at, one) in others.iter().enumerate() {
            for other in &others[at + 1..] {
                assert_ne!(of(one), of(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn nothing_is_too_large_or_too_deep() {
        let (much, more) = ("9".repeat(400), "9".repeat(401));
        assert_ne!(of(&much), of(&more));
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_ne!(of(&deep(100_000)), of(&deep(100_001)));
    }
}
