//! What a running job says of itself: lines of its story, bounded in number.

use serde_json::json;

use super::super::draft::{Draft, Kept};
use super::super::id::JobId;
use super::super::job::Saying;
use super::super::row::Task;
use super::{Decided, Operation};

#[derive(Debug)]
pub(in crate::ledger) struct Say {
    pub id: JobId,
    pub fence: u64,
    pub sayings: Vec<Saying>,
}

impl Operation for Say {
    /// Whether it was of the attempt that runs.
    type Answer = bool;

    async fn decide(&self, draft: &mut Draft) -> Decided<bool> {
        let Some(task) = draft.held(&self.id, self.fence).await? else { return Ok(false) };
        let mut job = draft.existing(&self.id).await?;
        draft.say_all(&mut job, &task, &self.sayings).await?;
        draft.put_state(job.state);
        Ok(true)
    }
}

impl Draft {
    pub(super) async fn say_all(
        &mut self,
        job: &mut Kept,
        task: &Task,
        sayings: &[Saying],
    ) -> Decided<()> {
        let is_progress = |saying: &Saying| matches!(saying, Saying::Progress(_));
        let last_progress = sayings.iter().rposition(is_progress);
        for (index, saying) in sayings.iter().enumerate() {
            // Those that were overtaken at once would tell nobody anything.
            if !is_progress(saying) || Some(index) == last_progress {
                self.say(job, task, saying).await?;
            }
        }
        Ok(())
    }

    async fn say(&mut self, job: &mut Kept, task: &Task, saying: &Saying) -> Decided<()> {
        match saying {
            Saying::Progress(progress) => {
                let progress = progress.to_string();
                job.state.progress = Some(progress.clone());
                job.state.version += 1;
                self.add_bounded(job, "progress", progress);
            }
            Saying::Message(message) => self.add_bounded(job, "message", message.to_string()),
            Saying::Log { level, text } => {
                self.add_bounded(job, "log", json!({ "level": level, "text": text }).to_string());
            }
            Saying::Worker { shard, worker } => {
                self.note_worker(task, *shard, worker).await?;
                let attempt = task.attempt;
                let told = json!({ "attempt": attempt, "shard": shard, "worker": worker });
                self.add_bounded(job, "attempt", told.to_string());
            }
        }
        Ok(())
    }

    fn add_bounded(&mut self, job: &mut Kept, kind: &str, data: String) {
        if job.state.event_seq < self.settings.events_max {
            self.add_line(job, kind, data);
        } else {
            job.state.events_dropped += 1;
        }
    }

    async fn note_worker(&mut self, task: &Task, shard: u32, worker: &str) -> Decided<()> {
        let Some(mut row) = self.attempt(&task.job, task.attempt).await? else { return Ok(()) };
        let shard = shard.min(task.workers.saturating_sub(1)) as usize;
        let mut workers: Vec<String> = serde_json::from_str(&row.workers).unwrap_or_default();
        workers.resize(workers.len().max(shard + 1), String::new());
        workers[shard] = worker.to_owned();
        row.workers = json!(workers).to_string();
        self.put_attempt(row);
        Ok(())
    }
}
