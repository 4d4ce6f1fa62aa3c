//! `ostler stop`: asks the server to end, and waits until it has.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use tokio::time::{Instant, sleep};

use super::args::StopArgs;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::{output, problem, stats};
use crate::config::units::show_duration;

/// How often it is looked whether the server is gone.
const LOOK: Duration = Duration::from_millis(25);

pub(super) async fn run(args: &StopArgs) -> Result<Exit, Failure> {
    let deadline = Instant::now() + args.timeout;
    let endpoint = Endpoint::find(&args.server)?;
    let process = process_of(Client::connect(endpoint.clone()).await?).await;
    let mut client = Client::connect(endpoint.clone()).await?;
    ask_to_stop(&mut client, args.now).await?;
    drop(client);
    gone(&endpoint, process.as_ref(), deadline, args.timeout).await?;
    output::print("stopped\n")?;
    Ok(Exit::Ok)
}

/// The server's process, to see it end. A server that cannot tell is stopped all the same.
async fn process_of(mut client: Client) -> Option<Process> {
    if !client.endpoint().is_local() {
        return None;
    }
    let body = stats::ask(&mut client).await.ok()?;
    Process::find(stats::parse(&body).ok()?.server.pid?)
}

async fn ask_to_stop(client: &mut Client, now: bool) -> Result<(), Failure> {
    let body = Bytes::from(serde_json::json!({ "now": now }).to_string());
    let (status, answer) = client.ask(Method::POST, "/api/server/stop", body).await?;
    match status.is_success() {
        true => Ok(()),
        false => Err(problem::failure(status, &answer)),
    }
}

/// Waits until nothing answers and the process has ended.
async fn gone(
    endpoint: &Endpoint,
    process: Option<&Process>,
    deadline: Instant,
    patience: Duration,
) -> Result<(), Failure> {
    loop {
        let ended = process.is_none_or(|process| !process.lives());
        if ended && !answers(endpoint).await {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Failure::new(
                Exit::Timeout,
                format!(
                    "the server is still stopping after {}; end it at once with: ostler stop --now",
                    show_duration(patience)
                ),
            ));
        }
        sleep(LOOK).await;
    }
}

async fn answers(endpoint: &Endpoint) -> bool {
    match Client::connect(endpoint.clone()).await {
        Ok(_) => true,
        Err(failure) => failure.exit != Exit::NotRunning,
    }
}

/// A process by its id and start time: an id alone may be given to a stranger.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    started: String,
}

impl Process {
    fn find(pid: u32) -> Option<Self> {
        let (_, started) = stat(pid)?;
        Some(Self { pid, started })
    }

    /// A process that has ended but was not waited for is gone as well.
    fn lives(&self) -> bool {
        stat(self.pid).is_some_and(|(state, started)| {
            started == self.started && !matches!(state.as_str(), "Z" | "X")
        })
    }
}

/// The state and the start time of a process. The name between the brackets may hold anything,
/// brackets too, so the fields are counted from the last one.
fn stat(pid: u32) -> Option<(String, String)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.to_owned();
    let started = fields.nth(18)?.to_owned();
    Some((state, started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_has_ended() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat runs");
        let process = Process::find(child.id()).expect("it is there");
        assert!(process.lives());
        let impostor =
            Process { started: "0".to_owned(), ..Process::find(child.id()).expect("it is there") };
        assert!(!impostor.lives());
        drop(child.stdin.take());
        child.wait().expect("cat ends");
        assert!(!process.lives());
    }
}
