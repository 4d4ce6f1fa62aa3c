//! Jobs that come again and again: each time of a schedule is served once, and those that passed
//! while nobody was there count once.

use ostler_core::JobStatus;

use super::super::cron::Cron;
use super::super::draft::Draft;
use super::super::error::LedgerError;
use super::super::handle::DEFAULT_WORKSPACE;
use super::super::id::{JobId, ScheduleId};
use super::super::key::Asked;
use super::super::row::{FireRow, Millis, Row, ScheduleRow};
use super::super::schedule::{NewSchedule, Overlap, Schedule, ScheduleChange};
use super::super::shown;
use super::super::spec::ScheduleSpec;
use super::check::{check_job, check_name, invalid};
use super::step::By;
use super::submit::Origin;
use super::{Decided, Halt, Operation};
use crate::clock::timestamp;

#[derive(Debug)]
pub(in crate::ledger) struct AddSchedule {
    pub new: NewSchedule,
    pub asked: Asked,
}

impl Operation for AddSchedule {
    type Answer = Schedule;

    async fn decide(&self, draft: &mut Draft) -> Decided<Schedule> {
        let new = &self.new;
        let cron = check(draft, new)?;
        let stored = draft.stored().await?;
        if stored.schedule_named(&new.workspace, &new.name).await?.is_some() {
            return Err(LedgerError::ScheduleExists { name: new.name.clone() }.into());
        }
        let (current, max) = (stored.schedules_count().await?, draft.settings.schedules_max);
        if current >= max {
            return Err(LedgerError::ScheduleQuota { current, max }.into());
        }
        let row = ScheduleRow {
            id: ScheduleId::fresh(),
            workspace: new.workspace.clone(),
            name: new.name.clone(),
            spec: ScheduleSpec::of(new).text(),
            next_at: next(&cron, new, draft.now, draft.now),
            last_at: None,
            last_job: None,
            version: 1,
            created_at: draft.now,
        };
        draft.keep_schedule(row, &self.asked).await
    }
}

#[derive(Debug)]
pub(in crate::ledger) struct ChangeSchedule {
    pub id: String,
    pub change: ScheduleChange,
    pub asked: Asked,
}

impl Operation for ChangeSchedule {
    type Answer = Schedule;

    async fn decide(&self, draft: &mut Draft) -> Decided<Schedule> {
        let row = draft.schedule_called(&self.id).await?;
        let mut spec = shown::schedule(&row)?.spec;
        let before = spec.clone();
        let change = self.change.clone();
        spec.cron = change.cron.unwrap_or(spec.cron);
        spec.timezone = change.timezone.unwrap_or(spec.timezone);
        spec.job = change.job.unwrap_or(spec.job);
        spec.overlap = change.overlap.unwrap_or(spec.overlap);
        spec.paused = change.paused.unwrap_or(spec.paused);
        let cron = check(draft, &spec)?;
        let same_times = spec.cron == before.cron
            && spec.timezone == before.timezone
            && spec.paused == before.paused;
        let next_at = match same_times {
            true => row.next_at,
            false => {
                // A clock that was set back brings no time a second time.
                let now = row.last_at.map_or(draft.now, |last| last.max(draft.now));
                next(&cron, &spec, now, now)
            }
        };
        let (text, version) = (ScheduleSpec::of(&spec).text(), row.version + 1);
        let row = ScheduleRow { spec: text, next_at, version, ..row };
        draft.keep_schedule(row, &self.asked).await
    }
}

#[derive(Debug)]
pub(in crate::ledger) struct DeleteSchedule {
    pub id: String,
    pub asked: Asked,
}

impl Operation for DeleteSchedule {
    type Answer = ();

    async fn decide(&self, draft: &mut Draft) -> Decided<()> {
        let row = draft.schedule_called(&self.id).await?;
        draft.mark_key(&self.asked, row.id.as_str()).await?;
        draft.put_schedule(row.id, None);
        Ok(())
    }
}

fn check(draft: &Draft, new: &NewSchedule) -> Result<Cron, LedgerError> {
    check_name("name", &new.name)?;
    if new.name.parse::<ScheduleId>().is_ok() {
        return Err(invalid("name", "`name` looks like the id of a schedule; use another"));
    }
    check_name("workspace_id", &new.workspace)?;
    if new.job.parent.is_some() {
        return Err(invalid("parent_job_id", "a scheduled job has no parent"));
    }
    check_job(&new.job, &draft.settings)?;
    let field = if Cron::parse(&new.cron, "UTC").is_ok() { "timezone" } else { "cron" };
    Cron::parse(&new.cron, &new.timezone).map_err(|what| invalid(field, what))
}

fn next(cron: &Cron, spec: &NewSchedule, from: Millis, now: Millis) -> Option<Millis> {
    if spec.paused {
        return None;
    }
    cron.next(timestamp(from), timestamp(now)).map(|at| at.as_millisecond())
}

impl Draft {
    async fn schedule_called(&mut self, id: &str) -> Decided<ScheduleRow> {
        let row = match id.parse::<ScheduleId>() {
            Ok(id) => self.schedule(&id).await?,
            Err(()) => self.stored().await?.schedule_named(DEFAULT_WORKSPACE, id).await?,
        };
        Ok(row.ok_or_else(|| LedgerError::NoSchedule { id: id.to_owned() })?)
    }

    async fn keep_schedule(&mut self, row: ScheduleRow, asked: &Asked) -> Decided<Schedule> {
        let shown = shown::schedule(&row)?;
        if let Some(at) = row.next_at {
            self.tell_due(at);
        }
        self.mark_key(asked, row.id.as_str()).await?;
        self.put_schedule(row.id.clone(), Some(row));
        Ok(shown)
    }

    /// How many were due, up to `limit`.
    pub(super) async fn fire_schedules(&mut self, limit: usize) -> Decided<usize> {
        let now = self.now;
        let due = self.stored().await?.schedules_due(now, limit).await?;
        let found = due.len();
        for row in due {
            self.fire(row).await?;
        }
        Ok(found)
    }

    async fn fire(&mut self, row: ScheduleRow) -> Decided<()> {
        let Some(at) = row.next_at else { return Ok(()) };
        let spec = shown::schedule(&row)?.spec;
        let job = match self.left_out(&row, &spec).await? {
            true => None,
            false => self.submit_scheduled(&row, &spec).await?,
        };
        let next_at = match Cron::parse(&spec.cron, &spec.timezone) {
            Ok(cron) => next(&cron, &spec, at, self.now),
            Err(reason) => {
                let name = &row.name;
                tracing::warn!(schedule = %name, %reason, "a schedule cannot go on");
                None
            }
        };
        self.add(Row::Fire(FireRow { schedule: row.id.clone(), at, job: job.clone() }));
        let (last_job, version) = (job.or(row.last_job), row.version + 1);
        let row = ScheduleRow { next_at, last_at: Some(at), last_job, version, ..row };
        self.put_schedule(row.id.clone(), Some(row));
        Ok(())
    }

    async fn left_out(&mut self, row: &ScheduleRow, spec: &NewSchedule) -> Decided<bool> {
        let (Overlap::Skip, Some(last)) = (spec.overlap, &row.last_job) else { return Ok(false) };
        let last = self.job(last).await?;
        Ok(last.is_some_and(|job| !job.state.status.terminal()))
    }

    /// None: it was refused, and that is told.
    async fn submit_scheduled(
        &mut self,
        row: &ScheduleRow,
        spec: &NewSchedule,
    ) -> Decided<Option<JobId>> {
        if let Some(known) = self.known(&spec.job).await? {
            return Ok(Some(known));
        }
        match self.check_quota(1).await {
            Err(Halt::Refused(error)) => {
                tracing::warn!(schedule = %row.name, %error, "a scheduled job was left out");
                return Ok(None);
            }
            checked => checked?,
        }
        let origin = Origin { schedule: Some(row.id.clone()), ..Origin::default() };
        let by = By { actor: "schedule".to_owned(), ..By::system("submit") };
        let kept = self.add_job(&spec.job, origin, &by).await?;
        debug_assert_eq!(kept.state.status, JobStatus::Pending, "a scheduled job is due");
        Ok(Some(kept.facts.id.clone()))
    }
}
