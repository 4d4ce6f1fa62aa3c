//! A payload that fits a function, made from the JSON schema that the worker announces. It need
//! not mean anything: it is there to reach the function.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// No sensible schema asks for more.
const ITEMS_MAX: u64 = 100;

/// Keyword arguments for the required parameters; `None` where none is needed or known.
pub(super) fn fitting(parameters: &str) -> Option<Bytes> {
    let schema: Value = serde_json::from_str(parameters).ok()?;
    let arguments = object(&schema);
    (!arguments.is_empty()).then(|| Value::Object(arguments).to_string().into())
}

/// Whether the schema refuses arguments that it does not name.
pub(super) fn is_closed(parameters: &str) -> bool {
    let schema: Option<Value> = serde_json::from_str(parameters).ok();
    schema.is_some_and(|schema| schema["additionalProperties"] == json!(false))
}

fn object(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let sample = |name: &str| value(schema["properties"].get(name));
    required.map(|name| (name.to_owned(), sample(name))).collect()
}

/// The places that are named, and as many more as it must have.
fn array(schema: &Value) -> Vec<Value> {
    let mut items: Vec<Value> = schema["prefixItems"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| value(Some(item)))
        .collect();
    let least = schema["minItems"].as_u64().unwrap_or(0).min(ITEMS_MAX);
    while (items.len() as u64) < least {
        items.push(value(schema.get("items")));
    }
    items
}

fn value(schema: Option<&Value>) -> Value {
    let Some(schema) = schema else { return Value::Null };
    let given = schema["enum"].get(0).or_else(|| schema.get("const"));
    if let Some(one) = given.or_else(|| schema.get("default")) {
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
        Some("array") => array(schema).into(),
        Some("object") => object(schema).into(),
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

    #[test]
    fn what_is_inside_fits_too() {
        let schema = r#"{"required":["p"],"properties":{"p":{"type":"object","required":["at"],
            "properties":{"at":{"type":"array","prefixItems":[{"type":"integer"},{"const":"x"}],
            "minItems":3,"items":{"type":"boolean"}}}}}}"#;
        let expected = br#"{"p":{"at":[5,"x",true]}}"#.as_slice();
        assert_eq!(fitting(schema).as_deref(), Some(expected));
    }
}
