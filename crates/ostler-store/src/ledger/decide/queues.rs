//! Queues that stand still: their jobs are not claimed.

use super::super::draft::Draft;
use super::super::job::Queue;
use super::super::key::Asked;
use super::super::row::QueueRow;
use super::check::check_name;
use super::{Decided, Operation};
use crate::clock::timestamp;

#[derive(Debug)]
pub(in crate::ledger) struct SetQueue {
    pub name: String,
    pub paused: bool,
    pub asked: Asked,
}

impl Operation for SetQueue {
    type Answer = Queue;

    async fn decide(&self, draft: &mut Draft) -> Decided<Queue> {
        check_name("queue", &self.name)?;
        let known = draft.queue(&self.name).await?;
        let since = known.as_ref().and_then(|queue| queue.paused_at);
        if self.paused != since.is_some() {
            self.set(draft);
        }
        draft.mark_key(&self.asked, &self.name).await?;
        let queues = draft.stored().await?.queues().await?;
        let listed = queues.into_iter().find(|queue| queue.name == self.name);
        Ok(listed.unwrap_or_else(|| Queue {
            name: self.name.clone(),
            paused_at: self.paused.then(|| timestamp(since.unwrap_or(draft.now))),
            waiting: 0,
            running: 0,
        }))
    }
}

impl SetQueue {
    fn set(&self, draft: &mut Draft) {
        let paused_at = self.paused.then_some(draft.now);
        draft.put_queue(QueueRow { name: self.name.clone(), paused_at });
        if !self.paused {
            // Whose jobs waited there is found when time is kept: at once.
            draft.kept_until = 0;
            draft.tell_due(draft.now);
        }
    }
}
