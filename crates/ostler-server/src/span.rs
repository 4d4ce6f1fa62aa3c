//! Lengths of time as this API takes them: a number of seconds, or a number with its unit.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// More than this is not meant: ten years.
const MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Zero is one, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub Duration);

impl Span {
    fn of_seconds(seconds: f64) -> Option<Self> {
        let span = Duration::try_from_secs_f64(seconds).ok()?;
        (span <= MAX).then_some(Span(span))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let scale = match unit.trim() {
            "" | "s" => 1.0,
            "ms" => 0.001,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        Span::of_seconds(number.parse::<f64>().ok()? * scale)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Given;
        impl Visitor<'_> for Given {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds, or a number with its unit (30, \"1.5s\", \"200ms\", \"5m\", \"1h\", \"2d\")")
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Span, E> {
                self.visit_f64(seconds as f64)
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Span, E> {
                self.visit_f64(seconds as f64)
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<Span, E> {
                Span::of_seconds(seconds)
                    .ok_or_else(|| E::custom(format!("`{seconds}` is not from 0 s to 10 years")))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                Span::parse(text).ok_or_else(|| {
                    E::custom(format!("`{text}` is no length of time; use 30, \"1.5s\" or \"5m\""))
                })
            }
        }
        deserializer.deserialize_any(Given)
    }
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        let seconds = ObjectBuilder::new()
            .schema_type(Type::Number)
            .minimum(Some(0))
            .maximum(Some(MAX.as_secs()));
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(r"^[0-9]{1,4}(\.[0-9]{1,3})?(ms|s|m|h)$"));
        let about = "Seconds, or a number with its unit: ms, s, m, h or d.";
        OneOfBuilder::new().item(seconds).item(text).description(Some(about)).into()
    }
}

impl ToSchema for Span {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Duration, serde_json::Error> {
        serde_json::from_str::<Span>(json).map(|Span(span)| span)
    }

    #[test]
    fn spans_are_seconds_or_have_a_unit() {
        for (json, ms) in [
            ("2", 2_000),
            ("0", 0),
            ("1.5", 1_500),
            (r#""2""#, 2_000),
            (r#""1.5s""#, 1_500),
            (r#""200ms""#, 200),
            (r#""5 m""#, 300_000),
            (r#""2d""#, 172_800_000),
        ] {
            assert_eq!(read(json).unwrap(), Duration::from_millis(ms), "{json}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for json in ["-1", "1e12", "true", "null", "[]", r#""""#, r#""1 year""#, r#""-1s""#] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
