//! `ostler store`: whether what must survive a restart is whole, and a copy of it.
//!
//! Both look at the store itself and ask no server, so they work beside one and without one.

use std::path::{Path, PathBuf};

use ostler_runtime::store::ledger::Place;
use ostler_runtime::store::ledger::audit::Finding;
use ostler_runtime::store::{OpenError, StoreReport, backup, check};
use serde_json::json;

use super::args::{ConfigArg, StoreAction, StoreArgs, StoreBackupArgs, StoreCheckArgs};
use super::endpoint::{config_file, current_dir};
use super::exit::{Exit, Failure};
use super::output;
use crate::config::{self, Store};
use crate::text::one_line;

pub(super) async fn run(args: &StoreArgs) -> Result<Exit, Failure> {
    match &args.action {
        StoreAction::Check(args) => look(args).await,
        StoreAction::Backup(args) => copy(args).await,
    }
}

/// A store, and what to call it: an address is never shown with its password.
#[derive(Debug)]
pub(super) struct Named {
    pub place: Place,
    pub name: String,
}

impl Named {
    pub fn of(place: &config::Place) -> Self {
        match place {
            config::Place::Sqlite(path) => Self::file(path.clone()),
            config::Place::Postgres(url) => {
                Self { place: Place::Postgres(url.reveal().to_owned()), name: url.to_string() }
            }
        }
    }

    fn file(path: PathBuf) -> Self {
        Self { name: path.display().to_string(), place: Place::Sqlite(path) }
    }

    /// The file that was named, else what the configuration says, else the usual place.
    fn find(file: Option<&Path>, config: &ConfigArg) -> Result<Self, Failure> {
        let here = current_dir()?;
        if let Some(file) = file {
            return Ok(Self::file(here.join(file)));
        }
        match config_file(config, &here) {
            Some(file) => {
                let store = config::load_store(&file);
                let store = store.map_err(|error| Failure::usage(error.to_string()))?;
                Ok(Self::of(&store.place))
            }
            None => Ok(Self::of(&Store::defaults(&here).place)),
        }
    }

    /// A file that no server has made yet.
    pub fn is_missing(&self) -> bool {
        matches!(&self.place, Place::Sqlite(path) if !path.exists())
    }

    fn must_exist(&self) -> Result<(), Failure> {
        match self.is_missing() {
            true => Err(Failure::failed(format!(
                "there is no store at {}; a server makes it when it starts, --store names another",
                self.name
            ))),
            false => Ok(()),
        }
    }
}

async fn look(args: &StoreCheckArgs) -> Result<Exit, Failure> {
    let named = Named::find(args.store.as_deref(), &args.config)?;
    named.must_exist()?;
    let report = check(&named.place).await.map_err(unreadable)?;
    output::print(&match args.json {
        true => format!("{}\n", as_json(&named.name, &report)),
        false => words(&named.name, &report),
    })?;
    Ok(if report.is_sound() { Exit::Ok } else { Exit::Failed })
}

fn unreadable(error: OpenError) -> Failure {
    Failure::failed(error.to_string())
}

fn words(name: &str, report: &StoreReport) -> String {
    let read = format!(
        "{name}: sessions {}, jobs {}, workers {}, changes of status {}",
        report.sessions, report.audit.jobs, report.audit.workers, report.audit.transitions
    );
    if report.is_sound() {
        return format!("{}: all of it fits\n", one_line(&read));
    }
    let (findings, total) = findings(report);
    let mut out = format!("{}: does not fit: {total}\n", one_line(&read));
    for finding in &findings {
        out.push_str(&one_line(finding));
        out.push('\n');
    }
    let hidden = total.saturating_sub(findings.len() as u64);
    if hidden > 0 {
        out.push_str(&format!("and {hidden} more\n"));
    }
    out
}

/// Those that are told, and how many there are.
fn findings(report: &StoreReport) -> (Vec<String>, u64) {
    let told =
        |finding: &Finding| format!("{} {}: {}", finding.entity.name(), finding.id, finding.what);
    let of_audit = report.audit.findings.iter().map(told);
    let findings = report.findings.iter().cloned().chain(of_audit).collect();
    (findings, report.findings_total + report.audit.findings_total)
}

fn as_json(name: &str, report: &StoreReport) -> serde_json::Value {
    let (findings, findings_total) = findings(report);
    json!({
        "ok": report.is_sound(),
        "store": name,
        "sessions": report.sessions,
        "jobs": report.audit.jobs,
        "workers": report.audit.workers,
        "transitions": report.audit.transitions,
        "findings": findings,
        "findings_total": findings_total,
    })
}

async fn copy(args: &StoreBackupArgs) -> Result<Exit, Failure> {
    let named = Named::find(args.store.as_deref(), &args.config)?;
    named.must_exist()?;
    let to = current_dir()?.join(&args.to);
    backup(&named.place, &to).await.map_err(|error| Failure::failed(error.to_string()))?;
    let bytes = to.metadata().map_or(0, |file| file.len());
    let shown = to.display().to_string();
    output::print(&match args.json {
        true => format!("{}\n", json!({ "store": named.name, "path": shown, "bytes": bytes })),
        false => format!("{}: {bytes} bytes\n", one_line(&shown)),
    })?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_runtime::store::ledger::audit::{AuditReport, Entity};

    #[test]
    fn what_does_not_fit_is_told_one_by_one() {
        let audit = AuditReport { jobs: 3, workers: 2, transitions: 9, ..AuditReport::default() };
        let sound = StoreReport { sessions: 1, audit, ..StoreReport::default() };
        let read = "x.db: sessions 1, jobs 3, workers 2, changes of status 9";
        assert_eq!(words("x.db", &sound), format!("{read}: all of it fits\n"));
        let mut torn = sound;
        (torn.findings, torn.findings_total) = (vec!["a page is torn".to_owned()], 4);
        let (id, what) = ("j_1".to_owned(), "seq 2 is missing".to_owned());
        torn.audit.findings = vec![Finding { entity: Entity::Job, id, what }];
        torn.audit.findings_total = 1;
        let told = "a page is torn\njob j_1: seq 2 is missing\nand 3 more\n";
        assert_eq!(words("x.db", &torn), format!("{read}: does not fit: 5\n{told}"));
        assert_eq!(as_json("x.db", &torn)["findings_total"], 5);
    }
}
