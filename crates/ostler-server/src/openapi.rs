//! The description of this API: made from the routes and their bodies, and completed at the time of
//! asking with the functions that the pools serve just then.

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use ostler_runtime::{FunctionSpec, Pool};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::{OpenApi, ToSchema};

use crate::answer::{Answer, ok};
use crate::server::Shared;

/// An error. Members beside these help with the particular code.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    pub r#type: String,
    pub title: String,
    pub status: u16,
    /// Stable; what programs should look at.
    #[schema(example = "pool_not_found")]
    pub code: String,
    /// For people.
    pub detail: String,
    /// Asking again may help.
    pub retryable: bool,
    pub request_id: String,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Ostler", description = "Pools of warm worker processes."),
    paths(
        crate::status::livez,
        crate::status::readyz,
        crate::status::stats,
        crate::status::stop,
        crate::pools::list,
        crate::pools::one,
        crate::workers::list,
        crate::workers::one,
        crate::transitions::list,
        crate::logs::read,
        crate::requests::list,
        crate::requests::one,
        crate::requests::cancel,
        crate::events::follow,
        crate::metrics::expose,
        document,
    ),
    components(schemas(ProblemBody))
)]
struct Described;

/// The fixed part does not change while the server runs.
static FIXED: LazyLock<Value> = LazyLock::new(|| {
    serde_json::to_value(Described::openapi()).expect("a description is plain data")
});

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "server", operation_id = "server.openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub(crate) async fn document(State(shared): State<Arc<Shared>>) -> Answer<Value> {
    let mut document = FIXED.clone();
    document["info"]["version"] = shared.version.into();
    if let Some(paths) = document["paths"].as_object_mut() {
        paths.insert("/api/pools/{pool}/call/{function}".to_owned(), any_call());
        for pool in &shared.pools {
            paths.extend(calls_of(pool));
        }
    }
    ok(document)
}

fn calls_of(pool: &Pool) -> Map<String, Value> {
    let calls = pool.functions().iter().map(|function| {
        let path = format!("/api/pools/{}/call/{}", segment(pool.name()), segment(&function.name));
        (path, call(pool.name(), function))
    });
    calls.collect()
}

fn call(pool: &str, function: &FunctionSpec) -> Value {
    let parameters = function.parameters.as_ref();
    let schema: Value = parameters.and_then(|s| s.as_str().parse().ok()).unwrap_or(json!({}));
    let doc = function.doc.as_deref().unwrap_or_default();
    json!({ "post": {
        "tags": [format!("pool {pool}")],
        "operationId": format!("{pool}.{}", function.name),
        "summary": doc.lines().next().unwrap_or_default(),
        "description": doc,
        "x-ostler-pool": pool,
        "x-ostler-function": function.name,
        "x-ostler-streaming": function.streaming,
        "parameters": call_headers(),
        "requestBody": { "content": { "application/json": { "schema": schema } } },
        "responses": call_responses(function.streaming),
    } })
}

/// The route itself, for pools whose functions are not known.
fn any_call() -> Value {
    let mut parameters = vec![
        json!({ "name": "pool", "in": "path", "required": true, "schema": { "type": "string" } }),
        json!({ "name": "function", "in": "path", "required": true, "schema": { "type": "string" } }),
    ];
    parameters.extend(call_headers());
    json!({ "post": {
        "tags": ["calls"],
        "operationId": "call",
        "summary": "Calls a function",
        "description": "A JSON object is keyword arguments, an array positional ones, another \
            value the one argument, nothing none. Other content types reach functions that take bytes.",
        "parameters": parameters,
        "requestBody": { "content": { "application/json": { "schema": {} },
                                      "application/octet-stream": {} } },
        "responses": call_responses(true),
    } })
}

fn call_headers() -> Vec<Value> {
    let headers = [
        ("Ostler-Timeout", "Seconds, or with a unit: 1.5, 200ms, 5m."),
        ("Ostler-Idempotent", "true: it may run again after a crash or a retryable error."),
        ("Ostler-Priority", "-100 to 100, higher first."),
        ("Ostler-Owner", "Whom fairness is owed to."),
        ("Ostler-Request-Id", "1 to 128 printable characters; comes back with the answer."),
        ("traceparent", "W3C trace context."),
    ];
    let described = headers.map(|(name, about)| {
        json!({ "name": name, "in": "header", "description": about, "schema": { "type": "string" } })
    });
    described.into()
}

fn call_responses(streaming: bool) -> Value {
    let mut content = json!({ "application/json": { "schema": {} } });
    if streaming {
        content["text/event-stream"] = json!({ "schema": { "type": "string" } });
        content["application/x-ndjson"] = json!({ "schema": { "type": "string" } });
    }
    let problem = json!({ "application/problem+json": {
        "schema": { "$ref": "#/components/schemas/ProblemBody" } } });
    json!({
        "200": { "description": "The result", "content": content },
        "default": { "description": "A problem", "content": problem },
    })
}

/// A name as a segment of a path. Braces would be taken for a parameter.
fn segment(name: &str) -> String {
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
    fn every_reference_leads_somewhere() {
        let text = FIXED.to_string();
        let schemas = &FIXED["components"]["schemas"];
        let mut references = text.split("\"#/components/schemas/").skip(1).peekable();
        assert!(references.peek().is_some());
        for rest in references {
            let name = rest.split('"').next().unwrap();
            assert!(schemas.get(name).is_some(), "{name} is not described");
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let paths = FIXED["paths"].as_object().unwrap();
        let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
        let mut names: Vec<&str> =
            operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    #[test]
    fn it_is_of_version_3_1() {
        assert!(FIXED["openapi"].as_str().unwrap().starts_with("3.1"));
    }

    #[test]
    fn a_function_is_described_by_its_own_schema() {
        let schema = r#"{"type":"object","properties":{"name":{"type":"string"}}}"#;
        let function = FunctionSpec {
            name: "greet".to_owned(),
            doc: Some("Says hello.\n\nPolitely.".to_owned()),
            parameters: Some(serde_json::from_str(schema).unwrap()),
            ..FunctionSpec::default()
        };
        let post = &call("py", &function)["post"];
        assert_eq!(post["summary"], "Says hello.");
        let given = &post["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(given["properties"]["name"]["type"], "string");
    }

    #[test]
    fn names_are_spelled_for_paths() {
        assert_eq!(segment("a.b-c_1"), "a.b-c_1");
        assert_eq!(segment("a/{b} ü"), "a%2F%7Bb%7D%20%C3%BC");
    }
}
