//! `ostler requests`: the calls that live and the last that have ended, or the way of one.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::RequestsArgs;
use super::call::path_segment;
use super::cells::{between, moment, or_dash, since, span};
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::list::{self, Query};
use super::table::Table;
use super::{output, problem};
use crate::text::one_line;

/// What shows the requests that there are.
pub(super) const SEE: &str = "ostler requests";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Request {
    pub id: String,
    pub pool: String,
    pub function: String,
    pub state: String,
    pub worker: Option<String>,
    pub attempt: u64,
    pub chunks: u64,
    pub progress: Option<Value>,
    pub code: Option<String>,
    pub arrived_at: Option<String>,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub state_history: Vec<Step>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Step {
    pub state: String,
    pub at: String,
    pub worker: Option<String>,
    pub attempt: u64,
}

pub(super) async fn run(args: &RequestsArgs) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    match &args.id {
        Some(id) => one(&mut client, id, args.json).await?,
        None => many(&mut client, args).await?,
    }
    Ok(Exit::Ok)
}

async fn many(client: &mut Client, args: &RequestsArgs) -> Result<(), Failure> {
    // States are written in capitals; people need not.
    let state = args.state.as_ref().map(|state| state.to_uppercase());
    let query = Query::of("/api/requests")
        .with_if("pool", args.pool.as_deref())
        .with_if("state", state.as_deref());
    let page = list::read(client, &query, args.limit as usize).await?;
    if args.json {
        let body = json!({ "items": page.items, "next_cursor": page.next_cursor });
        return output::pass_on_line(body.to_string().as_bytes());
    }
    let requests: Vec<Request> = list::parse(&page.items)?;
    let mut out = table(&requests, Timestamp::now());
    if page.next_cursor.is_some() {
        out.push_str("there are older ones; -n shows more\n");
    }
    output::print(&out)
}

fn table(requests: &[Request], now: Timestamp) -> String {
    let mut table = Table::new([
        "REQUEST", "POOL", "FUNCTION", "STATE", "CODE", "WORKER", "TRY", "CHUNKS", "ARRIVED",
        "WAITED", "TOOK",
    ]);
    for request in requests {
        let arrived = request.arrived_at.as_deref().and_then(|at| since(at, now));
        table.row([
            request.id.clone(),
            request.pool.clone(),
            request.function.clone(),
            request.state.clone(),
            or_dash(request.code.clone()),
            or_dash(request.worker.clone()),
            request.attempt.to_string(),
            request.chunks.to_string(),
            or_dash(arrived.map(|age| format!("{age} ago"))),
            or_dash(request.waited(now).map(span)),
            or_dash(request.took(now).map(span)),
        ]);
    }
    table.render()
}

impl Request {
    /// In the queue, until a worker had it or it ended without one.
    fn waited(&self, now: Timestamp) -> Option<Duration> {
        let until = time(&self.started_at).or(time(&self.ended_at)).unwrap_or(now);
        Some(between(time(&self.arrived_at)?, until))
    }

    /// With workers.
    fn took(&self, now: Timestamp) -> Option<Duration> {
        Some(between(time(&self.started_at)?, time(&self.ended_at).unwrap_or(now)))
    }
}

fn time(at: &Option<String>) -> Option<Timestamp> {
    at.as_ref()?.parse().ok()
}

async fn one(client: &mut Client, id: &str, json: bool) -> Result<(), Failure> {
    let body = get(client, id).await?;
    if json {
        return output::pass_on_line(&body);
    }
    let request: Request = list::understood(serde_json::from_slice(&body))?;
    output::print(&describe(&request, Timestamp::now()))
}

/// One request as the server tells it. One that is not known is a failure, not a refusal.
pub(super) async fn get(client: &mut Client, id: &str) -> Result<Bytes, Failure> {
    let path = format!("/api/requests/{}", path_segment(id));
    let (status, body) = client.ask(Method::GET, &path, Bytes::new()).await?;
    match status.is_success() {
        true => Ok(body),
        false => Err(problem::unknown_is_failed(status, &body, SEE)),
    }
}

fn describe(request: &Request, now: Timestamp) -> String {
    let mut lines = vec![
        format!("request   {}", request.id),
        format!("function  {}.{}", request.pool, request.function),
        format!("state     {}", state(request)),
    ];
    lines.extend(request.waited(now).map(|waited| format!("waited    {}", span(waited))));
    lines.extend(request.took(now).map(|took| format!("took      {}", span(took))));
    if request.chunks > 0 {
        lines.push(format!("chunks    {}", request.chunks));
    }
    lines.extend(request.progress.as_ref().map(|progress| format!("progress  {progress}")));
    let mut out: String = lines.iter().map(|line| format!("{}\n", one_line(line))).collect();
    out.push('\n');
    out.push_str(&history(&request.state_history));
    out
}

fn state(request: &Request) -> String {
    match &request.code {
        Some(code) => format!("{} ({code})", request.state),
        None => request.state.clone(),
    }
}

fn history(steps: &[Step]) -> String {
    let mut table = Table::new(["STATE", "AT", "WORKER", "TRY"]);
    for step in steps {
        table.row([
            step.state.clone(),
            moment(&step.at),
            or_dash(step.worker.clone()),
            step.attempt.to_string(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_never_ran_has_waited_until_its_end() {
        let second = |second| Timestamp::from_second(second).expect("a time");
        let at = |n| Some(second(n).to_string());
        let now = second(100);
        let mut request = Request { arrived_at: at(1), ended_at: at(11), ..Request::default() };
        assert_eq!(
            (request.waited(now).map(span), request.took(now)),
            (Some("10.0 s".into()), None)
        );
        request.started_at = at(3);
        assert_eq!(request.waited(now).map(span).as_deref(), Some("2.00 s"));
        assert_eq!(request.took(now).map(span).as_deref(), Some("8.00 s"));
        request.ended_at = None;
        assert_eq!(request.took(now).map(span).as_deref(), Some("97.0 s"));
    }
}
