//! Lines as they come: one stream per worker, and one that tells of workers that are new.
//!
//! A worker's stream outlives its processes, so only a worker that was not there before needs one
//! more.

use std::collections::HashSet;

use serde::Deserialize;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;

use super::super::call::path_segment;
use super::super::client::Client;
use super::super::endpoint::Endpoint;
use super::super::exit::{Exit, Failure};
use super::super::list::{self, Query};
use super::super::sse::Stream;
use super::{Line, Whose};

/// Lines read and not yet shown.
const AHEAD: usize = 64;

#[derive(Debug, Deserialize)]
struct Arrival {
    pool: String,
    worker: Option<String>,
}

/// The stream that tells of new workers: from now on, or after an event that is known.
pub(super) async fn arrivals(endpoint: &Endpoint, after: Option<u64>) -> Result<Stream, Failure> {
    let client = Client::connect(endpoint.clone()).await?;
    let after = after.map(|after| after.to_string());
    let query = Query::of("/api/events").with("kind", "worker.spawned");
    Stream::open(client, query.with_if("after", after.as_deref()).as_str()).await
}

/// Shows what comes until the server ends. `places`: the workers that are known, each with the
/// number of its last line that was shown.
pub(super) async fn follow(
    endpoint: &Endpoint,
    whose: &Whose,
    places: Vec<(String, u64)>,
    mut arrivals: Stream,
    json: bool,
) -> Result<Exit, Failure> {
    let (sender, mut lines) = channel(AHEAD);
    let mut tails = JoinSet::new();
    let mut known = HashSet::new();
    let begin = |tails: &mut JoinSet<_>, worker: &str, after: u64| {
        tails.spawn(tail(endpoint.clone(), worker.to_owned(), after, sender.clone()));
    };
    for (worker, after) in places {
        begin(&mut tails, &worker, after);
        known.insert(worker);
    }
    loop {
        tokio::select! {
            biased;
            // The sender above lives, so this never ends.
            Some(line) = lines.recv() => Line::show(&line, json)?,
            Some(ended) = tails.join_next(), if !tails.is_empty() => {
                // The others are still worth reading.
                if let Ok(Err(failure)) = ended {
                    failure.report();
                }
            }
            arrival = arrivals.next() => match arrival? {
                Some(sent) if sent.event == "worker.spawned" => {
                    let arrival: Arrival = list::understood(serde_json::from_str(&sent.data))?;
                    let worker = arrival.worker.unwrap_or_default();
                    if whose.is(&arrival.pool, &worker) && known.insert(worker.clone()) {
                        begin(&mut tails, &worker, 0);
                    }
                }
                // Too many events came at once; the next stream goes on where this one broke off.
                Some(sent) => arrivals = self::arrivals(endpoint, sent.id).await?,
                None => break,
            },
        }
    }
    drop(sender);
    // The server has closed; what its last streams brought is shown.
    while let Some(line) = lines.recv().await {
        line.show(json)?;
    }
    eprintln!("ostler: the server has ended");
    Ok(Exit::Ok)
}

/// One worker's lines, to the end of its stream.
async fn tail(
    endpoint: Endpoint,
    worker: String,
    after: u64,
    lines: Sender<Line>,
) -> Result<(), Failure> {
    let client = Client::connect(endpoint).await?;
    let path = format!("/api/workers/{}/logs", path_segment(&worker));
    let query = Query::of(&path).with("follow", "true").with("cursor", &after.to_string());
    let mut stream = Stream::open(client, query.as_str()).await?;
    while let Some(sent) = stream.next().await? {
        let item = list::understood(serde_json::from_str(&sent.data))?;
        let Some(line) = Line::of(&worker, item) else { continue };
        if lines.send(line).await.is_err() {
            break;
        }
    }
    Ok(())
}
