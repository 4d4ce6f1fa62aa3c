//! The changes of status of this pool's workers, as long as there is no store: the last of them,
//! in memory.

use std::collections::VecDeque;

use ostler_core::{Change, RecordId};

const KEPT: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: VecDeque<(RecordId, Change)>,
}

impl Journal {
    pub fn note(&mut self, record: RecordId, change: Change) {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back((record, change));
    }
}
