//! One segment of a path: a name as it is written there, and as it is meant.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::problem::Problem;

/// The one parameter of a route's path.
#[derive(Debug)]
pub(crate) struct Segment(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Segment(name)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// The two parameters of a route's path.
#[derive(Debug)]
pub(crate) struct Segments(pub (String, String));

impl<S: Send + Sync> FromRequestParts<S> for Segments {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Segments(names)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// A segment without its percent signs.
pub(crate) fn decoded(segment: &str) -> Result<String, Problem> {
    if !segment.contains('%') {
        return Ok(segment.to_owned());
    }
    let bad = || Problem::bad_request(format!("`{segment}` is not percent-encoded UTF-8"));
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(bad)?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

/// A name as a segment. Braces would be taken for a parameter.
pub(crate) fn encoded(name: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(byte.into());
            }
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_written() {
        assert_eq!(encoded("a.b-c_1"), "a.b-c_1");
        assert_eq!(encoded("a/{b} ü"), "a%2F%7Bb%7D%20%C3%BC");
        assert_eq!(decoded("a%2F%7Bb%7D%20%C3%BC").unwrap(), "a/{b} ü");
    }

    #[test]
    fn percent_signs_that_mean_nothing_are_refused() {
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert!(decoded(bad).is_err(), "{bad}");
        }
    }
}
