//! A stream of server-sent events, read one by one.

use serde_json::Value;

use super::http::{Request, Sent};
use super::server::Server;

pub struct Stream {
    sent: Sent,
    text: String,
}

/// One event.
#[derive(Debug)]
pub struct Told {
    pub id: Option<String>,
    pub name: String,
    pub data: Value,
}

impl Stream {
    pub fn open(server: &Server, request: &Request) -> Stream {
        Stream::of(request.send(server.address))
    }

    /// The stream that a request was answered with.
    pub fn of(mut sent: Sent) -> Stream {
        let head = sent.head();
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        Stream { sent, text: String::new() }
    }

    /// The next event; `None` at the end.
    pub fn told(&mut self) -> Option<Told> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name| event.lines().find_map(|line| line.strip_prefix(name));
                let Some(name) = field("event: ") else { continue };
                let data = serde_json::from_str(field("data: ").expect("data")).expect("JSON");
                let id = field("id: ").map(str::to_owned);
                return Some(Told { id, name: name.to_owned(), data });
            }
            let piece = String::from_utf8(self.sent.chunk()?).expect("text");
            self.text.push_str(&piece);
        }
    }

    /// The name and the data of the next event.
    pub fn next(&mut self) -> Option<(String, Value)> {
        self.told().map(|told| (told.name, told.data))
    }

    /// The data of the next event of that name.
    pub fn until(&mut self, wanted: &str) -> Value {
        loop {
            let (name, data) = self.next().unwrap_or_else(|| panic!("never seen: {wanted}"));
            if name == wanted {
                return data;
            }
        }
    }
}
