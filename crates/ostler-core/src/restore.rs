//! Workers that outlive the server that made them: those that somebody asked for by name. They come
//! back with the status that the store has of them; one that was RUNNING gets its next process.

use crate::id::WorkerId;
use crate::pool::{Cx, Pool, Stage};
use crate::status::Status;
use crate::worker::Worker;

/// A dedicated worker as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    pub worker: WorkerId,
    /// Changes of status stored so far.
    pub seq: u64,
    pub status: Status,
}

impl Pool {
    /// Before the start. `next_worker`: no worker of this pool ever had this number, or a higher one.
    pub fn restore(&mut self, next_worker: u64, restored: &[Restored]) {
        assert!(self.stage == Stage::New, "the past comes before the start");
        self.next_worker = next_worker.max(1);
        for known in restored.iter().filter(|known| !known.status.terminal()) {
            let mut worker = Worker::new(known.worker, true, crate::Time::ZERO);
            worker.status = known.status;
            worker.seq = known.seq;
            self.next_worker = self.next_worker.max(known.worker.0 + 1);
            self.workers.insert(known.worker, worker);
        }
    }

    /// Those in service want a process again.
    pub(crate) fn take_up_restored(&mut self, cx: &mut Cx<'_>) {
        let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
        for id in ids {
            let worker = self.workers.get_mut(&id).expect("listed above");
            worker.last_used = cx.now;
            if worker.status == Status::Running {
                self.want_process(cx, id);
            }
        }
    }
}
