//! `ostler sessions`: what callers keep in the server.

mod describe;

use bytes::Bytes;
use hyper::Method;
use hyper::header::IF_MATCH;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::{
    ServerArg, SessionsAction, SessionsArgs, SessionsCreateArgs, SessionsDeleteArgs,
    SessionsListArgs, SessionsShowArgs, SessionsStatsArgs, SessionsSweepArgs,
};
use super::call::path_segment;
use super::client::{Client, collect};
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::list::{self, Query};
use super::{output, payload, problem};
use crate::text::one_line;

/// What shows the sessions that there are.
const SEE: &str = "ostler sessions";

/// A session as the server tells it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Session {
    id: String,
    metadata: Map<String, Value>,
    programs: Vec<Program>,
    version: u64,
    created_at: String,
    last_accessed: String,
    /// In seconds.
    ttl: Option<f64>,
    expires_at: Option<String>,
    last_worker: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Program {
    name: String,
    bytes: u64,
    content_type: Option<String>,
}

pub(super) async fn run(args: &SessionsArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => list(&args.list).await,
        Some(SessionsAction::List(args)) => list(args).await,
        Some(SessionsAction::Show(args)) => show(args).await,
        Some(SessionsAction::Create(args)) => create(args).await,
        Some(SessionsAction::Delete(args)) => delete(args).await,
        Some(SessionsAction::Sweep(args)) => sweep(args).await,
        Some(SessionsAction::Stats(args)) => stats(args).await,
    }?;
    Ok(Exit::Ok)
}

async fn connect(server: &ServerArg) -> Result<Client, Failure> {
    Client::connect(Endpoint::find(server)?).await
}

async fn list(args: &SessionsListArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let page = list::read(&mut client, &Query::of("/api/sessions"), args.limit as usize).await?;
    if args.json {
        let body = json!({ "items": page.items, "next_cursor": page.next_cursor });
        return output::pass_on_line(body.to_string().as_bytes());
    }
    let sessions: Vec<Session> = list::parse(&page.items)?;
    let mut out = describe::table(&sessions, Timestamp::now());
    if page.next_cursor.is_some() {
        out.push_str("there are more; -n shows them\n");
    }
    output::print(&out)
}

async fn show(args: &SessionsShowArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let (status, body) = client.ask(Method::GET, &path_of(&args.id), Bytes::new()).await?;
    if !status.is_success() {
        return Err(problem::unknown_is_failed(status, &body, SEE));
    }
    if args.json {
        return output::pass_on_line(&body);
    }
    let session = list::understood(serde_json::from_slice(&body))?;
    output::print(&describe::one(&session, Timestamp::now()))
}

async fn create(args: &SessionsCreateArgs) -> Result<(), Failure> {
    let new = Bytes::from(Value::Object(new(args)?).to_string());
    let mut client = connect(&args.server).await?;
    let (status, body) = client.ask(Method::POST, "/api/sessions", new).await?;
    if !status.is_success() {
        return Err(problem::failure(status, &body));
    }
    if args.json {
        return output::pass_on_line(&body);
    }
    let session: Session = list::understood(serde_json::from_slice(&body))?;
    output::print(&format!("{}\n", one_line(&session.id)))
}

/// What was asked for; the rest is the server's to decide.
fn new(args: &SessionsCreateArgs) -> Result<Map<String, Value>, Failure> {
    let mut new = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        new.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("id", args.id.clone().map(Value::from));
    put("ttl", args.ttl.map(|ttl| ttl.as_secs_f64().into()));
    put("expires_at", args.expires_at.map(|at| at.to_string().into()));
    if let Some(metadata) = &args.metadata {
        let metadata = payload::read(std::slice::from_ref(metadata))?;
        let metadata: Value = serde_json::from_slice(&metadata).unwrap_or_default();
        if !metadata.is_object() {
            return Err(Failure::usage("--metadata must be a JSON object: '{\"name\": \"Ann\"}'"));
        }
        put("metadata", Some(metadata));
    }
    Ok(new)
}

async fn delete(args: &SessionsDeleteArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let mut request = client.request(Method::DELETE, &path_of(&args.id));
    if let Some(version) = args.version {
        request = request.header(IF_MATCH, format!("\"{version}\""));
    }
    let response = client.send(request, Bytes::new()).await?;
    let status = response.status();
    if !status.is_success() {
        let body = collect(response.into_body()).await?;
        return Err(problem::unknown_is_failed(status, &body, SEE));
    }
    output::print(&format!("{}: removed\n", one_line(&args.id)))
}

async fn sweep(args: &SessionsSweepArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let (status, body) = client.ask(Method::POST, "/api/sessions/sweep", Bytes::new()).await?;
    if !status.is_success() {
        return Err(problem::failure(status, &body));
    }
    if args.json {
        return output::pass_on_line(&body);
    }
    let swept: Value = list::understood(serde_json::from_slice(&body))?;
    let words = match swept["removed"].as_u64().unwrap_or_default() {
        0 => "no session had expired".to_owned(),
        1 => "1 session had expired and is removed".to_owned(),
        n => format!("{n} sessions had expired and are removed"),
    };
    output::print(&format!("{words}\n"))
}

async fn stats(args: &SessionsStatsArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let body = list::get(&mut client, "/api/stats/sessions").await?;
    if args.json {
        return output::pass_on_line(&body);
    }
    let stats = list::understood(serde_json::from_slice(&body))?;
    output::print(&describe::stats(&stats))
}

fn path_of(id: &str) -> String {
    format!("/api/sessions/{}", path_segment(id))
}

pub(super) fn parse_moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "write it as 2030-01-31T12:00:00Z".to_owned())
}
