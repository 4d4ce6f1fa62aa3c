//! Calls, for the description: the routes that all functions share, and one for each function that
//! is served just then.

use ostler_runtime::{FunctionSpec, Pool};
use serde_json::{Map, Value, json};

use crate::arguments::{any_body, request_body};
use crate::openapi::problem_response;
use crate::segment::encoded;

pub(crate) fn calls_of(pool: &Pool) -> Map<String, Value> {
    let functions = pool.functions();
    let calls = functions.iter().map(|function| {
        let path = format!("/api/pools/{}/call/{}", encoded(pool.name()), encoded(&function.name));
        (path, call(pool.name(), function))
    });
    calls.collect()
}

fn call(pool: &str, function: &FunctionSpec) -> Value {
    let schema = function.parameters.as_ref().map(|schema| schema.as_str());
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
        "requestBody": request_body(schema),
        "responses": call_responses(),
    } })
}

/// The route itself, for pools whose functions are not known.
pub(crate) fn any_call() -> Value {
    let mut parameters = vec![in_path("pool"), in_path("function")];
    parameters.extend(call_headers());
    json!({ "post": {
        "tags": ["calls"],
        "operationId": "call",
        "summary": "Calls a function",
        "description": "A JSON object is keyword arguments, an array positional ones, another \
            value the one argument, nothing none. Other content types reach functions that take bytes.",
        "parameters": parameters,
        "requestBody": any_body(),
        "responses": call_responses(),
    } })
}

pub(crate) fn leased_call() -> Value {
    let mut parameters = vec![in_path("id"), in_path("function")];
    let place = json!({ "type": "integer", "minimum": 0, "maximum": 999, "default": 0 });
    parameters.push(json!({ "name": "place", "in": "query", "schema": place,
        "description": "On which of its workers." }));
    parameters.extend(call_headers());
    let mut responses = call_responses();
    let gone = problem_response("lease_not_found, function_not_found, session_not_found");
    responses["404"] = gone;
    json!({ "post": {
        "tags": ["leases"],
        "operationId": "leases.call",
        "summary": "Calls a function on a place that is held",
        "description": "Calls on one place run one after the other. All else is as with other calls.",
        "parameters": parameters,
        "requestBody": any_body(),
        "responses": responses,
    } })
}

pub(crate) fn worker_call() -> Value {
    let mut parameters = vec![in_path("id"), in_path("function")];
    parameters.extend(call_headers());
    let mut responses = call_responses();
    responses["404"] = problem_response("worker_not_found, function_not_found, session_not_found");
    let conflicts = responses["409"]["description"].as_str().unwrap_or_default();
    responses["409"] = problem_response(&format!("worker_not_serving, {conflicts}"));
    json!({ "post": {
        "tags": ["workers"],
        "operationId": "workers.call",
        "summary": "Calls a function on one worker",
        "description": "It waits for that worker and no other. All else is as with other calls.",
        "parameters": parameters,
        "requestBody": any_body(),
        "responses": responses,
    } })
}

fn in_path(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
}

fn call_headers() -> Vec<Value> {
    let text = |pattern| json!({ "type": "string", "pattern": pattern });
    let headers = [
        (
            "Ostler-Timeout",
            "Seconds, or with a unit: 1.5, 200ms, 5m; at most 24h.",
            text(
                r"^([1-9][0-9]{0,3}|[0-9]{1,3}\.[0-9]{0,2}[1-9])s?$|^[1-9][0-9]{0,6}ms$|^[1-9][0-9]?m$|^([1-9]|1[0-9]|2[0-4])h$",
            ),
        ),
        (
            "Ostler-Idempotent",
            "true: it may run again after a crash or a retryable error.",
            json!({ "type": "string", "enum": ["true", "false", "1", "0"], "default": "false" }),
        ),
        ("Ostler-Priority", "-100 to 100, higher first.", text("^[-+]?0*(100|[0-9]{1,2})$")),
        ("Ostler-Owner", "Whom fairness is owed to.", text("^[!-~]([ -~]{0,126}[!-~])?$")),
        (
            "Ostler-Session",
            "The session it belongs to; made if there is none of that name.",
            text("^[!-.0-~]{1,255}$"),
        ),
        (
            "Ostler-Affinity",
            "How much the session insists on its process; as the pool says if nothing is said.",
            json!({ "type": "string", "enum": ["hint", "strict_queue", "strict_fail_fast"] }),
        ),
        (
            "Ostler-Workspace",
            "Whose worker is meant, in a pool with one for each workspace.",
            text("^[!-~]([ -~]{0,126}[!-~])?$"),
        ),
        (
            "Ostler-Request-Id",
            "1 to 128 printable characters; comes back with the answer.",
            text("^[!-~]{1,128}$"),
        ),
        ("traceparent", "W3C trace context; ignored if it is none.", json!({ "type": "string" })),
    ];
    let described = headers.map(|(name, about, schema)| {
        json!({ "name": name, "in": "header", "description": about, "schema": schema })
    });
    described.into()
}

/// The problems that a call can end in, by their status.
pub(crate) const CALL_PROBLEMS: [(&str, &str); 14] = [
    ("400", "malformed"),
    ("403", "host_not_allowed, origin_not_allowed"),
    ("404", "pool_not_found, function_not_found, session_not_found"),
    ("408", "body_timeout"),
    ("409", "nested_deadlock, nested_too_deep, thread_unsafe, session_worker_lost, worker_busy"),
    ("413", "body_too_large"),
    ("422", "invalid_arguments, validation, quarantined, session_required"),
    ("429", "session_quota_exceeded"),
    ("499", "cancelled"),
    ("500", "application_error"),
    (
        "502",
        "worker_crashed, worker_stopped, worker_unresponsive, worker_answered_nonsense, \
         result_too_large, shutting_down",
    ),
    (
        "503",
        "pool_saturated, queue_timeout, deadline_unreachable, shutting_down, pool_failed, \
         pool_draining, store_unavailable",
    ),
    ("504", "deadline_exceeded"),
    ("507", "session_store_full"),
];

fn call_responses() -> Value {
    let kinds = json!({ "enum": ["message", "complete", "error", "cancelled"] });
    let line = json!({ "type": "object", "properties": { "type": kinds.clone(), "data": {} },
        "required": ["type", "data"] });
    let mut responses = json!({ "200": {
        "description": "The result: as JSON, as a stream if `Accept` asks for one, or bytes under \
            the content type that the function gave them.",
        "headers": {
            "Ostler-Request-Id": { "schema": { "type": "string" } },
            "Ostler-Worker": { "schema": { "type": "string" },
                "description": "Not with a stream that has no session." },
            "Ostler-Session": { "schema": { "type": "string" } },
            "Ostler-Session-Continuity": { "schema": { "type": "string",
                "enum": ["bound", "same", "elsewhere", "restored", "restarted"] } },
        },
        "content": {
            "application/json": { "schema": {} },
            "text/event-stream": { "schema": sse_event(kinds, json!({})) },
            "application/x-ndjson": { "schema": line },
            "*/*": {},
        },
    } });
    for (status, codes) in CALL_PROBLEMS {
        responses[status] = problem_response(codes);
    }
    responses
}

/// One server-sent event of a stream. Its data is JSON as text.
pub(crate) fn sse_event(kinds: Value, data: Value) -> Value {
    json!({ "type": "object", "required": ["event", "data"], "properties": {
        "id": { "type": "string" },
        "event": kinds,
        "data": { "type": "string", "contentMediaType": "application/json", "contentSchema": data },
    } })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
