//! `ostler audit`: the trail of a worker or a job, and the proof that no step of any is missing.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{AuditAction, AuditArgs, AuditOfArgs, AuditVerifyArgs};
use super::call::path_segment;
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::jobs::{Step, steps};
use super::list::{self, Query};
use super::{output, problem};
use crate::text::one_line;

/// Every entity is read and replayed; there may be millions of them.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What a replay of every entity found.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    pub jobs: u64,
    pub workers: u64,
    pub transitions: u64,
    pub findings: Vec<Finding>,
    pub findings_total: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Finding {
    pub entity: String,
    pub id: String,
    pub what: String,
}

pub(super) async fn run(args: &AuditArgs) -> Result<Exit, Failure> {
    match &args.action {
        AuditAction::Worker(args) => trail(args, "workers", "ostler workers").await,
        AuditAction::Job(args) => trail(args, "jobs", "ostler jobs").await,
        AuditAction::Verify(args) => verify(args).await,
    }
}

async fn trail(args: &AuditOfArgs, of: &str, see: &str) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let path = format!("/api/{of}/{}/transitions", path_segment(&args.id));
    let page = list::read_one_of(&mut client, &Query::of(&path), args.limit as usize, see).await?;
    // The phases of a worker's processes stand between; they are not kept, so they prove nothing.
    let kept = |item: &Value| item["machine"].as_str().is_none_or(|machine| machine == "status");
    let items: Vec<Value> = page.items.into_iter().filter(kept).collect();
    if args.json {
        let body = json!({ "items": items, "next_cursor": page.next_cursor });
        output::pass_on_line(body.to_string().as_bytes())?;
        return Ok(Exit::Ok);
    }
    let found: Vec<Step> = list::parse(&items)?;
    let mut out = steps(&found);
    if page.next_cursor.is_some() {
        out.push_str("there are more; -n shows them\n");
    }
    output::print(&out)?;
    Ok(Exit::Ok)
}

async fn verify(args: &AuditVerifyArgs) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let request = client.request(Method::GET, "/api/audit/verify");
    let (status, body) = client.ask_by(request, Bytes::new(), PATIENCE).await?;
    if !status.is_success() {
        return Err(problem::failure(status, &body));
    }
    let report: Report = list::understood(serde_json::from_slice(&body))?;
    match args.json {
        true => output::pass_on_line(&body)?,
        false => output::print(&report.words())?,
    }
    Ok(report.exit())
}

impl Report {
    pub fn exit(&self) -> Exit {
        match self.findings_total {
            0 => Exit::Ok,
            _ => Exit::Failed,
        }
    }

    pub fn words(&self) -> String {
        let read = format!(
            "jobs {}, workers {}, changes of status {}",
            self.jobs, self.workers, self.transitions
        );
        if self.findings_total == 0 {
            return format!("{read}: all of it fits\n");
        }
        let mut out = format!("{read}: does not fit: {}\n", self.findings_total);
        for Finding { entity, id, what } in &self.findings {
            out.push_str(&one_line(&format!("{entity} {id}: {what}")));
            out.push('\n');
        }
        let hidden = self.findings_total.saturating_sub(self.findings.len() as u64);
        if hidden > 0 {
            out.push_str(&format!("and {hidden} more\n"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_told_one_by_one_and_end_with_1() {
        let whole = Report { jobs: 3, workers: 2, transitions: 11, ..Report::default() };
        let words = "jobs 3, workers 2, changes of status 11: all of it fits\n";
        assert_eq!((whole.words().as_str(), whole.exit()), (words, Exit::Ok));
        let finding = Finding { entity: "job".into(), id: "j_1".into(), what: "a\nb".into() };
        let torn = Report { findings: vec![finding], findings_total: 5, ..whole };
        let words = "jobs 3, workers 2, changes of status 11: does not fit: 5\n\
                     job j_1: a\\nb\nand 4 more\n";
        assert_eq!((torn.words().as_str(), torn.exit()), (words, Exit::Failed));
    }
}
