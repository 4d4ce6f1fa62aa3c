//! `ostler schedules`: jobs that come again and again.

use bytes::Bytes;
use hyper::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::args::{
    SchedulesAction, SchedulesAddArgs, SchedulesArgs, SchedulesDeleteArgs, SchedulesListArgs,
    SchedulesOrderArgs, SchedulesShowArgs, ServerArg,
};
use super::call::path_segment;
use super::cells::{age, moment, or_dash};
use super::change::Change;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::jobs::Order;
use super::list::{self, Query};
use super::table::Table;
use super::{output, problem};
use crate::text::{one_line, printable};

/// What shows the schedules that there are.
const SEE: &str = "ostler schedules";

/// A schedule as the server tells it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Schedule {
    id: String,
    name: String,
    workspace_id: String,
    cron: String,
    timezone: String,
    overlap: String,
    paused: bool,
    job: Map<String, Value>,
    next_at: Option<String>,
    last_at: Option<String>,
    last_job_id: Option<String>,
}

/// What is asked for; what is left out is the server's to decide.
#[derive(Debug, Serialize)]
struct New<'a> {
    name: &'a str,
    cron: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
    job: Order<'a>,
}

pub(super) async fn run(args: &SchedulesArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => list(&args.list).await,
        Some(SchedulesAction::List(args)) => list(args).await,
        Some(SchedulesAction::Add(args)) => add(args).await,
        Some(SchedulesAction::Show(args)) => show(args).await,
        Some(SchedulesAction::Pause(args)) => order(args, "pause").await,
        Some(SchedulesAction::Resume(args)) => order(args, "resume").await,
        Some(SchedulesAction::Delete(args)) => delete(args).await,
    }?;
    Ok(Exit::Ok)
}

async fn connect(server: &ServerArg) -> Result<Client, Failure> {
    Client::connect(Endpoint::find(server)?).await
}

async fn list(args: &SchedulesListArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let page = list::read(&mut client, &Query::of("/api/schedules"), args.limit as usize).await?;
    if args.json {
        let body = json!({ "items": page.items, "next_cursor": page.next_cursor });
        return output::pass_on_line(body.to_string().as_bytes());
    }
    let schedules: Vec<Schedule> = list::parse(&page.items)?;
    let mut out = table(&schedules, Timestamp::now());
    if page.next_cursor.is_some() {
        out.push_str("there are more; -n shows them\n");
    }
    output::print(&out)
}

fn table(schedules: &[Schedule], now: Timestamp) -> String {
    let mut table =
        Table::new(["SCHEDULE", "WHEN", "ZONE", "FUNCTION", "NEXT", "LAST", "LAST JOB", "ID"]);
    for schedule in schedules {
        table.row([
            schedule.name.clone(),
            schedule.cron.clone(),
            schedule.timezone.clone(),
            schedule.function(),
            schedule.next(now),
            or_dash(schedule.last_at.as_deref().map(moment)),
            or_dash(schedule.last_job_id.clone()),
            schedule.id.clone(),
        ]);
    }
    table.render()
}

impl Schedule {
    fn function(&self) -> String {
        let text = |key: &str| self.job.get(key).and_then(Value::as_str).unwrap_or("?");
        format!("{}.{}", text("pool"), text("function"))
    }

    /// `in 3m 2s`.
    fn next(&self, now: Timestamp) -> String {
        if self.paused {
            return "paused".to_owned();
        }
        let next = self.next_at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
        or_dash(next.map(|at| format!("in {}", age(at.duration_since(now).as_secs_f64()))))
    }
}

async fn add(args: &SchedulesAddArgs) -> Result<(), Failure> {
    let new = New {
        name: &args.name,
        cron: &args.cron,
        workspace_id: args.job.workspace.as_deref(),
        timezone: args.timezone.as_deref(),
        overlap: args.overlap.as_deref(),
        paused: args.paused,
        job: Order::of(&args.pool, &args.job)?,
    };
    let change = Change::post("/api/schedules").with(&new).under(args.key.as_deref());
    let body = change.ask(&mut connect(&args.server).await?).await?;
    if args.json {
        return output::pass_on_line(&body);
    }
    let schedule: Schedule = list::understood(serde_json::from_slice(&body))?;
    output::print(&format!("{}\n", one_line(&schedule.id)))
}

async fn show(args: &SchedulesShowArgs) -> Result<(), Failure> {
    let mut client = connect(&args.server).await?;
    let (status, body) = client.ask(Method::GET, &path_of(&args.schedule), Bytes::new()).await?;
    if !status.is_success() {
        return Err(problem::unknown_is_failed(status, &body, SEE));
    }
    if args.json {
        return output::pass_on_line(&body);
    }
    let schedule = list::understood(serde_json::from_slice(&body))?;
    output::print(&describe(&schedule, Timestamp::now()))
}

fn describe(schedule: &Schedule, now: Timestamp) -> String {
    let overlap = match schedule.overlap.as_str() {
        "skip" => "a time is left out while the last job has no end",
        "allow" => "a job comes at each time, whether or not the last one has ended",
        other => other,
    };
    let lines = [
        format!("schedule   {}", schedule.name),
        format!("id         {}", schedule.id),
        format!("workspace  {}", schedule.workspace_id),
        format!("when       {} ({})", schedule.cron, schedule.timezone),
        format!("overlap    {overlap}"),
        format!("next       {}", schedule.next(now)),
        format!("last       {}", or_dash(schedule.last_at.as_deref().map(moment))),
        format!("last job   {}", or_dash(schedule.last_job_id.clone())),
    ];
    let lines: String = lines.iter().map(|line| format!("{}\n", one_line(line))).collect();
    // What is not set says nothing.
    let set =
        |value: &Value| !matches!(value, Value::Null) && *value != json!({}) && *value != json!([]);
    let job = schedule.job.iter().filter(|(_, value)| set(value));
    let job: Map<String, Value> = job.map(|(key, value)| (key.clone(), value.clone())).collect();
    format!("{lines}\n{}\n", printable(&format!("{:#}", Value::Object(job))))
}

async fn order(args: &SchedulesOrderArgs, order: &str) -> Result<(), Failure> {
    let change = Change::post(format!("{}/{order}", path_of(&args.schedule))).one_of(SEE);
    let change = change.ordered(&args.order, Map::new());
    let body = change.ask(&mut connect(&args.server).await?).await?;
    if args.json {
        return output::pass_on_line(&body);
    }
    let schedule: Schedule = list::understood(serde_json::from_slice(&body))?;
    let words = match schedule.paused {
        true => format!("{}: paused", schedule.name),
        false => {
            format!("{}: the next job comes {}", schedule.name, schedule.next(Timestamp::now()))
        }
    };
    output::print(&format!("{}\n", one_line(&words)))
}

async fn delete(args: &SchedulesDeleteArgs) -> Result<(), Failure> {
    let change = Change::delete(path_of(&args.schedule)).one_of(SEE);
    change.ask(&mut connect(&args.server).await?).await?;
    output::print(&format!("{}: removed; its jobs go on\n", one_line(&args.schedule)))
}

fn path_of(schedule: &str) -> String {
    format!("/api/schedules/{}", path_segment(schedule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_schedule_is_told_in_full() {
        let schedule = serde_json::from_value(json!({
            "id": "s_1", "name": "digest", "workspace_id": "default", "cron": "@daily",
            "timezone": "UTC", "overlap": "skip", "paused": false,
            "job": { "pool": "mail", "function": "digest", "session": null, "tags": {} },
            "next_at": "2026-01-02T03:04:05Z", "last_at": null, "last_job_id": null,
        }));
        let now = "2026-01-02T03:01:03Z".parse().expect("a time");
        let expected = r#"schedule   digest
id         s_1
workspace  default
when       @daily (UTC)
overlap    a time is left out while the last job has no end
next       in 3m 2s
last       -
last job   -

{
  "function": "digest",
  "pool": "mail"
}
"#;
        assert_eq!(describe(&schedule.expect("a schedule"), now), expected);
    }

    #[test]
    fn a_paused_schedule_has_no_next_time() {
        let paused = Schedule { paused: true, ..Schedule::default() };
        assert_eq!(paused.next(Timestamp::now()), "paused");
        assert_eq!(Schedule::default().next(Timestamp::now()), "-");
    }
}
