//! New jobs: all of a batch or none, and none twice where a key says that it is there already.

use std::collections::HashMap;
use std::sync::Arc;

use ostler_core::JobStatus;

use super::super::draft::{Draft, Kept};
use super::super::error::LedgerError;
use super::super::id::{JobId, ScheduleId};
use super::super::job::{DEPTH_MAX, NewJob, Submitted};
use super::super::key::Asked;
use super::super::row::{JobFacts, JobState, Task};
use super::super::shown;
use super::super::spec::Spec;
use super::check::{at_index, check_job, invalid};
use super::step::By;
use super::{Decided, Halt, Operation};

const BATCH_MAX: usize = 1_000;

#[derive(Debug)]
pub(in crate::ledger) struct Submit {
    pub jobs: Vec<NewJob>,
    pub asked: Asked,
}

/// Where a job comes from, if not from somebody who asks.
#[derive(Debug, Default)]
pub(super) struct Origin {
    pub schedule: Option<ScheduleId>,
    pub retry_of: Option<JobId>,
}

/// What becomes of one of a batch.
enum Plan {
    New,
    Known(JobId),
    /// The same as another one of this batch.
    Like(usize),
}

/// By which a job is the only one of its kind.
#[derive(PartialEq, Eq, Hash)]
enum Sole<'a> {
    Child(&'a JobId, &'a str),
    Unique(&'a str, &'a str, &'a str),
}

impl Operation for Submit {
    type Answer = Vec<Submitted>;

    async fn decide(&self, draft: &mut Draft) -> Decided<Vec<Submitted>> {
        let plans = self.plans(draft).await?;
        let new = plans.iter().filter(|plan| matches!(plan, Plan::New)).count();
        draft.check_quota(new as u64).await?;
        let mut submitted: Vec<Submitted> = Vec::with_capacity(plans.len());
        for (job, plan) in self.jobs.iter().zip(plans) {
            submitted.push(match plan {
                Plan::New => {
                    let by = By::asked("submit", &self.asked);
                    let kept = draft.add_job(job, Origin::default(), &by).await?;
                    Submitted { job: draft.shown(&kept), known: false }
                }
                Plan::Known(id) => Submitted { job: draft.show(&id).await?, known: true },
                Plan::Like(index) => Submitted { job: submitted[index].job.clone(), known: true },
            });
        }
        let ids: Vec<&str> = submitted.iter().map(|submitted| submitted.job.id.as_str()).collect();
        draft.mark_key(&self.asked, &ids.join(",")).await?;
        Ok(submitted)
    }

    fn weight(&self) -> usize {
        self.jobs.iter().map(|job| job.payload.bytes.len()).sum()
    }
}

impl Submit {
    async fn plans(&self, draft: &mut Draft) -> Decided<Vec<Plan>> {
        if self.jobs.len() > BATCH_MAX {
            let what = format!("{} jobs were given and {BATCH_MAX} may be", self.jobs.len());
            return Err(invalid("jobs", what).into());
        }
        let mut plans = Vec::with_capacity(self.jobs.len());
        let mut seen = HashMap::new();
        for (index, job) in self.jobs.iter().enumerate() {
            draft.check_new(job).await.map_err(|halt| match halt {
                Halt::Refused(error) => Halt::Refused(at_index(error, index)),
                failed => failed,
            })?;
            plans.push(match draft.known(job).await? {
                Some(id) => Plan::Known(id),
                None => match sole(job).iter().find_map(|sole| seen.get(sole)) {
                    Some(first) => Plan::Like(*first),
                    None => Plan::New,
                },
            });
            for sole in sole(job) {
                seen.entry(sole).or_insert(index);
            }
        }
        Ok(plans)
    }
}

fn sole(job: &NewJob) -> Vec<Sole<'_>> {
    let mut soles = Vec::new();
    if let (Some(parent), Some(key)) = (&job.parent, &job.child_key) {
        soles.push(Sole::Child(parent, key));
    }
    if let Some(key) = &job.unique_key {
        soles.push(Sole::Unique(&job.workspace, &job.function, key));
    }
    soles
}

impl Draft {
    pub(super) async fn check_new(&mut self, job: &NewJob) -> Decided<()> {
        check_job(job, &self.settings)?;
        let depth = match &job.parent {
            None => 0,
            Some(parent) => self.check_parent(parent).await?,
        };
        match job.depth {
            Some(given) if given != depth => {
                let what = format!("`depth` is {given}, but by its parent it is {depth}");
                Err(invalid("depth", what).into())
            }
            _ => Ok(()),
        }
    }

    /// The depth of its children.
    async fn check_parent(&mut self, parent: &JobId) -> Decided<u32> {
        let refused = |what: String| Err(invalid("parent_job_id", what).into());
        let Some(kept) = self.job(parent).await? else {
            return refused(format!("there is no job `{parent}` to be the parent"));
        };
        if kept.state.status.terminal() {
            let status = kept.state.status.name();
            return refused(format!("the parent `{parent}` is {status}; it takes no children"));
        }
        if kept.state.cancel_at.is_some() {
            return refused(format!("the parent `{parent}` is being cancelled"));
        }
        if kept.facts.depth >= DEPTH_MAX {
            let what = format!(
                "the parent `{parent}` is at depth {DEPTH_MAX}, the deepest that there is; submit \
                 it without a parent"
            );
            return Err(invalid("depth", what).into());
        }
        Ok(kept.facts.depth + 1)
    }

    pub(super) async fn check_quota(&mut self, more: u64) -> Decided<()> {
        if more == 0 {
            return Ok(());
        }
        let (current, max) = (self.open_jobs().await?, self.settings.jobs_max);
        match current + more > max {
            true => Err(LedgerError::Quota { current, max }.into()),
            false => Ok(()),
        }
    }

    /// The job that this one would only repeat.
    pub(super) async fn known(&mut self, job: &NewJob) -> Decided<Option<JobId>> {
        if let (Some(parent), Some(key)) = (&job.parent, &job.child_key)
            && let Some(id) = self.stored().await?.child_by_key(parent, key).await?
        {
            return Ok(Some(id));
        }
        let Some(key) = &job.unique_key else { return Ok(None) };
        Ok(self.stored().await?.by_unique_key(&job.workspace, &job.function, key).await?)
    }

    /// It was checked, and there is room for it.
    pub(super) async fn add_job(&mut self, job: &NewJob, origin: Origin, by: &By) -> Decided<Kept> {
        let parent = match &job.parent {
            Some(parent) => self.job(parent).await?,
            None => None,
        };
        let mut kept = self.new_job(job, parent.as_ref(), origin);
        self.first_step(&mut kept, by);
        if kept.spec.run_at <= self.now {
            self.step(&mut kept, JobStatus::Pending, &By::system("due"));
        }
        self.tell_ready(&kept.facts.pool, kept.spec.run_at);
        self.insert_job(&kept);
        // Known, it need not be asked for when its tasks become ready.
        self.queue(&kept.facts.queue).await?;
        self.put_task(new_task(&kept));
        if let Some(mut parent) = parent {
            parent.state.open_children += 1;
            parent.state.version += 1;
            self.put_state(parent.state);
        }
        Ok(kept)
    }

    fn new_job(&self, job: &NewJob, parent: Option<&Kept>, origin: Origin) -> Kept {
        let id = JobId::fresh();
        let spec = Spec::of(job, self.now);
        let payload = job.payload.detached();
        let facts = JobFacts {
            id: id.clone(),
            workspace: job.workspace.clone(),
            queue: job.queue.clone(),
            pool: job.pool.clone(),
            function: job.function.clone(),
            parent: job.parent.clone(),
            root: parent.map_or_else(|| id.clone(), |parent| parent.facts.root.clone()),
            depth: parent.map_or(0, |parent| parent.facts.depth + 1),
            child_key: job.child_key.clone(),
            unique_key: job.unique_key.clone(),
            schedule: origin.schedule,
            retry_of: origin.retry_of,
            spec: spec.text(),
            tags: job.tags.clone().into_iter().collect(),
            payload_type: payload.content_type.into(),
            payload: payload.bytes,
            created_at: self.now,
        };
        Kept { facts: Arc::new(facts), spec: Arc::new(spec), state: blank_state(id) }
    }

    /// A job as it is in this draft.
    pub(super) async fn show(&mut self, id: &JobId) -> Decided<super::super::job::Job> {
        let kept = self.existing(id).await?;
        if kept.state.status != JobStatus::Completed {
            return Ok(self.shown(&kept));
        }
        let result = self.stored().await?.result(id).await?;
        Ok(shown::job(&kept.facts, &kept.spec, &kept.state, result.as_ref()))
    }

    /// One that has no result.
    pub(super) fn shown(&self, kept: &Kept) -> super::super::job::Job {
        shown::job(&kept.facts, &kept.spec, &kept.state, None)
    }

    pub(super) async fn existing(&mut self, id: &JobId) -> Decided<Kept> {
        let kept = self.job(id).await?;
        Ok(kept.ok_or_else(|| LedgerError::NoJob { id: id.to_string() })?)
    }
}

fn blank_state(id: JobId) -> JobState {
    JobState {
        id,
        status: JobStatus::Submitted,
        attempt: 0,
        waiting: false,
        open_children: 0,
        child_error: None,
        cancel_at: None,
        cancel_reason: None,
        cancel_by: None,
        cancel_note: None,
        cancel_request: None,
        progress: None,
        error: None,
        reason: None,
        version: 0,
        seq: 0,
        event_seq: 0,
        events_dropped: 0,
        started_at: None,
        completed_at: None,
        deadline: None,
    }
}

fn new_task(kept: &Kept) -> Task {
    Task {
        job: kept.facts.id.clone(),
        pool: kept.facts.pool.clone(),
        queue: kept.facts.queue.clone(),
        workers: kept.spec.worker_count,
        priority: kept.spec.priority,
        run_at: kept.spec.run_at,
        concurrency_key: kept.spec.concurrency_key.clone(),
        concurrency_limit: kept.spec.concurrency_limit,
        attempt: 0,
        fence: 0,
        node: None,
    }
}
