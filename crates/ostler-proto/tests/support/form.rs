//! Messages as plain JSON, the form in which the golden vectors state what bytes mean. Ids are
//! strings, because not every language has integers of 64 bits.

use ostler_proto::{Body, Encoding, FromWorker, Function, Query, Ready, ToWorker};
use serde_json::{Value, json};

use super::hex;

pub trait Form {
    fn form(&self) -> Value;
}

impl Form for Body {
    fn form(&self) -> Value {
        match &self.encoding {
            Encoding::Raw { content_type } => {
                json!({"raw": hex(&self.bytes), "contentType": content_type})
            }
            Encoding::Json => match std::str::from_utf8(&self.bytes) {
                Ok(text) => json!({ "json": text }),
                Err(_) => json!({ "jsonHex": hex(&self.bytes) }),
            },
        }
    }
}

impl Form for ToWorker {
    fn form(&self) -> Value {
        match self {
            ToWorker::Query(query) => query_form(query),
            ToWorker::Cancel { id } => json!({"type": "cancel", "id": id.to_string()}),
            ToWorker::Withdraw { id } => json!({"type": "withdraw", "id": id.to_string()}),
            ToWorker::Shutdown { graceful } => json!({"type": "shutdown", "graceful": graceful}),
            ToWorker::HealthCheck => json!({"type": "health_check"}),
            ToWorker::Ping { nonce } => json!({"type": "ping", "nonce": nonce.to_string()}),
            ToWorker::Credit { id, credit } => json!({
                "type": "credit", "id": id.to_string(),
                "chunks": credit.chunks, "bytes": credit.bytes,
            }),
            ToWorker::CallResult { call_id, outcome } => {
                let (body, problem) = match outcome {
                    Ok(body) => (body.form(), Value::Null),
                    Err(problem) => (Value::Null, value(problem.as_str())),
                };
                json!({
                    "type": "call_result", "callId": call_id.to_string(),
                    "body": body, "problem": problem,
                })
            }
            ToWorker::Trace { nonce } => json!({"type": "trace", "nonce": nonce.to_string()}),
            ToWorker::Unknown { kind } => json!({"type": "unknown", "kind": kind}),
        }
    }
}

fn query_form(query: &Query) -> Value {
    let function = match &query.function {
        Function::Index(index) => json!({ "index": index }),
        Function::Named(name) => json!({ "name": name }),
        Function::Unnamed => Value::Null,
    };
    let context = query.context.clone().unwrap_or_default();
    json!({
        "type": "query", "id": query.id.to_string(), "function": function,
        "stream": query.stream, "deadlineMs": query.deadline_ms,
        "sessionId": context.session_id, "continuity": context.continuity,
        "attempt": context.attempt,
        "traceparent": context.traceparent,
        "credit": context.credit.map(|c| json!({"chunks": c.chunks, "bytes": c.bytes})),
        "requestId": context.request_id,
        "job": context.job,
        "idempotent": context.idempotent, "body": query.body.form(),
    })
}

impl Form for FromWorker {
    fn form(&self) -> Value {
        match self {
            FromWorker::Ready(ready) => ready_form(ready),
            FromWorker::Control { token } => json!({"type": "control", "token": token}),
            FromWorker::Session { id, session_id } => {
                json!({"type": "session", "id": id.to_string(), "sessionId": session_id})
            }
            FromWorker::Message { id, seq, body } => json!({
                "type": "message", "id": id.to_string(), "seq": seq, "body": body.form(),
            }),
            FromWorker::Complete { id, chunks, body } => json!({
                "type": "complete", "id": id.to_string(), "chunks": chunks, "body": body.form(),
            }),
            FromWorker::Error { id, chunks, error } => json!({
                "type": "error", "id": id.to_string(), "chunks": chunks,
                "code": error.code, "message": error.message, "retryable": error.retryable,
                "exception": error.kind, "traceback": error.traceback, "started": error.started,
            }),
            FromWorker::Cancelled { id, chunks, started, reason } => json!({
                "type": "cancelled", "id": id.to_string(), "chunks": chunks,
                "started": started, "reason": reason,
            }),
            FromWorker::ShutdownAck => json!({"type": "shutdown_ack"}),
            FromWorker::HealthOk(report) => json!({
                "type": "health_ok", "uptime": report.uptime,
                "queriesProcessed": report.queries_processed,
            }),
            FromWorker::HealthFailed { reason } => {
                json!({"type": "health_failed", "reason": reason})
            }
            FromWorker::Pong { nonce } => json!({"type": "pong", "nonce": nonce.to_string()}),
            FromWorker::Progress { id, body } => {
                json!({"type": "progress", "id": id.to_string(), "body": body.form()})
            }
            FromWorker::Log(log) => json!({
                "type": "log", "id": log.id.map(|id| id.to_string()),
                "level": format!("{:?}", log.level).to_lowercase(), "message": log.message,
            }),
            FromWorker::Metric(metric) => json!({
                "type": "metric", "name": metric.name, "value": metric.value,
                "labels": metric.labels,
            }),
            FromWorker::Retire { reason, tainted } => {
                json!({"type": "retire", "reason": reason, "tainted": tainted.then_some(true)})
            }
            FromWorker::Call(call) => json!({
                "type": "call", "callId": call.call_id.to_string(),
                "request": call.request.map(|id| id.to_string()),
                "pool": call.pool, "function": call.function, "deadlineMs": call.deadline_ms,
                "answerOnControl": call.answer_on_control, "body": call.body.form(),
            }),
            FromWorker::TraceResult { nonce, text } => {
                json!({"type": "trace_result", "nonce": nonce.to_string(), "text": text})
            }
            FromWorker::Unknown { kind } => json!({"type": "unknown", "kind": kind}),
        }
    }
}

fn ready_form(ready: &Ready) -> Value {
    let function = |f: &ostler_proto::FunctionSpec| {
        let parameters = f.parameters.as_ref().map(|text| value(text.as_str()));
        json!({
            "name": f.name, "doc": f.doc, "streaming": f.streaming, "parameters": parameters,
        })
    };
    json!({
        "type": "ready", "protocol": ready.protocol, "token": ready.token,
        "wire": ready.wire.name(), "control": ready.control, "capacity": ready.capacity,
        "functions": ready.functions.iter().map(function).collect::<Vec<_>>(),
        "pid": ready.pid, "cancelSignal": ready.cancel_signal, "traceSignal": ready.trace_signal,
        "sdk": ready.sdk, "freeThreaded": ready.free_threaded, "credit": ready.credit,
        "savesSessions": ready.saves_sessions,
    })
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("it was checked when it was read")
}
