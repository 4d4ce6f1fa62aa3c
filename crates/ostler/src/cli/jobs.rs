//! `ostler jobs`: durable work, submitted, looked at, followed, cancelled, tried again.

mod describe;
mod follow;
mod order;
mod progress;
mod queues;
mod story;
mod submit;

use bytes::Bytes;
use hyper::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::{
    JobsAction, JobsArgs, JobsFollowArgs, JobsListArgs, JobsOrderArgs, JobsShowArgs, ServerArg,
};
use super::call::path_segment;
use super::change::Change;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::list::{self, Page, Query};
use super::{output, problem};
use crate::text::one_line;

pub(super) use describe::steps;
pub(super) use order::{Backoff, Order, parse_backoff, parse_tag, parse_when};

/// What shows the jobs that there are.
const SEE: &str = "ostler jobs";

/// A job as the server tells it. Every member is optional: a command of one version should make
/// sense of a server of another.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Job {
    id: String,
    status: String,
    pool: String,
    function: String,
    queue: String,
    workspace_id: String,
    task_description: Option<String>,
    payload: Option<Value>,
    worker_count: u64,
    parent_job_id: Option<String>,
    depth: u64,
    session: Option<String>,
    priority: i64,
    run_at: Option<String>,
    /// In seconds.
    timeout: Option<f64>,
    max_attempts: u64,
    /// Attempts begun.
    attempts: u64,
    tags: Map<String, Value>,
    unique_key: Option<String>,
    concurrency_key: Option<String>,
    concurrency_limit: u64,
    waiting: bool,
    open_children: u64,
    cancel: Option<Cancel>,
    progress: Option<Value>,
    result: Option<Value>,
    error: Option<Value>,
    reason: Option<String>,
    retry_of: Option<String>,
    schedule_id: Option<String>,
    created_at: String,
    started_at: Option<String>,
    completed_at: Option<String>,
    events_dropped: u64,
    state_history: Vec<Step>,
    known: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cancel {
    at: String,
    reason: String,
    by: String,
}

/// One change of status, of a job or of a worker.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Step {
    pub seq: Option<u64>,
    pub from: Option<String>,
    pub to: String,
    pub trigger: Option<String>,
    pub reason: Option<String>,
    pub actor: Option<String>,
    pub request_id: Option<String>,
    pub at: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attempt {
    attempt: u64,
    workers: Vec<String>,
    started_at: String,
    ended_at: Option<String>,
    outcome: Option<String>,
    error: Option<Value>,
}

pub(super) async fn run(args: &JobsArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => list(&args.list).await?,
        Some(JobsAction::List(args)) => list(args).await?,
        Some(JobsAction::Submit(args)) => return submit::run(args).await,
        Some(JobsAction::Show(args)) => show(args).await?,
        Some(JobsAction::Follow(args)) => return follow_one(args).await,
        Some(JobsAction::Cancel(args)) => cancel(args).await?,
        Some(JobsAction::Retry(args)) => retry(args).await?,
        Some(JobsAction::Pause(args)) => queues::order(args, "pause").await?,
        Some(JobsAction::Resume(args)) => queues::order(args, "resume").await?,
        Some(JobsAction::Queues(args)) => queues::list(args).await?,
    }
    Ok(Exit::Ok)
}

async fn connect(server: &ServerArg) -> Result<Client, Failure> {
    Client::connect(Endpoint::find(server)?).await
}

async fn list(args: &JobsListArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let page = list::read(&mut client, &filtered(args), args.limit as usize).await?;
    if args.json {
        let body = json!({ "items": page.items, "next_cursor": page.next_cursor });
        return output::pass_on_line(body.to_string().as_bytes());
    }
    let jobs: Vec<Job> = list::parse(&page.items)?;
    let mut out = describe::table(&jobs, Timestamp::now());
    if page.next_cursor.is_some() {
        out.push_str("there are older ones; -n shows more\n");
    }
    output::print(&out)
}

fn filtered(args: &JobsListArgs) -> Query {
    // Statuses are written in capitals; people need not.
    let status = args.status.as_ref().map(|status| status.to_uppercase());
    let tag = args.tag.as_ref().map(|(name, value)| format!("{name}:{value}"));
    Query::of("/api/jobs")
        .with_if("status", status.as_deref())
        .with_if("pool", args.pool.as_deref())
        .with_if("queue", args.queue.as_deref())
        .with_if("function", args.function.as_deref())
        .with_if("workspace_id", args.workspace.as_deref())
        .with_if("parent_job_id", args.parent.as_deref())
        .with_if("root_job_id", args.root.as_deref())
        .with_if("schedule_id", args.schedule.as_deref())
        .with_if("tag", tag.as_deref())
}

async fn show(args: &JobsShowArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let body = get(&mut client, &path_of(&args.id)).await?;
    let attempts = get(&mut client, &format!("{}/attempts", path_of(&args.id))).await?;
    let attempts: Page = list::understood(serde_json::from_slice(&attempts))?;
    let attempts = attempts.items;
    if args.json {
        let mut job: Map<String, Value> = list::understood(serde_json::from_slice(&body))?;
        job.insert("attempt_history".to_owned(), attempts.into());
        return output::pass_on_line(Value::Object(job).to_string().as_bytes());
    }
    let job: Job = list::understood(serde_json::from_slice(&body))?;
    output::print(&describe::one(&job, &list::parse(&attempts)?, Timestamp::now()))
}

async fn follow_one(args: &JobsFollowArgs) -> Result<Exit, Failure> {
    follow::show(Endpoint::find(&args.server)?, &args.id, args.json).await
}

async fn cancel(args: &JobsOrderArgs) -> Result<(), Failure> {
    let body = ordered(args, "cancel").await?;
    if args.json {
        return output::pass_on_line(&body);
    }
    let job: Job = list::understood(serde_json::from_slice(&body))?;
    output::print(&format!("{}\n", one_line(&describe::cancelled(&job))))
}

async fn retry(args: &JobsOrderArgs) -> Result<(), Failure> {
    let body = ordered(args, "retry").await?;
    if args.json {
        return output::pass_on_line(&body);
    }
    let job: Job = list::understood(serde_json::from_slice(&body))?;
    output::print(&format!("{}\n", one_line(&job.id)))
}

async fn ordered(args: &JobsOrderArgs, order: &str) -> Result<Bytes, Failure> {
    let mut client = connect(&args.server).await?;
    let change = Change::post(format!("{}/{order}", path_of(&args.id))).one_of(SEE);
    change.ordered(&args.order, Map::new()).ask(&mut client).await
}

async fn get(client: &mut Client, path: &str) -> Result<Bytes, Failure> {
    let (status, body) = client.ask(Method::GET, path, Bytes::new()).await?;
    match status.is_success() {
        true => Ok(body),
        false => Err(problem::unknown_is_failed(status, &body, SEE)),
    }
}

fn path_of(id: &str) -> String {
    format!("/api/jobs/{}", path_segment(id))
}
