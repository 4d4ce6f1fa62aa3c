//! A client that sends what it is told, byte by byte, and takes what comes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

#[derive(Debug)]
pub struct Request {
    head: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

pub fn request(method: &str, path: &str) -> Request {
    let headers = vec![("Host".to_owned(), "localhost".to_owned())];
    Request { head: format!("{method} {path} HTTP/1.1"), headers, body: Vec::new() }
}

pub fn get(path: &str) -> Request {
    request("GET", path)
}

pub fn post(path: &str, body: &str) -> Request {
    request("POST", path).body(body)
}

impl Request {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self.header("Content-Length", &body.as_ref().len().to_string())
    }

    /// The same request without the end of its body.
    pub fn cut_short(mut self, missing: usize) -> Self {
        self.body.truncate(self.body.len() - missing);
        self
    }

    /// The same request, its body in pieces of unknown number.
    pub fn in_pieces(mut self, size: usize) -> Self {
        self.headers.retain(|(name, _)| name != "Content-Length");
        let piece =
            |piece: &[u8]| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        let mut body: Vec<u8> = self.body.chunks(size).flat_map(piece).collect();
        body.extend_from_slice(b"0\r\n\r\n");
        self.body = body;
        self.header("Transfer-Encoding", "chunked")
    }

    /// Sends it on a connection of its own.
    pub fn send(&self, address: SocketAddr) -> Sent {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        stream.write_all(&self.bytes()).expect("written");
        Sent::of(stream)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.head);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        [head.as_bytes(), &self.body].concat()
    }
}

/// A request on its way. Dropping it hangs up.
#[derive(Debug)]
pub struct Sent {
    reader: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Sent {
    pub fn of(stream: TcpStream) -> Sent {
        stream.set_read_timeout(Some(super::server::LIMIT)).expect("a timeout");
        Sent { reader: BufReader::new(stream) }
    }

    /// Head and body of the answer.
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        answer.body = match (answer.header("content-length"), answer.header("transfer-encoding")) {
            (Some(length), _) => self.exactly(length.parse().expect("a length")),
            (None, Some("chunked")) => std::iter::from_fn(|| self.chunk()).flatten().collect(),
            other => panic!("a body without an end: {other:?}"),
        };
        answer
    }

    pub fn head(&mut self) -> Answer {
        let status = self.line();
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let status = code.unwrap_or_else(|| panic!("not an answer: {status:?}"));
        Answer { status, headers, body: Vec::new() }
    }

    /// The next piece of a streamed body; `None` at its end.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line(), 16).expect("the size of a chunk");
        let chunk = self.exactly(size);
        self.line();
        (size > 0).then_some(chunk)
    }

    /// Whether the server has hung up, with nothing more to say.
    pub fn is_over(&mut self) -> bool {
        matches!(self.reader.read(&mut [0]), Ok(0) | Err(_))
    }

    /// The client's end of the connection.
    pub fn port(&self) -> u16 {
        self.reader.get_ref().local_addr().expect("connected").port()
    }

    /// Sends another request on the same connection.
    pub fn then(&mut self, request: &Request) {
        self.reader.get_mut().write_all(&request.bytes()).expect("written");
    }

    fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes).expect("the whole body");
        bytes
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// An error as every error must be.
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["retryable"].is_boolean(), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
        assert_eq!(problem["request_id"].as_str(), self.header("ostler-request-id"), "{problem}");
        assert!(problem["request_id"].is_string(), "{problem}");
        problem
    }
}
