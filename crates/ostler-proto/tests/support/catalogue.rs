//! Every message of both directions, and the spellings and breaches worth keeping. The golden
//! vectors are written from this list and every implementation is held to them.

use std::num::NonZeroU32;

use bytes::Bytes;
use ostler_proto::{
    Body, Call, Context, Credit, FromWorker, Function, FunctionSpec, HealthReport, JobPart,
    JsonText, Log, LogLevel, Metric, Query, Ready, ToWorker, Wire, WorkerError,
};

use super::frame;

pub fn to_worker() -> Vec<(&'static str, ToWorker)> {
    let greet = || Function::Named("greet".into());
    let args = || Body::json(r#"{"name":"Ada"}"#);
    let query = Query::new;
    vec![
        ("query by index", query(1, Function::Index(0), args()).into()),
        ("query by the last index", query(2, Function::Index(0xFFFE), args()).into()),
        ("query by name", query(3, greet(), args()).into()),
        ("query of the only function", query(4, Function::Unnamed, args()).into()),
        ("query without arguments", query(5, greet(), Body::empty()).into()),
        ("query with null as its argument", query(6, greet(), Body::json("null")).into()),
        ("query that wants a stream, with a deadline", full_query().into()),
        ("query with raw bytes", query(8, greet(), raw(None)).into()),
        ("query with an image", query(9, greet(), raw(Some("image/png"))).into()),
        ("query with no bytes, but raw", query(10, greet(), Body::raw(Bytes::new(), None)).into()),
        ("query with the largest id", query(u64::MAX, greet(), args()).into()),
        ("query of a job", job_query().into()),
        ("cancel", ToWorker::Cancel { id: 17 }),
        ("withdraw", ToWorker::Withdraw { id: 17 }),
        ("shutdown, graceful", ToWorker::Shutdown { graceful: true }),
        ("shutdown, at once", ToWorker::Shutdown { graceful: false }),
        ("health_check", ToWorker::HealthCheck),
        ("ping", ToWorker::Ping { nonce: 0x0123_4567_89AB_CDEF }),
        ("credit", ToWorker::Credit { id: 17, credit: Credit { chunks: 128, bytes: 65536 } }),
        ("call_result", call_result(Ok(Body::json("[1,2]")))),
        ("call_result without a value", call_result(Ok(Body::empty()))),
        ("call_result with raw bytes", call_result(Ok(raw(Some("text/plain"))))),
        ("call_result, failed", call_result(Err(problem()))),
        ("trace", ToWorker::Trace { nonce: 5 }),
    ]
}

fn raw(content_type: Option<&str>) -> Body {
    Body::raw(Bytes::from_static(&[0, 0xFF, b'\n', 0x80]), content_type.map(str::to_owned))
}

fn full_query() -> Query {
    Query {
        stream: true,
        deadline_ms: NonZeroU32::new(1500),
        context: Some(Box::new(Context {
            session_id: Some("s_1".into()),
            continuity: Some("restored".into()),
            attempt: 2,
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            credit: Some(Credit { chunks: 8, bytes: 4096 }),
            request_id: Some("r_0190".into()),
            job: Some(job_part()),
            idempotent: true,
        })),
        ..Query::new(7, Function::Named("count".into()), Body::json("[3]"))
    }
}

fn job_part() -> JobPart {
    JobPart {
        id: "j_0190c8a2f3b47e1d8a6b5c4d3e2f1a0b".into(),
        attempt: 3,
        shard: 1,
        shard_count: 4,
        depth: 5,
    }
}

/// A job's first attempt, by one worker, is the usual one.
fn job_query() -> Query {
    let job = JobPart { attempt: 1, shard: 0, shard_count: 1, depth: 0, ..job_part() };
    let context = Context { job: Some(job), ..Context::default() };
    Query {
        context: Some(Box::new(context)),
        ..Query::new(11, Function::Named("greet".into()), Body::empty())
    }
}

fn call_result(outcome: Result<Body, JsonText>) -> ToWorker {
    ToWorker::CallResult { call_id: 3, outcome }
}

fn problem() -> JsonText {
    JsonText::parse(r#"{"code":"saturated","retryable":true,"status":503}"#).expect("valid")
}

pub fn from_worker() -> Vec<(&'static str, FromWorker)> {
    let id = 17;
    let answer = || Body::json(r#"{"answer":42,"text":"héllo"}"#);
    vec![
        ("session", FromWorker::Session { id, session_id: "xyz".into() }),
        ("message", FromWorker::Message { id, seq: Some(0), body: answer() }),
        (
            "message, a later chunk",
            FromWorker::Message { id, seq: Some(300), body: Body::json("1") },
        ),
        ("message with raw bytes", FromWorker::Message { id, seq: Some(1), body: raw(None) }),
        ("complete", FromWorker::Complete { id, chunks: Some(0), body: answer() }),
        ("complete after chunks, no value", complete(Some(301), Body::empty())),
        ("complete with null", complete(Some(0), Body::json("null"))),
        ("complete with an image", complete(Some(0), raw(Some("image/png")))),
        ("complete with no bytes, but raw", complete(Some(0), Body::raw(Bytes::new(), None))),
        ("error", error(WorkerError { message: "division by zero".into(), ..Default::default() })),
        ("error in full", error(full_error())),
        ("error before the function was entered", error(refused_arguments())),
        ("cancelled", cancelled(true, None)),
        ("cancelled before it started", cancelled(false, None)),
        ("cancelled with a reason", cancelled(true, Some("the caller left"))),
        ("shutdown_ack", FromWorker::ShutdownAck),
        (
            "health_ok",
            FromWorker::HealthOk(HealthReport { uptime: Some(123.5), queries_processed: Some(5) }),
        ),
        ("health_ok without figures", FromWorker::HealthOk(HealthReport::default())),
        ("health_failed", FromWorker::HealthFailed { reason: "the model is gone".into() }),
        ("pong", FromWorker::Pong { nonce: 0x0123_4567_89AB_CDEF }),
        ("progress", FromWorker::Progress { id, body: Body::json(r#"{"done":3,"of":10}"#) }),
        ("log", log(None, LogLevel::Info, "model loaded")),
        ("log of a request", log(Some(id), LogLevel::Warning, "slow \"disk\"\nsecond line")),
        ("metric", metric()),
        ("retire", FromWorker::Retire { reason: "memory".into(), tainted: false }),
        ("retire, tainted", FromWorker::Retire { reason: "device lost".into(), tainted: true }),
        ("call", FromWorker::Call(Box::new(call(Body::json(r#"{"x":1}"#))))),
        ("call from a thread, in full", FromWorker::Call(Box::new(full_call()))),
        (
            "trace_result",
            FromWorker::TraceResult { nonce: 5, text: "File \"a.py\", line 3\n".into() },
        ),
    ]
}

fn complete(chunks: Option<u32>, body: Body) -> FromWorker {
    FromWorker::Complete { id: 17, chunks, body }
}

fn error(error: WorkerError) -> FromWorker {
    FromWorker::Error { id: 17, chunks: Some(2), error: Box::new(error) }
}

fn full_error() -> WorkerError {
    WorkerError {
        code: "application_error".into(),
        message: "boom".into(),
        retryable: true,
        kind: Some("ValueError".into()),
        traceback: Some("Traceback (most recent call last):\n  …".into()),
        started: true,
    }
}

fn refused_arguments() -> WorkerError {
    WorkerError {
        code: WorkerError::INVALID_ARGUMENTS.into(),
        message: "n: expected int".into(),
        started: false,
        ..Default::default()
    }
}

fn cancelled(started: bool, reason: Option<&str>) -> FromWorker {
    let reason = reason.map(str::to_owned);
    FromWorker::Cancelled { id: 17, chunks: Some(0), started, reason }
}

fn log(id: Option<u64>, level: LogLevel, message: &str) -> FromWorker {
    FromWorker::Log(Box::new(Log { id, level, message: message.into() }))
}

fn metric() -> FromWorker {
    FromWorker::Metric(Box::new(Metric {
        name: "tokens".into(),
        value: 12.5,
        labels: [("model".to_owned(), "small".to_owned())].into(),
    }))
}

fn call(body: Body) -> Call {
    Call {
        call_id: 3,
        request: None,
        pool: "db".into(),
        function: "lookup".into(),
        deadline_ms: None,
        answer_on_control: false,
        body,
    }
}

fn full_call() -> Call {
    Call {
        request: Some(17),
        deadline_ms: NonZeroU32::new(250),
        answer_on_control: true,
        ..call(raw(Some("image/png")))
    }
}

/// What opens a stream; always lines.
pub fn opening() -> Vec<(&'static str, FromWorker)> {
    let greet = FunctionSpec {
        name: "greet".into(),
        doc: Some("Says hello.".into()),
        streaming: false,
        parameters: Some(JsonText::parse(r#"{"type":"object"}"#).expect("valid")),
    };
    let count = FunctionSpec { name: "count".into(), streaming: true, ..Default::default() };
    let full = Ready {
        token: Some("t0k3n".into()),
        wire: Wire::Binary,
        control: true,
        capacity: 4,
        functions: vec![greet, count],
        pid: Some(4711),
        cancel_signal: Some(23),
        trace_signal: Some(12),
        sdk: Some("python/0.1.0".into()),
        free_threaded: true,
        credit: true,
        saves_sessions: true,
        ..Ready::default()
    };
    vec![
        ("ready", FromWorker::Ready(Box::default())),
        ("ready in full", FromWorker::Ready(Box::new(full))),
        ("control", FromWorker::Control { token: Some("t0k3n".into()) }),
    ]
}

/// Other spellings that mean the same: (name, opens the stream, line).
pub fn other_lines_from_worker() -> Vec<(&'static str, bool, &'static str)> {
    vec![
        ("ready, the least", true, r#"{"type":"ready"}"#),
        (
            "ready with nulls and unknown keys",
            true,
            r#"{"type":"ready","pid":null,"cancelSignal":null,"color":["red"]}"#,
        ),
        ("ready after a blank line, with CRLF", true, "\r\n{\"type\":\"ready\"}\r"),
        (
            "spaces and another order of keys",
            false,
            r#" { "result" : [ 1 , 2 ] , "requestId" : "17" , "type" : "complete" } "#,
        ),
        (
            "message without chunk number",
            false,
            r#"{"type":"message","requestId":"17","content":{"a":[]}}"#,
        ),
        ("complete without a result", false, r#"{"type":"complete","requestId":"17"}"#),
        ("error as a string", false, r#"{"type":"error","requestId":"17","error":"boom"}"#),
        (
            "error message with a lone surrogate",
            false,
            r#"{"type":"error","requestId":"17","error":{"message":"no file caf\udce9"}}"#,
        ),
        ("cancelled, started by default", false, r#"{"type":"cancelled","requestId":"17"}"#),
        (
            "integers beyond 2^53 stay as they are",
            false,
            r#"{"type":"complete","requestId":"17","result":[9007199254740993,123456789012345678901234567890,1e999,0.1000]}"#,
        ),
        (
            "escapes stay as they are",
            false,
            r#"{"type":"complete","requestId":"17","result":"\u0000 \ud800 \u00e9 \/"}"#,
        ),
        (
            "raw bytes, content type first",
            false,
            r#"{"type":"complete","requestId":"17","result":{"contentType":"text/plain","$bytes":"aGk="}}"#,
        ),
        (
            "an object that only resembles raw bytes",
            false,
            r#"{"type":"complete","requestId":"17","result":{"$bytes":"not base64"}}"#,
        ),
        (
            "raw bytes inside a value are left alone",
            false,
            r#"{"type":"complete","requestId":"17","result":[{"$bytes":"aGk="}]}"#,
        ),
        ("log without a level", false, r#"{"type":"log","message":"hi"}"#),
        (
            "log with a level of another language",
            false,
            r#"{"type":"log","level":"CRITICAL","message":"hi"}"#,
        ),
        ("unknown type", false, r#"{"type":"sparkle","requestId":17,"result":{}}"#),
        ("a type of the other direction", false, r#"{"type":"query","requestId":"17"}"#),
    ]
}

pub fn other_lines_to_worker() -> Vec<(&'static str, &'static str)> {
    vec![
        ("credit counted in n", r#"{"type":"credit","requestId":"17","n":4}"#),
        ("shutdown, graceful by default", r#"{"type":"shutdown"}"#),
        ("query with spaces", r#"{"type": "query", "requestId": "1", "payload": {"a": 1}}"#),
        ("unknown type", r#"{"type":"sparkle"}"#),
    ]
}

pub fn other_frames_from_worker() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("unknown flags are ignored", frame(0x84, 0x7E, 0, 17, 0, 0, b"1")),
        ("an empty meta is no meta", frame(0x84, 0, 0, 17, 2, 0, b"{}1")),
        ("unknown keys in meta are ignored", frame(0x86, 0, 0, 17, 7, 0, br#"{"x":1}"#)),
        ("a body is not parsed, not even NaN", frame(0x84, 0, 0, 17, 0, 0, b"[NaN,")),
        ("a body need not be UTF-8", frame(0x83, 0, 0, 17, 0, 9, &[b'"', 0xE9, b'"'])),
        ("pong with a meta nobody reads", frame(0x8A, 0, 0, 5, 2, 0, b"??")),
        ("trace_result that is not UTF-8", frame(0x90, 0, 0, 5, 0, 0, &[b'a', 0xE9])),
        (
            "error message with a lone surrogate",
            frame(0x85, 0, 0, 17, 20, 0, br#"{"message":"\udce9"}"#),
        ),
        ("unknown kind", frame(0xF0, 0, 0, 17, 0xFFFF_FFFF, 0, b"?")),
        ("control has no frame", frame(0x80, 0, 0, 0, 0, 0, b"")),
        ("a kind of the other direction", frame(0x01, 0, 0, 17, 0, 0, b"")),
    ]
}

pub fn other_frames_to_worker() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("an index wins over a name", frame(0x01, 0, 2, 1, 16, 0, br#"{"function":"f"}"#)),
        ("cancel with a body nobody reads", frame(0x02, 0, 0, 17, 0, 0, b"?")),
        ("unknown kind", frame(0x70, 0, 0, 0, 0, 0, b"")),
    ]
}
