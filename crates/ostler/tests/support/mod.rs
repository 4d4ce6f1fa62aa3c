//! A tiny scripted HTTP server on a unix socket, and the built command run against it.

#![allow(dead_code, reason = "each test program uses the part that it needs")]

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method and path.
    pub line: String,
    /// In lower case, `name: value`.
    pub headers: Vec<String>,
    pub body: String,
}

impl Request {
    pub fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|line| line == header)
    }

    pub fn names(&self, header: &str) -> bool {
        let prefix = format!("{header}:");
        self.headers.iter().any(|line| line.starts_with(&prefix))
    }
}

/// What a script answers, and whether the server is gone after that.
pub struct Answer {
    pub bytes: Vec<u8>,
    pub last: bool,
}

pub fn answer(status: u16, kind: &str, body: &str) -> Answer {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    Answer { bytes: head.into_bytes(), last: false }
}

pub fn json(body: &str) -> Answer {
    answer(200, "application/json", body)
}

pub fn problem(status: u16, body: &str) -> Answer {
    answer(status, "application/problem+json", body)
}

pub fn ndjson(body: &str) -> Answer {
    answer(200, "application/x-ndjson", body)
}

type Script = Box<dyn FnMut(&Request) -> Answer + Send>;

/// Serves one connection after the other until it is dropped or its script says that it is gone.
pub struct Server {
    directory: tempfile::TempDir,
    thread: Option<JoinHandle<()>>,
    seen: Receiver<Request>,
}

impl Server {
    /// A server where the command looks for one: `.ostler/ostler.sock` in its directory.
    pub fn start(script: impl FnMut(&Request) -> Answer + Send + 'static) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = socket_in(directory.path());
        std::fs::create_dir(socket.parent().expect("a parent")).expect("a directory");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (sender, seen) = channel();
        let thread = std::thread::spawn(move || serve(&listener, Box::new(script), &sender));
        Self { directory, thread: Some(thread), seen }
    }

    /// A server that gives the same answer to everything.
    pub fn saying(answer: Answer) -> Self {
        Self::start(move |_| Answer { bytes: answer.bytes.clone(), last: false })
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        run_in(self.directory(), args, "")
    }

    pub fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        run_in(self.directory(), args, input)
    }

    /// The next request that arrived; the command has ended, so it is here already.
    pub fn seen(&self) -> Request {
        self.seen.try_recv().expect("a request arrived")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An empty connection ends the thread; it fails if the thread has ended by itself.
        drop(UnixStream::connect(socket_in(self.directory.path())));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the script panicked");
        }
    }
}

fn socket_in(directory: &Path) -> PathBuf {
    directory.join(".ostler/ostler.sock")
}

fn serve(listener: &UnixListener, mut script: Script, seen: &Sender<Request>) {
    while let Ok((stream, _)) = listener.accept() {
        let mut reader = BufReader::new(stream);
        let mut requests = 0;
        while let Some(request) = read(&mut reader) {
            requests += 1;
            let answer = script(&request);
            drop(seen.send(request));
            drop(reader.get_mut().write_all(&answer.bytes));
            if answer.last {
                return;
            }
        }
        if requests == 0 {
            return;
        }
    }
}

/// The next request of a connection; `None` at its end.
pub fn read(reader: &mut BufReader<impl Read>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.remove(0).replace(" HTTP/1.1", "");
    let headers: Vec<String> = lines.iter().map(|line| line.to_lowercase()).collect();
    let length = headers
        .iter()
        .find_map(|header| header.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().expect("a length"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line, headers, body: String::from_utf8(body).expect("text") })
}

/// How a run of the command ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The built command, in a directory and without a configuration from outside.
pub fn command_in(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
    command.args(args).current_dir(directory).env_remove("OSTLER_CONFIG");
    command
}

pub fn run_in(directory: &Path, args: &[&str], input: &str) -> Ran {
    let mut child = command_in(directory, args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A command that does not read its input may be gone before it is written.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    ran(child.wait_with_output().expect("the command ends"))
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}
