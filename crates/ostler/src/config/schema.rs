//! The JSON schema of the configuration, for editors.
//!
//! Made of what the readers declare, so that it describes what they read and nothing else. It
//! tells single values; what must agree between them only the readers know.

use serde_json::{Map, Value, json};

use super::declared::{Declared, Fallback, Keys, Shape};
use super::document::vocabulary;
use super::units::{duration_units, size_units};

/// A text with a variable in it may become anything.
const VARIABLE: &str = r"\$\{";

/// The schema of `ostler.toml`. Draft 7: it is the newest that the editors' TOML plugins all read.
pub fn schema() -> Value {
    let mut schema = table(&vocabulary());
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("ostler.toml");
    schema["description"] = json!("The configuration of Ostler.");
    schema
}

fn table(keys: &Keys) -> Value {
    let properties: Map<String, Value> =
        keys.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let mut schema =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    let required: Vec<&str> =
        keys.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let either = keys.either.iter().map(exactly_one);
    let pairs: Vec<Value> = either.chain(keys.at_most_one.iter().map(not_both)).collect();
    if !pairs.is_empty() {
        schema["allOf"] = json!(pairs);
    }
    schema
}

fn exactly_one(pair: &[&'static str; 2]) -> Value {
    json!({ "oneOf": pair.map(|name| json!({ "required": [name] })) })
}

fn not_both(pair: &[&'static str; 2]) -> Value {
    json!({ "not": { "required": pair } })
}

fn property(key: &Declared) -> Value {
    let mut schema = value(&key.shape);
    schema["description"] = match key.fallback {
        Fallback::Words(words) => json!(format!("{} (default: {words})", key.about)),
        _ => json!(key.about),
    };
    if let Fallback::Value(default) = &key.fallback {
        schema["default"] = default.clone();
    }
    schema
}

fn value(shape: &Shape) -> Value {
    match shape {
        Shape::Version(version) => json!({ "const": version }),
        Shape::Text => json!({ "type": "string" }),
        Shape::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Shape::TextTable => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        Shape::Flag => or_text(json!({ "type": "boolean" }), r"^\s*(true|false)\s*$"),
        Shape::Count(range) => or_text(
            json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() }),
            r"^\s*[0-9_]+\s*$",
        ),
        Shape::Share(range) => or_text(
            json!({ "type": "number", "minimum": range.start(), "maximum": range.end() }),
            r"^\s*[0-9._]+\s*$",
        ),
        Shape::Duration(range) => or_text(
            json!({
                "type": "number",
                "minimum": range.start().as_secs_f64(),
                "maximum": range.end().as_secs_f64(),
            }),
            &measured(duration_units()),
        ),
        Shape::Size(range) => or_text(
            json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() }),
            &measured(size_units()),
        ),
        Shape::Choice(words) => json!({
            "anyOf": [{ "enum": words }, { "type": "string", "pattern": VARIABLE }],
        }),
        Shape::Table(keys) => table(keys),
        Shape::Tables { names, count, each } => json!({
            "type": "object",
            "minProperties": count.start(),
            "maxProperties": count.end(),
            "propertyNames": { "pattern": names.pattern, "not": { "enum": names.reserved } },
            "additionalProperties": table(each),
        }),
    }
}

/// The plain value, or a text that stands for one.
fn or_text(plain: Value, pattern: &str) -> Value {
    let text = json!({ "type": "string", "pattern": format!("{pattern}|{VARIABLE}") });
    json!({ "anyOf": [plain, text] })
}

fn measured(units: impl Iterator<Item = &'static str>) -> String {
    let units: Vec<&str> = units.collect();
    format!(r"^\s*[0-9._]+\s*({})?\s*$", units.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_the_one_of_this_program() {
        let published = include_str!("../../../../docs/ostler.schema.json");
        let published: Value = serde_json::from_str(published).expect("JSON");
        let same = published == schema();
        assert!(same, "write it anew: ostler check --schema > docs/ostler.schema.json");
    }

    #[test]
    fn a_pool_has_exactly_one_program_and_known_keys_only() {
        let schema = schema();
        let pool = &schema["properties"]["pools"]["additionalProperties"];
        let either =
            json!([{ "oneOf": [{ "required": ["python"] }, { "required": ["command"] }] }]);
        assert_eq!(pool["allOf"], either);
        assert_eq!(pool["additionalProperties"], json!(false));
        let heartbeat = &pool["properties"]["heartbeat"];
        assert_eq!(heartbeat["properties"]["interval"]["default"], json!("2s"));
        assert_eq!(heartbeat["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["version", "pools"]));
    }
}
