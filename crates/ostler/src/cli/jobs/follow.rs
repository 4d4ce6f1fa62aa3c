//! A job followed to its end, over as many connections as that takes.
//!
//! The server keeps the story of a job, and each line of it has a number. So a connection that is
//! lost is made anew behind the last line that was read, and nothing is missed or told twice. How
//! the job ended decides how the command ends.

use std::io::IsTerminal as _;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::super::call;
use super::super::client::{Client, collect};
use super::super::endpoint::Endpoint;
use super::super::exit::{Exit, Failure};
use super::super::sse::{Sent, Stream};
use super::super::{list, output, problem};
use super::story::Event;
use super::{SEE, path_of};
use crate::text::one_line;

/// How long a server may be away before it is given up: long enough to be started again.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Between two tries to reach it.
const AGAIN_MIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(2);

/// Back to the line's beginning, and what stood there is cleared.
const CLEAR: &str = "\r\u{1b}[K";

/// How a job ended, as its story tells it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct End {
    status: String,
    reason: Option<String>,
    error: Option<Value>,
}

struct Follower<'a> {
    endpoint: Endpoint,
    id: &'a str,
    stream: Option<Stream>,
    /// The last line that was read.
    last: Option<u64>,
    met: bool,
    /// Since when the server cannot be reached.
    away: Option<Instant>,
    /// Before the next try to reach it. A server that takes connections and drops them is not to be
    /// hurried; whoever has just said something is.
    pause: Duration,
}

impl<'a> Follower<'a> {
    fn new(endpoint: Endpoint, id: &'a str) -> Self {
        let pause = Duration::ZERO;
        Self { endpoint, id, stream: None, last: None, met: false, away: None, pause }
    }

    /// The next line of the story; its last one is `end`.
    async fn next(&mut self) -> Result<Sent, Failure> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.connect().await?;
                continue;
            };
            match stream.next().await {
                Ok(Some(sent)) if sent.event == "gone" => return Err(gone(self.id, &sent)),
                Ok(Some(sent)) => {
                    self.last = sent.id.or(self.last);
                    self.pause = Duration::ZERO;
                    return Ok(sent);
                }
                // The server ends, or the connection does; the story does not.
                Ok(None) | Err(_) => self.stream = None,
            }
        }
    }

    /// One try to reach the server.
    async fn connect(&mut self) -> Result<(), Failure> {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).clamp(AGAIN_MIN, AGAIN_MAX);
        let failure = match self.open().await {
            Ok(Ok(stream)) => {
                (self.stream, self.met, self.away) = (Some(stream), true, None);
                return Ok(());
            }
            Ok(Err((status, body))) if status.is_client_error() => {
                return Err(problem::unknown_is_failed(status, &body, SEE));
            }
            Ok(Err((status, body))) => problem::failure(status, &body),
            Err(failure) => failure,
        };
        self.bear(failure)
    }

    /// Who was there before may come back; who was never there is not waited for.
    fn bear(&mut self, failure: Failure) -> Result<(), Failure> {
        if !self.met {
            return Err(failure);
        }
        let Some(since) = self.away else {
            eprintln!("ostler: the server is away; the job is kept, and is looked for again");
            self.away = Some(Instant::now());
            return Ok(());
        };
        if since.elapsed() < AWAY_MAX {
            return Ok(());
        }
        let again = format!("follow it again with: ostler jobs follow {}", self.id);
        Err(Failure::new(failure.exit, format!("{failure}\n  {again}")))
    }

    async fn open(&self) -> Result<Result<Stream, (StatusCode, Bytes)>, Failure> {
        let client = Client::connect(self.endpoint.clone()).await?;
        let path = format!("{}/events", path_of(self.id));
        Stream::open_after(client, &path, self.last).await
    }
}

/// The story was pruned while it was followed, or cannot be read.
fn gone(id: &str, sent: &Sent) -> Failure {
    let said: Value = serde_json::from_str(&sent.data).unwrap_or_default();
    let detail = said["detail"].as_str().unwrap_or("it is not said why");
    Failure::failed(format!("the story of job {id} ends here: {detail}"))
}

/// Shows the story as it comes, then the result, and ends as the job does.
pub(super) async fn show(endpoint: Endpoint, id: &str, json: bool) -> Result<Exit, Failure> {
    if json {
        let end = story(endpoint, id, |sent| output::pass_on_line(sent.data.as_bytes())).await?;
        output::pass_on_line(end.data.as_bytes())?;
        return Ok(End::of(&end)?.exit());
    }
    let mut screen = Screen::new();
    let show = |sent: &Sent| screen.show(&list::understood(serde_json::from_str(&sent.data))?);
    let end = story(endpoint.clone(), id, show).await?;
    screen.clear()?;
    ended(endpoint, id, &end).await
}

/// Waits without a word, then prints the result and ends as the job does.
pub(super) async fn wait(endpoint: Endpoint, id: &str) -> Result<Exit, Failure> {
    let end = story(endpoint.clone(), id, |_| Ok(())).await?;
    ended(endpoint, id, &end).await
}

/// Tells each line of the story, and gives its end.
async fn story(
    endpoint: Endpoint,
    id: &str,
    mut tell: impl FnMut(&Sent) -> Result<(), Failure>,
) -> Result<Sent, Failure> {
    let mut follower = Follower::new(endpoint, id);
    loop {
        let sent = follower.next().await?;
        if sent.event == "end" {
            return Ok(sent);
        }
        tell(&sent)?;
    }
}

async fn ended(endpoint: Endpoint, id: &str, sent: &Sent) -> Result<Exit, Failure> {
    let end = End::of(sent)?;
    match end.exit() {
        Exit::Ok => result(endpoint, id).await,
        _ => Err(end.failure(id)),
    }
}

/// What it returned, if that is something.
async fn result(endpoint: Endpoint, id: &str) -> Result<Exit, Failure> {
    let mut client = Client::connect(endpoint).await?;
    let request = client.request(Method::GET, &format!("{}/result", path_of(id)));
    let response = client.send(request, Bytes::new()).await?;
    let (status, kind) = (response.status(), call::kind_of(&response));
    let body = collect(response.into_body()).await?;
    if !status.is_success() {
        return Err(problem::unknown_is_failed(status, &body, SEE));
    }
    if &*body != b"null" {
        call::print_result(&body, &kind, false)?;
    }
    Ok(Exit::Ok)
}

impl End {
    fn of(sent: &Sent) -> Result<Self, Failure> {
        list::understood(serde_json::from_str(&sent.data))
    }

    fn exit(&self) -> Exit {
        match (self.status.as_str(), self.reason.as_deref()) {
            ("COMPLETED", _) => Exit::Ok,
            ("CANCELED", Some("timeout")) => Exit::Timeout,
            ("CANCELED", _) => Exit::Refused,
            _ => Exit::Failed,
        }
    }

    fn failure(&self, id: &str) -> Failure {
        let reason = self.reason.as_deref().unwrap_or("no reason given");
        let title = match self.exit() {
            Exit::Timeout => format!("job {id} ran out of time"),
            Exit::Refused => format!("job {id} was cancelled"),
            _ => format!("job {id} failed"),
        };
        let code = self.error.as_ref().and_then(|error| error["code"].as_str());
        problem::told(self.exit(), &title, code.unwrap_or(reason), self.error.as_ref())
    }
}

/// Lines, and on a terminal one last line that is drawn anew: how far the job is.
struct Screen {
    live: bool,
    drawn: bool,
}

impl Screen {
    fn new() -> Self {
        Self { live: std::io::stdout().is_terminal(), drawn: false }
    }

    fn show(&mut self, event: &Event) -> Result<(), Failure> {
        match event.progress().filter(|_| self.live) {
            Some(progress) => {
                self.drawn = true;
                output::print(&format!("{CLEAR}{}", one_line(&progress.bar())))
            }
            None => {
                self.clear()?;
                output::print(&event.line())
            }
        }
    }

    fn clear(&mut self) -> Result<(), Failure> {
        match std::mem::take(&mut self.drawn) {
            true => output::print(CLEAR),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_ends_as_its_job_does() {
        for (end, exit) in [
            (json!({ "status": "COMPLETED" }), Exit::Ok),
            (json!({ "status": "FAILED", "reason": "timeout" }), Exit::Failed),
            (json!({ "status": "CANCELED", "reason": "cancelled" }), Exit::Refused),
            (json!({ "status": "CANCELED", "reason": "timeout" }), Exit::Timeout),
            (json!({ "status": "LATER" }), Exit::Failed),
        ] {
            let end: End = serde_json::from_value(end).expect("an end");
            assert_eq!(end.exit(), exit, "{end:?}");
        }
    }

    #[test]
    fn a_failed_job_is_told_by_its_error() {
        let end = End {
            status: "FAILED".into(),
            reason: Some("application_error".into()),
            error: Some(
                json!({ "code": "application_error", "message": "as asked", "error_type": "E" }),
            ),
        };
        let shown = end.failure("j_1").to_string();
        assert_eq!(shown, "job j_1 failed (application_error)\n  as asked\n  error_type: E");
        let end = End { status: "CANCELED".into(), reason: Some("timeout".into()), error: None };
        assert_eq!(end.failure("j_1").to_string(), "job j_1 ran out of time (timeout)");
    }
}
