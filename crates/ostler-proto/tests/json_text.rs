//! JSON at its edges: what passes as it is, what is refused, what never happens.

mod support;

use bytes::BytesMut;
use ostler_proto::{
    Body, Decoder, EncodeError, Encoder, FromWorker, Function, JsonText, Limits, Query, ToWorker,
    Violation, Wire, check_json,
};
use support::line;

const DEEP: usize = 100_000;

fn deep() -> String {
    format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP))
}

fn complete(result: &str) -> String {
    format!(r#"{{"type":"complete","requestId":"1","result":{result}}}"#)
}

#[test]
fn a_result_of_any_depth_passes_as_it_is() {
    let result = line(&complete(&deep()));
    let expected = FromWorker::Complete { id: 1, chunks: None, body: Body::json(deep()) };
    assert_eq!(result, Ok(expected));
}

#[test]
fn depth_where_no_value_belongs_is_a_violation() {
    for text in [
        format!(r#"{{"type":"complete","requestId":{}}}"#, deep()),
        format!(r#"{{"type":{}}}"#, deep()),
        format!(r#"{{"type":"metric","name":"n","value":1,"labels":{}}}"#, deep()),
        format!(r#"{{"type":"error","requestId":"1","error":{}}}"#, deep()),
        format!(r#"{{"type":"log","message":{}}}"#, deep()),
    ] {
        let code = line(&text).map_err(|violation| violation.code());
        assert_eq!(code, Err("bad_message"), "{}", &text[..40]);
    }
}

#[test]
fn depth_under_unknown_keys_and_types_is_ignored() {
    let kept = format!(r#"{{"type":"shutdown_ack","extra":{}}}"#, deep());
    assert_eq!(line(&kept), Ok(FromWorker::ShutdownAck));
    let unknown = format!(r#"{{"type":"sparkle","requestId":{}}}"#, deep());
    let kind = "sparkle".to_owned();
    assert_eq!(line(&unknown), Ok(FromWorker::Unknown { kind }));
    let error = format!(r#"{{"type":"error","requestId":"1","error":{{"x":{}}}}}"#, deep());
    assert!(matches!(line(&error), Ok(FromWorker::Error { .. })));
}

#[test]
fn brackets_that_never_close_are_bad_json() {
    let text = complete(&"[".repeat(DEEP));
    assert!(matches!(line(&text), Err(Violation::BadJson { .. })));
}

#[test]
fn a_schema_of_any_depth_is_kept_as_text() {
    let functions = format!(r#"[{{"name":"f","parameters":{}}}]"#, deep());
    let text = format!("{{\"type\":\"ready\",\"functions\":{functions}}}\n");
    let decoder = Decoder::opening(Limits::default());
    let Ok(FromWorker::Ready(ready)) = support::decoded_one(decoder, text.as_bytes()) else {
        panic!("ready is good");
    };
    assert_eq!(ready.functions[0].parameters, Some(JsonText::parse(deep()).expect("valid")));
}

#[test]
fn an_error_quotes_its_cause_but_not_at_any_length() {
    let text = format!(r#"{{"type":"complete","requestId":"{}"}}"#, "x".repeat(1 << 20));
    let violation = line(&text).expect_err("no such id");
    assert!(violation.to_string().len() < 1_000);
}

#[test]
fn a_megabyte_of_type_is_not_repeated() {
    let text = format!(r#"{{"type":"{}"}}"#, "é".repeat(1 << 19));
    let Ok(FromWorker::Unknown { kind }) = line(&text) else {
        panic!("it is unknown");
    };
    assert!(kind.len() < 1_000);
}

fn query_line(payload: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let body = Body::json(payload.to_vec());
    let query = ToWorker::Query(Query::new(1, Function::Unnamed, body));
    let mut out = BytesMut::new();
    Encoder::new(Wire::Ndjson, Limits::default()).encode(&query, &mut out)?;
    Ok(out.to_vec())
}

#[test]
fn newlines_of_a_callers_json_do_not_break_the_line() {
    let written = query_line(b"\n{\r\n\t\"a\" :\n\"x\\ny\"}\n").expect("valid JSON");
    let expected =
        "{\"type\":\"query\",\"requestId\":\"1\",\"payload\": {  \t\"a\" : \"x\\ny\"} }\n";
    assert_eq!(String::from_utf8(written).expect("text"), expected);
}

#[test]
fn a_callers_bad_json_is_refused_and_never_written() {
    let bad: [&[u8]; 8] = [
        b"{",
        b"NaN",
        b"1 2",
        b"\"a\nb\"",
        b"\"\xFF\"",
        b"1}\n{\"type\":\"shutdown\"",
        b" ",
        b"\xEF\xBB\xBF1",
    ];
    for payload in bad {
        let written = query_line(payload);
        assert!(matches!(written, Err(EncodeError::InvalidJson(_))), "{payload:?}");
        assert!(check_json(payload).is_err(), "{payload:?}");
    }
}

#[test]
fn a_callers_json_of_any_depth_is_written() {
    let written = query_line(deep().as_bytes()).expect("valid JSON");
    assert!(written.len() > 2 * DEEP);
}

#[test]
fn newlines_in_a_problem_do_not_break_the_line() {
    let problem = JsonText::parse("{\n\"code\": \"x\"\n}").expect("valid");
    let answer = ToWorker::CallResult { call_id: 1, outcome: Err(problem) };
    let written = support::encoded(&answer, Wire::Ndjson);
    assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1);
    let decoder = Decoder::<ToWorker>::new(Wire::Ndjson, Limits::default());
    assert!(support::decoded_one(decoder, &written).is_ok());
}

#[test]
fn an_index_does_not_reach_a_worker_that_reads_lines() {
    let query = ToWorker::Query(Query::new(1, Function::Index(0), Body::empty()));
    let mut out = BytesMut::new();
    let refused = Encoder::new(Wire::Ndjson, Limits::default()).encode(&query, &mut out);
    assert_eq!(refused, Err(EncodeError::FunctionNeedsName));
    assert!(out.is_empty());
}
