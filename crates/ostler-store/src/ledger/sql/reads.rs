//! Every question that can be asked of the rows, for the one who writes and for those who only read.

use crate::ledger::audit::Entity;
use crate::ledger::backend::{Failed, Reads, Reply};
use crate::ledger::id::{JobId, ScheduleId};
use crate::ledger::job::{JobCounts, JobFilter, Queue};
use crate::ledger::key::Key;
use crate::ledger::row::{
    AttemptRow, EventRow, JobFacts, JobResult, JobState, KeyRow, Millis, PoolRow, QueueRow,
    ScheduleRow, Task, TransitionRow, WorkerRow,
};
use crate::sql::{Link, Trouble};

use super::{job, key, schedule, task, trail, worker};

/// Who has a connection, or can make one.
pub(super) trait Linked: Send {
    fn link(&mut self) -> impl Future<Output = Result<&mut Link, Failed>> + Send;

    /// After each statement.
    fn settled<T>(&mut self, done: Result<T, Trouble>) -> Result<T, Failed>;

    fn worth_another_try(&self, trouble: &Trouble) -> bool;
}

macro_rules! ask {
    ($who:ident, |$link:ident| $question:expr) => {
        Box::pin(async move {
            let $link = $who.link().await?;
            let answer = $question.await;
            let again = answer.as_ref().is_err_and(|trouble| $who.worth_another_try(trouble));
            let answer = $who.settled(answer);
            if !again {
                return answer;
            }
            let $link = $who.link().await?;
            let answer = $question.await;
            $who.settled(answer)
        })
    };
}

impl<T: Linked> Reads for T {
    fn job<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<(JobFacts, JobState)>> {
        ask!(self, |link| job::by_id(link, id))
    }

    fn jobs_of<'a>(&'a mut self, ids: &'a [JobId]) -> Reply<'a, Vec<(JobFacts, JobState)>> {
        ask!(self, |link| job::by_ids(link, ids))
    }

    fn result<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<JobResult>> {
        ask!(self, |link| job::result(link, id))
    }

    fn task<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Option<Task>> {
        ask!(self, |link| task::by_job(link, id))
    }

    fn ready<'a>(
        &'a mut self,
        pool: &'a str,
        now: Millis,
        gangs: bool,
        limit: usize,
    ) -> Reply<'a, Vec<Task>> {
        ask!(self, |link| task::ready(link, pool, now, gangs, limit))
    }

    fn ready_pools(&mut self, since: Millis, now: Millis) -> Reply<'_, Vec<String>> {
        ask!(self, |link| task::ready_pools(link, since, now))
    }

    fn running_with<'a>(&'a mut self, concurrency_key: &'a str) -> Reply<'a, u32> {
        ask!(self, |link| task::running_with(link, concurrency_key))
    }

    fn due(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<JobId>> {
        ask!(self, |link| task::due(link, now, limit))
    }

    fn overdue(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<JobId>> {
        ask!(self, |link| job::overdue(link, now, limit))
    }

    fn next_due(&mut self, now: Millis) -> Reply<'_, Option<Millis>> {
        ask!(self, |link| task::next_due(link, now))
    }

    fn claimed_elsewhere<'a>(&'a mut self, node: &'a str, limit: usize) -> Reply<'a, Vec<Task>> {
        ask!(self, |link| task::claimed_elsewhere(link, node, limit))
    }

    fn open_children<'a>(&'a mut self, parent: &'a JobId) -> Reply<'a, Vec<JobId>> {
        ask!(self, |link| job::open_children(link, parent))
    }

    fn child_by_key<'a>(
        &'a mut self,
        parent: &'a JobId,
        child_key: &'a str,
    ) -> Reply<'a, Option<JobId>> {
        ask!(self, |link| job::child_by_key(link, parent, child_key))
    }

    fn by_unique_key<'a>(
        &'a mut self,
        workspace: &'a str,
        function: &'a str,
        unique_key: &'a str,
    ) -> Reply<'a, Option<JobId>> {
        ask!(self, |link| job::by_unique_key(link, workspace, function, unique_key))
    }

    fn open_jobs(&mut self) -> Reply<'_, u64> {
        ask!(self, |link| job::open(link))
    }

    fn jobs<'a>(
        &'a mut self,
        filter: &'a JobFilter,
        limit: usize,
    ) -> Reply<'a, Vec<(JobFacts, JobState)>> {
        ask!(self, |link| job::list(link, filter, limit))
    }

    fn counts(&mut self) -> Reply<'_, JobCounts> {
        ask!(self, |link| job::counts(link))
    }

    fn attempts<'a>(&'a mut self, id: &'a JobId) -> Reply<'a, Vec<AttemptRow>> {
        ask!(self, |link| trail::attempts(link, id))
    }

    fn events<'a>(
        &'a mut self,
        id: &'a JobId,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<EventRow>> {
        ask!(self, |link| trail::events(link, id, after, limit))
    }

    fn prunable(&mut self, before: Millis, limit: usize) -> Reply<'_, Vec<JobId>> {
        ask!(self, |link| job::prunable(link, before, limit))
    }

    fn queue<'a>(&'a mut self, name: &'a str) -> Reply<'a, Option<QueueRow>> {
        ask!(self, |link| task::queue(link, name))
    }

    fn queues(&mut self) -> Reply<'_, Vec<Queue>> {
        ask!(self, |link| task::queues(link))
    }

    fn schedule<'a>(&'a mut self, id: &'a ScheduleId) -> Reply<'a, Option<ScheduleRow>> {
        ask!(self, |link| schedule::by_id(link, id))
    }

    fn schedule_named<'a>(
        &'a mut self,
        workspace: &'a str,
        name: &'a str,
    ) -> Reply<'a, Option<ScheduleRow>> {
        ask!(self, |link| schedule::named(link, workspace, name))
    }

    fn schedules<'a>(
        &'a mut self,
        after: Option<&'a ScheduleId>,
        limit: usize,
    ) -> Reply<'a, Vec<ScheduleRow>> {
        ask!(self, |link| schedule::list(link, after, limit))
    }

    fn schedules_count(&mut self) -> Reply<'_, u64> {
        ask!(self, |link| schedule::count(link))
    }

    fn schedules_due(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<ScheduleRow>> {
        ask!(self, |link| schedule::due(link, now, limit))
    }

    fn worker<'a>(&'a mut self, id: &'a str) -> Reply<'a, Option<WorkerRow>> {
        ask!(self, |link| worker::by_id(link, id))
    }

    fn open_workers<'a>(&'a mut self, pool: Option<&'a str>) -> Reply<'a, Vec<WorkerRow>> {
        ask!(self, |link| worker::open(link, pool))
    }

    fn prunable_workers(&mut self, before: Millis, limit: usize) -> Reply<'_, Vec<String>> {
        ask!(self, |link| worker::prunable(link, before, limit))
    }

    fn pool<'a>(&'a mut self, name: &'a str) -> Reply<'a, Option<PoolRow>> {
        ask!(self, |link| worker::pool(link, name))
    }

    fn last_pool_number(&mut self) -> Reply<'_, u64> {
        ask!(self, |link| worker::last_pool_number(link))
    }

    fn transitions<'a>(
        &'a mut self,
        entity: Entity,
        id: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<TransitionRow>> {
        ask!(self, |link| trail::transitions(link, entity, id, after, limit))
    }

    fn entities<'a>(
        &'a mut self,
        entity: Entity,
        after: &'a str,
        limit: usize,
    ) -> Reply<'a, Vec<String>> {
        ask!(self, |link| trail::entities(link, entity, after, limit))
    }

    fn key<'a>(&'a mut self, key: &'a Key) -> Reply<'a, Option<KeyRow>> {
        ask!(self, |link| key::by_name(link, key))
    }

    fn keys_count(&mut self) -> Reply<'_, u64> {
        ask!(self, |link| key::count(link))
    }

    fn expired_keys(&mut self, now: Millis, limit: usize) -> Reply<'_, Vec<Key>> {
        ask!(self, |link| key::expired(link, now, limit))
    }
}
