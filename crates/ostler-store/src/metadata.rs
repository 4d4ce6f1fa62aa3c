//! Metadata is JSON text, always an object, and kept as text: numbers stay as they were written,
//! however large. What is taken was read as a whole once, so nesting, escapes and numbers that a
//! reader would choke on are refused here and not there.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::error::SessionError;

type Members = BTreeMap<String, Box<RawValue>>;

static EMPTY: LazyLock<Arc<RawValue>> = LazyLock::new(|| Arc::from(object(&Members::new())));

/// What a session without metadata has; all of them share it.
pub(crate) fn empty() -> Arc<RawValue> {
    Arc::clone(&EMPTY)
}

/// Metadata, or a patch of it, that may be kept.
pub(crate) fn check(given: &RawValue) -> Result<(), SessionError> {
    match serde_json::from_str::<Map<String, Value>>(given.get()) {
        Ok(_) => Ok(()),
        Err(error) => Err(SessionError::Invalid(format!("metadata is a JSON object: {error}"))),
    }
}

/// The target after a merge patch (RFC 7396). Both were checked; what is not an object counts as an
/// empty one.
pub(crate) fn merged(target: &RawValue, patch: &RawValue) -> Box<RawValue> {
    let mut members = members(target);
    for (name, value) in self::members(patch) {
        if value.get() == "null" {
            members.remove(&name);
        } else if value.get().starts_with('{') {
            let within = members.remove(&name).unwrap_or_else(|| value_of("{}"));
            members.insert(name, merged(&within, &value));
        } else {
            members.insert(name, value);
        }
    }
    object(&members)
}

fn members(value: &RawValue) -> Members {
    serde_json::from_str(value.get()).unwrap_or_default()
}

fn object(members: &Members) -> Box<RawValue> {
    to_raw_value(members).expect("texts by name can be written as JSON")
}

fn value_of(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(target: &str, patch: &str) -> String {
        merged(&value_of(target), &value_of(patch)).get().to_owned()
    }

    /// The examples of RFC 7396 in which both sides are objects.
    #[test]
    fn patches_merge_as_the_standard_has_it() {
        let examples = [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            (r#"{"a":"text"}"#, r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
        ];
        for (target, patch, expected) in examples {
            assert_eq!(merge(target, patch), expected, "{target} and {patch}");
        }
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let large = "123456789012345678901234567890";
        let target = format!(r#"{{"deep":{{"n":{large},"x":1.0}}}}"#);
        assert_eq!(
            merge(&target, r#"{"deep":{"y":1e2}}"#),
            format!(r#"{{"deep":{{"n":{large},"x":1.0,"y":1e2}}}}"#)
        );
    }

    #[test]
    fn what_a_reader_would_choke_on_is_refused() {
        let nested = format!(r#"{{"a":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        for bad in ["null", "[]", "1", r#""text""#, r#"{"a":"\ud800"}"#, r#"{"a":1e999}"#, &nested]
        {
            let value = RawValue::from_string(bad.to_owned()).unwrap();
            assert!(matches!(check(&value), Err(SessionError::Invalid(_))), "{bad}");
        }
        for good in ["{}", r#"{"a":"\u0000"}"#, r#"{"a":18446744073709551616}"#] {
            assert_eq!(check(&value_of(good)), Ok(()), "{good}");
        }
    }
}
