//! Streams of the server that are followed: its server-sent events, one by one.
//!
//! Knows the frame of an event and nothing of what it says.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::{Method, StatusCode};

use super::client::{ANSWER_MAX, Client, collect};
use super::exit::Failure;
use super::problem;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub id: Option<u64>,
    pub event: String,
    pub data: String,
}

/// An open stream. It holds its connection, which ends with it.
#[derive(Debug)]
pub(super) struct Stream {
    _client: Client,
    body: Incoming,
    buffer: BytesMut,
}

impl Stream {
    pub async fn open(client: Client, path: &str) -> Result<Self, Failure> {
        let opened = Self::open_after(client, path, None).await?;
        opened.map_err(|(status, body)| problem::failure(status, &body))
    }

    /// The stream from where another one was lost, or what the server answered instead.
    pub async fn open_after(
        mut client: Client,
        path: &str,
        last: Option<u64>,
    ) -> Result<Result<Self, (StatusCode, Bytes)>, Failure> {
        let mut request = client.request(Method::GET, path).header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last.to_string());
        }
        let response = client.send(request, Bytes::new()).await?;
        let (status, body) = (response.status(), response.into_body());
        Ok(match status.is_success() {
            true => Ok(Self { _client: client, body, buffer: BytesMut::new() }),
            false => Err((status, collect(body).await?)),
        })
    }

    /// The next event; `None` when the server has ended the stream. It may be dropped and called
    /// again; nothing is lost.
    pub async fn next(&mut self) -> Result<Option<Sent>, Failure> {
        loop {
            while let Some(block) = take_block(&mut self.buffer) {
                // A heartbeat is a comment and says nothing.
                if let Some(sent) = parse(&block) {
                    return Ok(Some(sent));
                }
            }
            if self.buffer.len() > ANSWER_MAX {
                return Err(broken("an event without end"));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(broken(&error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

fn broken(why: &str) -> Failure {
    Failure::failed(format!("the stream broke off ({why}); is the server there? ostler status"))
}

/// What stands before the next empty line.
fn take_block(buffer: &mut BytesMut) -> Option<String> {
    let at = buffer.windows(2).position(|two| two == b"\n\n")?;
    let block = buffer.split_to(at + 2);
    Some(String::from_utf8_lossy(&block).into_owned())
}

fn parse(block: &str) -> Option<Sent> {
    let mut sent = Sent::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => sent.id = value.parse().ok(),
            "event" => value.clone_into(&mut sent.event),
            "data" => sent.data.push_str(value),
            _ => {}
        }
    }
    (!sent.event.is_empty()).then_some(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_apart_and_heartbeats_are_not_events() {
        let mut buffer = BytesMut::from(
            ": heartbeat\n\nid: 7\nevent: line\ndata: {\"a\":\"b: c\"}\n\nid: 8\nev",
        );
        assert_eq!(take_block(&mut buffer).and_then(|block| parse(&block)), None);
        let sent = take_block(&mut buffer).and_then(|block| parse(&block)).expect("an event");
        let expected = Sent { id: Some(7), event: "line".into(), data: "{\"a\":\"b: c\"}".into() };
        assert_eq!(sent, expected);
        assert_eq!(take_block(&mut buffer), None, "it is not whole yet");
    }
}
