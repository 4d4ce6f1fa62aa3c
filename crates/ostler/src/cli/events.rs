//! `ostler events`: what happened in the pools and what happens now, a line for each event.

mod words;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::args::EventsArgs;
use super::cells::moment;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::list::{self, Query};
use super::output;
use super::sse::{Sent, Stream};
use crate::text::one_line;

/// An event as the server tells it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    at: String,
    pub kind: String,
    pub pool: String,
    pub worker: Option<String>,
    generation: Option<u64>,
    request_id: Option<String>,
    from: Option<String>,
    pub to: Option<String>,
    reason: Option<String>,
    seconds: Option<f64>,
    detail: Map<String, Value>,
}

pub(super) async fn run(args: &EventsArgs) -> Result<Exit, Failure> {
    let endpoint = Endpoint::find(&args.server)?;
    let mut after = 0;
    loop {
        let client = Client::connect(endpoint.clone()).await?;
        let stream = Stream::open(client, query(args, after).as_str()).await?;
        match show(args, stream).await? {
            Some(resume) => after = resume,
            None => break,
        }
    }
    if args.follow {
        eprintln!("ostler: the server has ended");
    }
    Ok(Exit::Ok)
}

fn query(args: &EventsArgs, after: u64) -> Query {
    let kinds = (!args.kind.is_empty()).then(|| args.kind.join(","));
    let mut query = Query::of("/api/events").with("after", &after.to_string());
    query = query.with_if("pool", args.pool.as_deref()).with_if("kind", kinds.as_deref());
    if args.all {
        query = query.with("all", "true");
    }
    query.with("follow", if args.follow { "true" } else { "false" })
}

/// Shows the stream to its end. `Some`: it was too fast for us and goes on after that number.
async fn show(args: &EventsArgs, mut stream: Stream) -> Result<Option<u64>, Failure> {
    while let Some(sent) = stream.next().await? {
        if sent.event == "lagged" {
            eprintln!("ostler: {}", missed(&sent));
            return Ok(sent.id);
        }
        match args.json {
            true => output::pass_on_line(sent.data.as_bytes())?,
            false => output::print(&line(&list::understood(serde_json::from_str(&sent.data))?))?,
        }
    }
    Ok(None)
}

fn missed(lagged: &Sent) -> String {
    let data: Value = serde_json::from_str(&lagged.data).unwrap_or_default();
    let missed = data["missed"].as_u64().unwrap_or_default();
    format!("{missed} events came faster than they were read and are lost")
}

/// One line, ended: when, who, what.
pub(super) fn line(event: &Event) -> String {
    let subject = words::subject(event);
    let text = format!("{}  {subject}  {}", moment(&event.at), words::account(event));
    format!("{}\n", one_line(&text))
}
