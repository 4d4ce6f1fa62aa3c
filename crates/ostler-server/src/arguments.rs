//! What the body of a call may be, told from what its function takes.
//!
//! A worker announces a schema of keyword arguments. A body may have other forms: an array is
//! positional arguments, another value the one argument, bytes the argument that takes them. Those
//! follow from the same schema, and are told here so that nobody has to guess.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};

const BYTES: &str = "application/octet-stream";
const SCALARS: [&str; 4] = ["boolean", "null", "number", "string"];

/// What a worker announced of a function's parameters.
#[derive(Debug, Deserialize)]
struct Announced {
    #[serde(default)]
    properties: InOrder,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default = "anything", rename = "additionalProperties")]
    others: Value,
    /// Those that an array fills, if not all.
    #[serde(rename = "x-ostler-positional")]
    positional: Option<Vec<String>>,
    /// What an array may go on with after them.
    #[serde(rename = "x-ostler-rest")]
    rest: Option<Value>,
}

fn anything() -> Value {
    Value::Bool(true)
}

/// The members of an object in the order in which they are written, which is that of the parameters.
#[derive(Debug, Default)]
struct InOrder(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = InOrder;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(InOrder(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The `requestBody` of a function, by the schema that was announced for it.
pub(crate) fn request_body(announced: Option<&str>) -> Value {
    // A list would do for the members of a struct, in their order.
    let object = announced.filter(|text| text.trim_start().starts_with('{'));
    let read = object.and_then(|text| serde_json::from_str::<Announced>(text).ok());
    read.map_or_else(any_body, |announced| announced.request_body())
}

/// The body of a function of which nothing is known.
pub(crate) fn any_body() -> Value {
    json!({ "content": { "application/json": { "schema": {} }, BYTES: { "schema": {} } } })
}

impl Announced {
    fn request_body(&self) -> Value {
        let mut content = Map::new();
        if self.speaks_json() {
            content.insert("application/json".to_owned(), json!({ "schema": self.json() }));
        }
        if self.takes_bytes() {
            content.insert(BYTES.to_owned(), json!({ "schema": {} }));
        }
        // No bytes are bytes too.
        let required = !self.required.is_empty() && !self.is_bytes_alone();
        json!({ "required": required, "content": content })
    }

    /// Bytes have no form in JSON: what needs them cannot be called with it.
    fn speaks_json(&self) -> bool {
        let mut bytes = self.properties.0.iter().filter(|(_, schema)| is_bytes(schema));
        !self.is_bytes_alone() && !bytes.any(|(name, _)| self.requires(name))
    }

    fn is_bytes_alone(&self) -> bool {
        matches!(&*self.properties.0, [(_, schema)] if is_bytes(schema))
    }

    fn takes_bytes(&self) -> bool {
        let mut fitting = self.properties.0.iter().filter(|(_, schema)| is_bytes(schema));
        let target = match (fitting.next(), fitting.next(), &*self.properties.0) {
            (Some(target), None, _) => target,
            (None, _, [only]) if takes_anything(&only.1) => only,
            _ => return false,
        };
        self.required.iter().all(|name| *name == target.0)
    }

    fn requires(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    /// All forms in one schema: each keyword speaks of one of them.
    fn json(&self) -> Value {
        let spoken = self.properties.0.iter().filter(|(_, schema)| !is_bytes(schema));
        let properties: Map<String, Value> = spoken.cloned().collect();
        let mut schema = json!({
            "type": ["object"],
            "properties": properties,
            "required": self.required,
            "additionalProperties": self.others,
        });
        let Some(array) = self.array() else { return schema };
        array.add_to(&mut schema);
        match array.alone() {
            None => schema,
            Some(one) => either(schema, one),
        }
    }

    /// `None`: something is required that no array can fill.
    fn array(&self) -> Option<Array> {
        let named = self.positional.as_ref();
        let fills = |name: &String| named.is_none_or(|named| named.contains(name));
        let all: Vec<_> = self.properties.0.iter().filter(|(name, _)| fills(name)).collect();
        // Bytes have no form in an array: it ends before them.
        let end = all.iter().position(|(_, schema)| is_bytes(schema)).unwrap_or(all.len());
        let (within, beyond) = all.split_at(end);
        let required = within.iter().filter(|(name, _)| self.requires(name)).count();
        if required < self.required.len() {
            return None;
        }
        let last = within.iter().rposition(|(name, _)| self.requires(name));
        Some(Array {
            places: within.iter().map(|(name, schema)| titled(name, schema)).collect(),
            least: last.map_or(0, |last| last + 1),
            rest: self.rest.clone().filter(|_| beyond.is_empty()),
        })
    }
}

/// An array of positional arguments.
struct Array {
    /// What it fills, in order.
    places: Vec<Value>,
    /// How many of them it must fill.
    least: usize,
    /// What may follow, any number of times.
    rest: Option<Value>,
}

impl Array {
    fn add_to(&self, schema: &mut Value) {
        schema["type"] = json!(["object", "array"]);
        schema["minItems"] = self.least.into();
        if !self.places.is_empty() {
            schema["prefixItems"] = json!(self.places);
        }
        match &self.rest {
            Some(rest) => schema["items"] = rest.clone(),
            None => schema["maxItems"] = self.places.len().into(),
        }
    }

    /// What one value alone may be, which is neither an array nor an object.
    fn alone(&self) -> Option<Value> {
        let first = self.places.first().or(self.rest.as_ref());
        first.filter(|_| self.least <= 1).and_then(scalar)
    }
}

/// A parameter under its name.
fn titled(name: &str, schema: &Value) -> Value {
    let mut place = schema.clone();
    if let Some(members) = place.as_object_mut() {
        members.insert("title".to_owned(), name.into());
    }
    place
}

/// `one` beside the other forms; as one more type where it is nothing but that.
fn either(mut schema: Value, one: Value) -> Value {
    let plain = one.as_object().and_then(|one| one.get("type").filter(|_| one.len() == 1));
    match (plain, schema["type"].as_array_mut()) {
        (Some(Value::Array(more)), Some(types)) => types.extend_from_slice(more),
        (Some(more), Some(types)) => types.push(more.clone()),
        _ => return json!({ "anyOf": [schema, one] }),
    }
    schema
}

/// What is left of a schema where objects and arrays mean something else.
fn scalar(schema: &Value) -> Option<Value> {
    if takes_anything(schema) {
        return Some(json!({ "type": SCALARS }));
    }
    if let Some(members) = schema["anyOf"].as_array() {
        let members: Vec<Value> = members.iter().filter_map(scalar).collect();
        return (!members.is_empty()).then(|| json!({ "anyOf": members }));
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<&Value> =
            values.iter().filter(|value| !value.is_array() && !value.is_object()).collect();
        return (!values.is_empty()).then(|| json!({ "enum": values }));
    }
    let mut schema = schema.clone();
    schema.as_object_mut()?.retain(|key, _| key != "default" && key != "title");
    (!matches!(schema["type"].as_str(), Some("object" | "array"))).then_some(schema)
}

fn is_bytes(schema: &Value) -> bool {
    schema["format"] == "binary"
}

fn takes_anything(schema: &Value) -> bool {
    let limits = ["type", "enum", "anyOf", "oneOf", "allOf", "const", "$ref"];
    limits.iter().all(|limit| schema.get(limit).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(properties: &str, required: Value) -> Value {
        let schema = format!(
            r#"{{"type":"object","properties":{properties},"required":{required},"additionalProperties":false}}"#
        );
        request_body(Some(&schema))
    }

    fn json_of(body: &Value) -> &Value {
        &body["content"]["application/json"]["schema"]
    }

    #[test]
    fn an_array_fills_parameters_in_their_order() {
        let body = body(r#"{"b":{"type":"integer"},"a":{"type":"string"}}"#, json!(["b", "a"]));
        let schema = json_of(&body);
        assert_eq!(schema["type"], json!(["object", "array"]));
        let places = schema["prefixItems"].as_array().unwrap().iter();
        let places: Vec<_> = places.map(|place| (&place["title"], &place["type"])).collect();
        assert_eq!(places, [(&"b".into(), &"integer".into()), (&"a".into(), &"string".into())]);
        assert_eq!((&schema["minItems"], &schema["maxItems"]), (&2.into(), &2.into()));
        assert_eq!(body["required"], true);
    }

    #[test]
    fn another_value_is_the_one_argument() {
        let string = body(r#"{"name":{"type":"string","default":"x"},"n":{}}"#, json!([]));
        assert_eq!(json_of(&string)["type"], json!(["object", "array", "string"]));
        assert_eq!(string["required"], false);
        let any = body(r#"{"value":{}}"#, json!(["value"]));
        assert_eq!(json_of(&any)["type"].as_array().unwrap().len(), 6);
        let list = body(r#"{"items":{"type":"array"}}"#, json!(["items"]));
        assert_eq!(json_of(&list)["type"], json!(["object", "array"]), "it is in an array");
        let two = body(r#"{"a":{"type":"string"},"b":{}}"#, json!(["a", "b"]));
        assert_eq!(json_of(&two)["type"], json!(["object", "array"]), "there are two");
    }

    fn json_with(more: &str) -> Value {
        let schema = format!(
            r#"{{"properties":{{"a":{{"type":"integer"}},"b":{{"type":"string"}}}},{more}}}"#
        );
        json_of(&request_body(Some(&schema))).clone()
    }

    #[test]
    fn an_array_fills_those_that_have_a_place() {
        let keyword = json_with(r#""required":["a"],"x-ostler-positional":["a"]"#);
        assert_eq!((&keyword["minItems"], &keyword["maxItems"]), (&1.into(), &1.into()));
        assert_eq!(keyword["type"], json!(["object", "array", "integer"]));
        let needed = json_with(r#""required":["a","b"],"x-ostler-positional":["a"]"#);
        assert_eq!(needed["type"], json!(["object"]), "b can only be named");
    }

    #[test]
    fn an_array_may_go_on_where_the_function_does() {
        let rest = r#""x-ostler-rest":{"type":"integer"}"#;
        let open = json_with(&format!(r#""x-ostler-positional":["a"],{rest}"#));
        assert_eq!((&open["items"], open.get("maxItems")), (&json!({ "type": "integer" }), None));
        let only = json_with(&format!(r#""x-ostler-positional":[],{rest}"#));
        assert_eq!(only["type"], json!(["object", "array", "integer"]));
    }

    #[test]
    fn a_choice_stands_beside_the_other_forms() {
        let body = body(r#"{"mode":{"enum":["a",[1]]}}"#, json!([]));
        assert_eq!(json_of(&body)["anyOf"][1], json!({ "enum": ["a"] }));
    }

    #[test]
    fn bytes_come_as_they_are() {
        let bytes = r#"{"data":{"type":"string","format":"binary"},"unit":{"type":"string"}}"#;
        let needed = body(bytes, json!(["data"]));
        assert_eq!(json_of(&needed), &Value::Null);
        assert!(needed["content"].get(BYTES).is_some());
        let optional = body(bytes, json!([]));
        assert!(json_of(&optional)["properties"].get("data").is_none());
        assert_eq!(json_of(&optional)["maxItems"], 0, "an array would begin with them");
        let more = body(bytes, json!(["data", "unit"]));
        assert_eq!(more["content"], json!({}), "no body could carry both");
    }

    #[test]
    fn a_schema_that_is_no_object_is_one_all_the_same() {
        let body = body(r#"{"a":true,"b":false}"#, json!(["a"]));
        assert_eq!(json_of(&body)["prefixItems"], json!([true, false]));
    }

    #[test]
    fn what_is_not_known_may_be_anything() {
        assert_eq!(request_body(None), any_body());
        assert_eq!(request_body(Some("[]")), any_body());
    }
}
