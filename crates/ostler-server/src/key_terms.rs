//! What a key means, for the description: every operation that changes something takes one, and can
//! refuse because of it.

use serde_json::{Value, json};

use crate::openapi::problem_response;

/// What may be said because of a key, by status.
pub(crate) const KEY_PROBLEMS: [(&str, &str); 6] = [
    ("409", "key_in_flight, outcome_unknown, answer_not_kept"),
    ("422", "key_reused"),
    ("429", "key_quota_exceeded, too_many_keyed_requests"),
    ("500", "store_doubtful"),
    ("503", "store_unavailable"),
    ("507", "store_full"),
];

const CHANGING: [&str; 4] = ["post", "put", "patch", "delete"];

/// Adds the header and what it may lead to, to those operations of a path that change something.
pub(crate) fn describe(path: &mut Value) {
    for method in CHANGING {
        let Some(operation) = path.get_mut(method) else { continue };
        if operation.get("parameters").is_none() {
            operation["parameters"] = json!([]);
        }
        if let Some(parameters) = operation["parameters"].as_array_mut() {
            parameters.push(header());
        }
        for (status, codes) in KEY_PROBLEMS {
            let known = operation["responses"][status]["description"].as_str().unwrap_or_default();
            let all = if known.is_empty() { codes.to_owned() } else { joined(known, codes) };
            operation["responses"][status] = problem_response(&all);
        }
    }
}

fn joined(known: &str, more: &str) -> String {
    let new = more.split(", ").filter(|code| !known.split(", ").any(|known| known == *code));
    known.split(", ").chain(new).collect::<Vec<_>>().join(", ")
}

fn header() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "description": "What comes again under the same key is done once and answered as it was.",
        "schema": { "type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_something_takes_a_key() {
        let conflict = json!({ "409": { "description": "store_unavailable, key_in_flight" } });
        let mut path = json!({ "get": { "responses": {} }, "post": { "responses": conflict } });
        describe(&mut path);
        assert_eq!(path["get"], json!({ "responses": {} }));
        assert_eq!(path["post"]["parameters"][0]["name"], "Idempotency-Key");
        let codes = path["post"]["responses"]["409"]["description"].as_str().unwrap();
        assert_eq!(codes, "store_unavailable, key_in_flight, outcome_unknown, answer_not_kept");
        assert!(path["post"]["responses"].get("422").is_some());
    }
}
