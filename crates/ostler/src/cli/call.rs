//! `ostler call`: one request, its result or its stream of chunks.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Method, Response};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::args::{CallArgs, CalledArgs, WorkersCallArgs};
use super::client::{ANSWER_MAX, Client, collect};
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::{output, payload, problem};
use crate::config::units::show_duration;

/// How long after the deadline an answer may still be on its way.
const LATENESS: Duration = Duration::from_secs(10);

pub(super) async fn run(args: &CallArgs) -> Result<Exit, Failure> {
    call(&format!("/api/pools/{}", path_segment(&args.pool)), &args.called).await
}

/// The same to one worker, whatever its pool has.
pub(super) async fn to_worker(args: &WorkersCallArgs) -> Result<Exit, Failure> {
    call(&format!("/api/workers/{}", path_segment(&args.worker)), &args.called).await
}

async fn call(to: &str, args: &CalledArgs) -> Result<Exit, Failure> {
    let path = format!("{to}/call/{}", path_segment(&args.function));
    let payload = payload::read(&args.payload)?;
    let endpoint = Endpoint::find(&args.server)?;
    let call = async {
        let mut client = Client::connect(endpoint).await?;
        let response = send(&mut client, &path, args, payload).await?;
        answer(args, response).await
    };
    let Some(deadline) = args.timeout else {
        return call.await;
    };
    match tokio::time::timeout(deadline + LATENESS, call).await {
        Ok(result) => result,
        Err(_) => Err(Failure::new(
            Exit::Timeout,
            format!(
                "no answer within {} and {} more; the request may still run",
                show_duration(deadline),
                show_duration(LATENESS)
            ),
        )),
    }
}

async fn send(
    client: &mut Client,
    path: &str,
    args: &CalledArgs,
    payload: Bytes,
) -> Result<Response<Incoming>, Failure> {
    let accept = match args.stream {
        true => "application/x-ndjson",
        false => "application/json, */*",
    };
    let mut request = client.request(Method::POST, path).header(ACCEPT, accept);
    if !payload.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some(timeout) = args.timeout {
        request = request.header("Ostler-Timeout", timeout.as_secs_f64().to_string());
    }
    if args.idempotent {
        request = request.header("Ostler-Idempotent", "true");
    }
    if let Some(priority) = args.priority {
        request = request.header("Ostler-Priority", priority.to_string());
    }
    let named = [
        ("Ostler-Request-Id", &args.request_id),
        ("Ostler-Session", &args.session),
        ("Ostler-Affinity", &args.affinity),
        ("Ostler-Workspace", &args.workspace),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    client.send(request, payload).await
}

async fn answer(args: &CalledArgs, response: Response<Incoming>) -> Result<Exit, Failure> {
    let status = response.status();
    let kind = kind_of(&response);
    tell_of_a_new_beginning(args, &response);
    let body = response.into_body();
    if !status.is_success() {
        return Err(problem::failure(status, &collect(body).await?));
    }
    if kind == "application/x-ndjson" {
        return stream(body).await;
    }
    print_result(&collect(body).await?, &kind, args.raw)?;
    Ok(Exit::Ok)
}

/// A JSON result gets a line of its own; other bytes are the caller's own and stay as they are.
pub(super) fn print_result(bytes: &[u8], kind: &str, raw: bool) -> Result<(), Failure> {
    if raw {
        let text = serde_json::from_slice::<String>(bytes);
        return output::pass_on(text.as_deref().map_or(bytes, str::as_bytes));
    }
    match kind {
        "application/json" | "" => output::pass_on_line(bytes),
        _ => output::pass_on(bytes),
    }
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

impl Frame<'_> {
    fn data(&self) -> &[u8] {
        self.data.map_or("null", RawValue::get).as_bytes()
    }
}

async fn stream(mut body: Incoming) -> Result<Exit, Failure> {
    let mut buffer = BytesMut::new();
    let mut chunks = 0_u64;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken_off(chunks, &error.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let searched = buffer.len();
        buffer.extend_from_slice(&data);
        let mut searched = searched;
        while let Some(at) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(searched + at + 1);
            searched = 0;
            if let Some(exit) = on_line(&line, &mut chunks)? {
                return Ok(exit);
            }
        }
        if buffer.len() > ANSWER_MAX {
            return Err(broken_off(chunks, "a line without end"));
        }
    }
    Err(broken_off(chunks, "the connection closed"))
}

/// Handles one line; `Some` ends the stream.
fn on_line(line: &[u8], chunks: &mut u64) -> Result<Option<Exit>, Failure> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let frame: Frame<'_> = serde_json::from_slice(line)
        .map_err(|error| broken_off(*chunks, &format!("a line is not understood: {error}")))?;
    match frame.kind {
        "message" => {
            output::pass_on_line(frame.data())?;
            *chunks += 1;
            Ok(None)
        }
        "complete" => {
            // A generator returns nothing; what a plain function returns is its only line.
            if frame.data() != b"null" {
                output::pass_on_line(frame.data())?;
            }
            Ok(Some(Exit::Ok))
        }
        "error" => Err(problem::failure_in_stream(frame.data())),
        "cancelled" => {
            Err(Failure::failed(format!("the request was cancelled after {chunks} chunks")))
        }
        // Lines of a later version that an older client need not know.
        _ => Ok(None),
    }
}

fn broken_off(chunks: u64, why: &str) -> Failure {
    Failure::failed(format!(
        "the stream broke off after {chunks} chunks without an outcome ({why})"
    ))
}

/// The content type of an answer, without its parameters.
pub(super) fn kind_of<B>(response: &Response<B>) -> String {
    let kind = header(response, CONTENT_TYPE.as_str());
    kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

fn header<'a, B>(response: &'a Response<B>, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// What the worker kept of the session in its memory is gone: a person wants to know, and the
/// result looks the same.
fn tell_of_a_new_beginning<B>(args: &CalledArgs, response: &Response<B>) {
    if header(response, "Ostler-Session-Continuity") == "restarted" {
        let session = args.session.as_deref().unwrap_or_default();
        eprintln!("ostler: the worker of session {session} was replaced; it began anew");
    }
}

/// A name as one segment of a path: everything that is not unreserved is percent-encoded.
pub(super) fn path_segment(name: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(byte.into()),
            // Two dots would be a step up the path; a dot inside a name is not.
            b'.' if !name.trim_matches('.').is_empty() => out.push('.'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_segment_of_the_path() {
        for (name, segment) in [
            ("greet", "greet"),
            ("mod.greet", "mod.greet"),
            ("..", "%2E%2E"),
            ("a/b?c#d e", "a%2Fb%3Fc%23d%20e"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(path_segment(name), segment);
        }
    }
}
