//! Whether a store is as it was written: the file itself, rows without their job, the checksums of
//! sessions and of the ledger, the trail of every job and worker. It shows one moment, and a server
//! may be writing meanwhile.

use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::error::OpenError;
use crate::ledger::Place;
use crate::ledger::audit::AuditReport;
use crate::ledger::sql::audited;
use crate::sql::{Dialect, Link, ReadDoor, Trouble, check_sessions};

/// Said in full.
const FINDINGS_MAX: usize = 100;

/// What a look at everything found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreReport {
    pub sessions: u64,
    pub audit: AuditReport,
    /// At most a hundred of them, without those of the audit.
    pub findings: Vec<String>,
    pub findings_total: u64,
}

impl StoreReport {
    pub fn is_sound(&self) -> bool {
        self.findings_total == 0 && self.audit.findings_total == 0
    }

    fn add(&mut self, finding: String) {
        self.findings_total += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    fn note(&mut self, seen: Result<(), Trouble>) {
        if let Err(trouble) = seen {
            self.add(format!("the store cannot be read: {trouble}"));
        }
    }
}

/// Reads everything in the store at this place, which may be in use.
///
/// # Errors
/// If it cannot be opened, or is of another version.
pub async fn check(place: &Place) -> Result<StoreReport, OpenError> {
    let door = match place {
        Place::Memory => return Ok(StoreReport::default()),
        Place::Sqlite(path) => ReadDoor::to_file(path),
        Place::Postgres(url) => ReadDoor::to_database(url)?,
    };
    let mut link = door.open().await?;
    let mut report = StoreReport::default();
    still(&mut link).await.map_err(|trouble| door.refused(&trouble))?;
    let seen = look_at_file(&mut link, &mut report).await;
    report.note(seen);
    let seen = look_for_orphans(&mut link, &mut report).await;
    report.note(seen);
    match check_sessions(&mut link).await {
        Ok((sessions, damaged)) => {
            report.sessions = sessions;
            damaged.into_iter().for_each(|finding| report.add(finding));
        }
        Err(trouble) => report.add(format!("sessions cannot be read: {trouble}")),
    }
    match audited(&mut link).await {
        Ok(audit) => report.audit = audit,
        Err(reason) => report.add(format!("the trail cannot be read: {reason}")),
    }
    let _ = link.close().await;
    Ok(report)
}

/// From the first look on, one moment is shown.
async fn still(link: &mut Link) -> Result<(), Trouble> {
    let sql = match link.dialect() {
        Dialect::Sqlite => "BEGIN",
        Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ",
    };
    link.script(sql.into_sql_str()).await
}

async fn look_at_file(link: &mut Link, report: &mut StoreReport) -> Result<(), Trouble> {
    if link.dialect() == Dialect::Postgres {
        return Ok(());
    }
    let args = link.args();
    for record in link.fetch("PRAGMA integrity_check(100)", args).await? {
        match record.cells().text()? {
            "ok" => {}
            finding => report.add(finding.to_owned()),
        }
    }
    let args = link.args();
    for record in link.fetch("PRAGMA foreign_key_check", args).await? {
        report.add(format!("{}: a row without its session", record.cells().text()?));
    }
    Ok(())
}

/// Rows of jobs, and the column that names the job.
const OF_JOBS: [(&str, &str); 8] = [
    ("job_state", "id"),
    ("job_result", "id"),
    ("job_tag", "job"),
    ("job_unique", "job"),
    ("task", "job"),
    ("attempt", "job"),
    ("job_event", "job"),
    ("job", "id"),
];

async fn look_for_orphans(link: &mut Link, report: &mut StoreReport) -> Result<(), Trouble> {
    for (table, id) in OF_JOBS {
        // A job itself must have its state.
        let owner = if table == "job" { "job_state" } else { "job" };
        let sql = format!(
            "SELECT count(*) FROM {table} a \
             WHERE NOT EXISTS (SELECT 1 FROM {owner} o WHERE o.id = a.{id})"
        );
        let args = link.args();
        let orphans = link.number(AssertSqlSafe(sql), args).await?;
        if orphans > 0 {
            report.add(format!("{table}: {orphans} rows without their {owner}"));
        }
    }
    Ok(())
}
