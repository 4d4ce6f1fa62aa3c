//! A payload that fits a function, made from the JSON schema that the worker announces. It need
//! not mean anything: it is there to reach the function.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Keyword arguments for the required parameters; `None` where none is needed or known.
pub(super) fn fitting(parameters: &str) -> Option<Bytes> {
    let schema: Value = serde_json::from_str(parameters).ok()?;
    let required = schema.get("required")?.as_array()?;
    let sample = |name: &str| value(schema.pointer(&format!("/properties/{name}")));
    let names = required.iter().filter_map(Value::as_str);
    let arguments: Map<String, Value> = names.map(|name| (name.to_owned(), sample(name))).collect();
    (!arguments.is_empty()).then(|| Value::Object(arguments).to_string().into())
}

/// Whether the schema refuses arguments that it does not name.
pub(super) fn is_closed(parameters: &str) -> bool {
    let schema: Option<Value> = serde_json::from_str(parameters).ok();
    schema.is_some_and(|schema| schema["additionalProperties"] == json!(false))
}

fn value(schema: Option<&Value>) -> Value {
    let Some(schema) = schema else { return Value::Null };
    if let Some(one) = schema["enum"].get(0).or_else(|| schema.get("default")) {
        return one.clone();
    }
    if let Some(member) = schema["anyOf"].get(0) {
        return value(Some(member));
    }
    match schema["type"].as_str() {
        Some("integer") => json!(5),
        Some("number") => json!(0.5),
        Some("string") => json!("conform"),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_required_is_given() {
        let schema = r#"{"type":"object","required":["n","s"],"properties":{
            "n":{"type":"integer"},"s":{"anyOf":[{"type":"string"},{"type":"null"}]},
            "o":{"type":"boolean"}}}"#;
        assert_eq!(fitting(schema).as_deref(), Some(br#"{"n":5,"s":"conform"}"#.as_slice()));
        assert_eq!(fitting(r#"{"type":"object","properties":{}}"#), None);
        assert_eq!(fitting("true"), None);
    }
}
