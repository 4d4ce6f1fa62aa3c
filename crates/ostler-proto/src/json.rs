//! JSON as text. Values of callers and workers are never built into trees here: they are checked
//! without recursion and handed on as they were spelled, so depth and number size do not matter.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

/// A piece of JSON text that is known to be well formed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    pub fn parse(text: impl Into<String>) -> Result<JsonText, InvalidJson> {
        let raw = RawValue::from_string(text.into());
        raw.map(JsonText).map_err(|e| InvalidJson::new(&e))
    }

    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &JsonText) -> bool {
        self.as_str() == other.as_str()
    }
}

impl From<Box<RawValue>> for JsonText {
    fn from(raw: Box<RawValue>) -> JsonText {
        JsonText(raw)
    }
}

/// Why a text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not valid JSON: {why}")]
pub struct InvalidJson {
    pub why: String,
}

impl InvalidJson {
    fn new(error: &serde_json::Error) -> InvalidJson {
        InvalidJson { why: error.to_string() }
    }
}

/// Checks that `text` is one JSON value. Depth costs memory in proportion, never stack.
pub fn check_json(text: &[u8]) -> Result<(), InvalidJson> {
    serde_json::from_slice::<&RawValue>(text).map(|_| ()).map_err(|e| InvalidJson::new(&e))
}

/// The same value without raw newlines. Valid JSON has them only between tokens, so a space does
/// as well; the text must have passed [`check_json`].
pub(crate) fn on_one_line(text: &[u8]) -> Option<Vec<u8>> {
    if !text.contains(&b'\n') && !text.contains(&b'\r') {
        return None;
    }
    let flat = |b: &u8| if matches!(b, b'\n' | b'\r') { b' ' } else { *b };
    Some(text.iter().map(flat).collect())
}

/// Reads a string for people: a lone surrogate in it (a file name that was not UTF-8, in an error
/// message) becomes U+FFFD and does not cost the worker its life.
pub(crate) fn lossy<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct Text;
    impl de::Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    from.deserialize_bytes(Text)
}

/// [`lossy`] for a field that may be absent or null.
pub(crate) fn lossy_option<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Text(#[serde(deserialize_with = "lossy")] String);
    Ok(Option::<Text>::deserialize(from)?.map(|text| text.0))
}

/// Tells an absent value from a `null`, which is a value like any other.
pub(crate) fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// An id: the decimal form of a u64, as a string, since JSON numbers lose digits past 2^53.
pub(crate) fn id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    struct Id;
    impl<'de> de::Visitor<'de> for Id {
        type Value = Option<u64>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an id as it was sent: a decimal number in a string")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Option<u64>, E> {
            Ok(None)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<u64>, E> {
            let invalid = || E::invalid_value(de::Unexpected::Str(text), &self);
            parse_id(text).map(Some).ok_or_else(invalid)
        }
    }
    // Not `deserialize_option`: a string would then need a second visitor.
    from.deserialize_any(Id)
}

/// One spelling per id: no sign, no leading zero.
fn parse_id(text: &str) -> Option<u64> {
    let canonical =
        text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

/// Writes an optional id in the form that [`id`] reads.
pub(crate) fn write_id<S: serde::Serializer>(id: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => to.collect_str(id),
        None => to.serialize_none(),
    }
}
