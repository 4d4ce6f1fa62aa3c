//! `ostler doctor`: what this machine, the configuration and the interpreters can do.
//!
//! Checks only look; none of them changes anything. Each says what it found and, if that is not
//! enough, what to do.

mod config;
mod containment;
mod python;
mod system;

use std::fmt::Write as _;

use serde::Serialize;

use super::args::DoctorArgs;
use super::client::Client;
use super::endpoint::{Endpoint, current_dir};
use super::exit::{Exit, Failure};
use super::{output, stats};
use crate::text::one_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    /// It works, with less than there could be.
    Warning,
    /// It will not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub name: String,
    pub verdict: Verdict,
    pub found: String,
    /// What to do; empty when all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

impl Check {
    fn ok(name: &str, found: impl Into<String>) -> Self {
        Self::new(name, Verdict::Ok, found, "")
    }

    fn warning(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(name, Verdict::Warning, found, advice)
    }

    fn problem(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(name, Verdict::Problem, found, advice)
    }

    fn new(
        name: &str,
        verdict: Verdict,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { name: name.to_owned(), verdict, found: found.into(), advice: advice.into() }
    }
}

pub(super) async fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    let here = current_dir()?;
    let (config, mut checks) = config::checks(&args.server.config, &here);
    checks.push(server(args).await);
    checks.extend(python::checks(config.as_ref()));
    checks.extend(system::checks(config.as_ref()));
    checks.extend(containment::containment_report().await);
    output::print(&match args.json {
        true => json(&checks),
        false => render(&checks),
    })?;
    match checks.iter().any(|check| check.verdict == Verdict::Problem) {
        true => Ok(Exit::Failed),
        false => Ok(Exit::Ok),
    }
}

async fn server(args: &DoctorArgs) -> Check {
    let asked = async {
        let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
        let stats = stats::parse(&stats::ask(&mut client).await?)?;
        Ok::<_, Failure>((client.endpoint().to_string(), stats.server))
    };
    match asked.await {
        Ok((endpoint, server)) => {
            Check::ok("server", format!("ostler {} answers at {endpoint}", server.version))
        }
        Err(failure) if failure.exit == Exit::NotRunning => Check::ok("server", "none runs"),
        Err(failure) => Check::warning(
            "server",
            failure.message(),
            "look at the server's log, or end it with: ostler stop --now",
        ),
    }
}

fn json(checks: &[Check]) -> String {
    let body = serde_json::json!({ "checks": checks });
    format!("{body:#}\n")
}

fn render(checks: &[Check]) -> String {
    let names = checks.iter().map(|check| check.name.len());
    let width = names.max().unwrap_or(0);
    let mut out = String::new();
    for check in checks {
        let mark = match check.verdict {
            Verdict::Ok => "ok     ",
            Verdict::Warning => "warning",
            Verdict::Problem => "problem",
        };
        let mut found = check.found.lines();
        let first = one_line(found.next().unwrap_or(""));
        let _ = writeln!(out, "{mark}  {:width$}  {first}", check.name);
        let indent = " ".repeat("problem".len() + width + 4);
        for line in found.chain(check.advice.lines().filter(|line| !line.is_empty())) {
            let _ = writeln!(out, "{}", format!("{indent}{}", one_line(line)).trim_end());
        }
    }
    let _ = writeln!(out, "\n{}", summary(checks));
    out
}

fn summary(checks: &[Check]) -> String {
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    match (count(Verdict::Problem), count(Verdict::Warning)) {
        (0, 0) => "all is well".to_owned(),
        (0, warnings) => format!("it will run; warnings: {warnings}"),
        (problems, warnings) => format!("problems: {problems}, warnings: {warnings}"),
    }
}
