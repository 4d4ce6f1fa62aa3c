//! A call's chunks on their way to a client, as server-sent events or as lines of JSON. What is
//! ready goes out in one piece; a chunk never waits for the next one.

use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use ostler_runtime::{CallError, Failure, Item, Running, started_value};

use crate::problem::Problem;

/// How much is gathered into one write.
const GATHER: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Sse,
    Ndjson,
}

impl Framing {
    pub fn content_type(self) -> &'static str {
        match self {
            Framing::Sse => "text/event-stream",
            Framing::Ndjson => "application/x-ndjson",
        }
    }

    /// `data` is JSON; line breaks between its tokens mean nothing and are dropped.
    fn write(self, kind: &str, data: &[u8], out: &mut BytesMut) {
        match self {
            Framing::Sse => {
                out.put_slice(b"event: ");
                out.put_slice(kind.as_bytes());
                out.put_slice(b"\ndata: ");
                put_on_one_line(data, out);
                out.put_slice(b"\n\n");
            }
            Framing::Ndjson => {
                out.put_slice(b"{\"type\":\"");
                out.put_slice(kind.as_bytes());
                out.put_slice(b"\",\"data\":");
                put_on_one_line(data, out);
                out.put_slice(b"}\n");
            }
        }
    }
}

fn put_on_one_line(data: &[u8], out: &mut BytesMut) {
    for piece in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.put_slice(piece);
    }
}

#[derive(Debug)]
pub struct StreamBody {
    running: Running,
    framing: Framing,
    tracebacks: bool,
    request_id: String,
    /// What came before anybody asked for it.
    first: Option<Item>,
    ended: bool,
}

impl StreamBody {
    pub fn new(running: Running, framing: Framing, tracebacks: bool, request_id: String) -> Self {
        StreamBody { running, framing, tracebacks, request_id, first: None, ended: false }
    }

    pub fn begin_with(&mut self, first: Option<Item>) {
        self.first = first;
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Item> {
        match self.first.take() {
            Some(first) => Poll::Ready(first),
            None => self.running.poll_next(cx),
        }
    }

    pub fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = BytesMut::new();
        while !self.ended && out.len() < GATHER {
            match self.poll_next(cx) {
                Poll::Pending if out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
                Poll::Ready(Item::Chunk(chunk)) => {
                    self.framing.write("message", &chunk.to_json(), &mut out);
                }
                Poll::Ready(Item::End(end)) => {
                    self.ended = true;
                    self.write_end(end, &mut out);
                }
            }
        }
        Poll::Ready((!out.is_empty()).then(|| out.freeze()))
    }

    fn write_end(&self, end: Result<ostler_runtime::Body, CallError>, out: &mut BytesMut) {
        match end {
            Ok(body) => self.framing.write("complete", &body.to_json(), out),
            Err(CallError::Failed(Failure::Cancelled { started })) => {
                let data = serde_json::json!({ "started": started_value(started) }).to_string();
                self.framing.write("cancelled", data.as_bytes(), out);
            }
            Err(error) => {
                let problem = Problem::of_call(&error, self.tracebacks);
                let data = problem.to_json(&self.request_id).to_string();
                self.framing.write("error", data.as_bytes(), out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_inside_json_do_not_break_the_framing() {
        for (framing, wanted) in [
            (Framing::Sse, "event: message\ndata: [1,2]\n\n"),
            (Framing::Ndjson, "{\"type\":\"message\",\"data\":[1,2]}\n"),
        ] {
            let mut out = BytesMut::new();
            framing.write("message", b"[1,\r\n2]", &mut out);
            assert_eq!(out, wanted);
        }
    }
}
