//! The description of this API: made from the routes and their bodies, and completed at the time of
//! asking with the functions that the pools serve just then.

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::{OpenApi, ToSchema};

use crate::answer::{Answer, ok};
use crate::call_terms::{CALL_PROBLEMS, any_call, calls_of, leased_call, sse_event, worker_call};
use crate::key_terms;
use crate::query::{Nothing, Params};
use crate::refusals::REFUSALS;
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
        crate::reload::reload,
        crate::pools::list,
        crate::pools::one,
        crate::orders::pause,
        crate::orders::resume,
        crate::orders::drain,
        crate::orders::scale,
        crate::orders::recycle_pool,
        crate::supervise::create,
        crate::supervise::start,
        crate::supervise::pause,
        crate::supervise::resume,
        crate::supervise::complete,
        crate::supervise::terminate,
        crate::supervise::recycle,
        crate::leases::create,
        crate::leases::list,
        crate::leases::one,
        crate::leases::renew,
        crate::leases::give_back,
        crate::sessions::create,
        crate::sessions::list,
        crate::sessions::one,
        crate::sessions::patch,
        crate::sessions::delete,
        crate::session_stats::of_all,
        crate::session_stats::of_one,
        crate::session_stats::sweep,
        crate::programs::list,
        crate::programs::one,
        crate::programs::put,
        crate::programs::delete,
        crate::bindings::show,
        crate::bindings::bind,
        crate::bindings::unbind,
        crate::workers::list,
        crate::workers::one,
        crate::transitions::list,
        crate::logs::read,
        crate::jobs::submit,
        crate::jobs::submit_batch,
        crate::jobs::list,
        crate::jobs::one,
        crate::jobs::transitions,
        crate::jobs::attempts,
        crate::jobs::children,
        crate::jobs::result,
        crate::jobs::cancel,
        crate::jobs::retry,
        crate::job_events::follow,
        crate::queues::list,
        crate::queues::pause,
        crate::queues::resume,
        crate::schedules::create,
        crate::schedules::list,
        crate::schedules::one,
        crate::schedules::patch,
        crate::schedules::delete,
        crate::schedules::pause,
        crate::schedules::resume,
        crate::audit::verify,
        crate::store::check,
        crate::store::backup,
        crate::requests::list,
        crate::requests::one,
        crate::requests::cancel,
        crate::events::follow,
        crate::metrics::expose,
        document,
    ),
    components(schemas(
        ProblemBody,
        crate::job_events::JobEndBody,
        crate::job_events::JobGoneBody,
    ))
)]
struct Described;

/// The fixed part does not change while the server runs.
static FIXED: LazyLock<Value> = LazyLock::new(|| {
    let mut document =
        serde_json::to_value(Described::openapi()).expect("a description is plain data");
    add_common_problems(&mut document);
    add_problems(&mut document);
    add_streams(&mut document);
    if let Some(paths) = document["paths"].as_object_mut() {
        paths.values_mut().for_each(key_terms::describe);
    }
    spell_optional_bodies(&mut document);
    document
});

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "server", operation_id = "server.openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub(crate) async fn document(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<Value> {
    let mut document = FIXED.clone();
    document["info"]["version"] = shared.version.into();
    if let Some(paths) = document["paths"].as_object_mut() {
        let mut calls = Map::new();
        calls.insert("/api/pools/{pool}/call/{function}".to_owned(), any_call());
        calls.insert("/api/leases/{id}/call/{function}".to_owned(), leased_call());
        calls.insert("/api/workers/{id}/call/{function}".to_owned(), worker_call());
        for served in shared.pools() {
            calls.extend(calls_of(&served.pool));
        }
        calls.values_mut().for_each(key_terms::describe);
        paths.extend(calls);
    }
    ok(document)
}

/// Routes that are followed.
fn add_streams(document: &mut Value) {
    let events = reference("EventBody");
    let events = sse_event(json!({ "type": "string" }), events);
    let lines = sse_event(json!({ "const": "line" }), reference("LineBody"));
    let lines_of_a_job = ["JobEventBody", "JobEndBody", "JobGoneBody"].map(reference);
    let story = sse_event(json!({ "type": "string" }), json!({ "anyOf": lines_of_a_job }));
    let streams = [
        ("/api/events", events),
        ("/api/workers/{id}/logs", lines),
        ("/api/jobs/{id}/events", story),
    ];
    for (path, event) in streams {
        let answer = &mut document["paths"][path]["get"]["responses"]["200"];
        answer["content"]["text/event-stream"] = json!({ "schema": event });
    }
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

pub(crate) fn problem_response(codes: &str) -> Value {
    json!({ "description": codes, "content": { "application/problem+json": {
        "schema": reference("ProblemBody") } } })
}

/// A body that may be left out is none, not null.
fn spell_optional_bodies(document: &mut Value) {
    for operation in operations(document) {
        let Some(body) = operation.get_mut("requestBody") else { continue };
        let schema = &mut body["content"]["application/json"]["schema"];
        let choices = schema["oneOf"].as_array().cloned().unwrap_or_default();
        if let [meant, nothing] = &choices[..]
            && nothing["type"] == "null"
        {
            *schema = meant.clone();
            body["required"] = false.into();
        }
    }
}

/// What may be wrong with what each operation asks for.
fn add_problems(document: &mut Value) {
    for operation in operations(document) {
        let name = operation["operationId"].as_str().unwrap_or_default();
        let known = REFUSALS.iter().find(|(of, _)| *of == name);
        for (status, codes) in known.into_iter().flat_map(|(_, problems)| *problems) {
            operation["responses"][status] = problem_response(codes);
        }
    }
}

fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut)
}

/// What may be wrong with a request whatever it asks for.
fn add_common_problems(document: &mut Value) {
    for operation in operations(document) {
        for (status, codes) in CALL_PROBLEMS.iter().take(2) {
            operation["responses"][status] = problem_response(codes);
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_runtime::EventKind;

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
    fn a_body_that_may_be_left_out_may_not_be_null() {
        let lease = &FIXED["paths"]["/api/pools/{pool}/leases"]["post"]["requestBody"];
        assert_eq!(lease["required"], false, "{lease}");
        let schema = &lease["content"]["application/json"]["schema"];
        assert_eq!(schema["$ref"], "#/components/schemas/LeaseOrder", "{lease}");
    }

    #[test]
    fn it_is_of_version_3_1() {
        assert!(FIXED["openapi"].as_str().unwrap().starts_with("3.1"));
    }

    const DOCUMENT: &str = include_str!("../../../docs/http.md");

    #[test]
    fn the_document_names_every_route() {
        for path in FIXED["paths"].as_object().unwrap().keys() {
            assert!(DOCUMENT.contains(path.as_str()), "{path} is not in docs/http.md");
        }
    }

    #[test]
    fn every_code_that_a_call_can_end_in_is_documented() {
        // What only leases, calls to one worker, and calls of workers can end in.
        let elsewhere = [
            "key_required",
            "lease_not_found",
            "lease_timeout",
            "not_in_keyed_pool",
            "operation_not_found",
            "too_many_workers",
            "worker_not_serving",
        ];
        let kinds = [EventKind::RequestFailed, EventKind::RequestRejected];
        let codes = kinds.iter().flat_map(|kind| kind.reasons());
        for code in codes.filter(|code| !elsewhere.contains(code)) {
            assert!(DOCUMENT.contains(&format!("`{code}`")), "{code} is not in docs/http.md");
            let of_others = REFUSALS.iter().flat_map(|(_, problems)| *problems);
            let mut known = CALL_PROBLEMS.iter().chain(of_others);
            let described = known.any(|(_, codes)| codes.contains(code));
            assert!(described || *code == "worker_not_found", "{code} is not described");
        }
    }

    #[test]
    fn every_operation_that_is_refused_something_exists_and_its_codes_are_documented() {
        let mut document = FIXED.clone();
        let names: Vec<String> = operations(&mut document)
            .filter_map(|operation| Some(operation["operationId"].as_str()?.to_owned()))
            .collect();
        for (operation, problems) in REFUSALS {
            assert!(names.iter().any(|name| name == operation), "{operation}");
            for (status, codes) in *problems {
                for code in codes.split(", ") {
                    let row = |line: &str| {
                        line.starts_with(&format!("| {status} |"))
                            && line.contains(&format!("`{code}`"))
                    };
                    assert!(DOCUMENT.lines().any(row), "{operation}: {status} {code}");
                }
            }
        }
    }

    #[test]
    fn the_document_and_the_description_agree_on_statuses() {
        for (status, codes) in CALL_PROBLEMS.into_iter().chain(key_terms::KEY_PROBLEMS) {
            for code in codes.split(", ") {
                let row = |line: &&str| {
                    line.starts_with(&format!("| {status} |"))
                        && line.contains(&format!("`{code}`"))
                };
                assert!(DOCUMENT.lines().any(|line| row(&line)), "{status} {code}");
            }
        }
    }
}
