//! A fake store. It keeps every change it was given, once per record, and refuses to hold a
//! history that is not one: that is a finding against the core, not an answer to it.

use ostler_core::{Change, IdMap, RecordId, WorkerId};

use crate::violation::{Verdict, require};

#[derive(Debug, Default)]
pub struct Store {
    histories: IdMap<WorkerId, Vec<Change>>,
    /// Records that may be stored although the store did not say so.
    doubtful: IdMap<RecordId, Change>,
    /// Copies of a record that are on their way.
    sent: IdMap<RecordId, u32>,
    /// Nothing is stored and nothing is known while this is set.
    pub out: bool,
}

impl Store {
    pub fn holds(&self, record: RecordId) -> bool {
        self.histories.get(&record.worker).is_some_and(|rows| record.seq <= rows.len() as u64)
    }

    /// Whether it may still say that this record is certainly not stored: another copy of it may
    /// yet be.
    pub fn may_refuse(&self, record: RecordId) -> bool {
        let others = self.sent.get(&record).is_some_and(|sent| *sent > 0);
        !self.holds(record) && !self.doubtful.contains_key(&record) && !others
    }

    pub fn send(&mut self, record: RecordId) {
        *self.sent.entry(record).or_default() += 1;
    }

    pub fn arrive(&mut self, record: RecordId) {
        *self.sent.get_mut(&record).expect("it was sent") -= 1;
    }

    pub fn doubt(&mut self, record: RecordId, change: Change) {
        self.doubtful.insert(record, change);
    }

    /// Does the work. The same record again changes nothing.
    pub fn keep(&mut self, record: RecordId, change: Change) -> Verdict {
        if let Some(doubted) = self.doubtful.get(&record) {
            require!(
                *doubted == change,
                "one record, one change",
                "{record:?} was {doubted:?} and is now {change:?}"
            );
        }
        let rows = self.histories.entry(record.worker).or_default();
        if let Some(row) = (record.seq as usize).checked_sub(1).and_then(|at| rows.get(at)) {
            require!(
                *row == change,
                "one record, one change",
                "{record:?} holds {row:?} and is now {change:?}"
            );
            return Ok(());
        }
        require!(
            record.seq == rows.len() as u64 + 1,
            "records have no gaps",
            "{record:?} comes after {} changes",
            rows.len()
        );
        let last = rows.last().map(|row| row.to);
        require!(
            change.from == last,
            "records form a chain",
            "{record:?} goes from {:?}, the worker is {last:?}",
            change.from
        );
        rows.push(change);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ostler_core::{Status, Trigger};

    use super::*;

    fn change(from: Option<Status>, trigger: Trigger) -> Change {
        Change { from, to: trigger.leads_to(), trigger, retirement: None, order: None }
    }

    fn record(seq: u64) -> RecordId {
        RecordId { worker: WorkerId(1), seq }
    }

    #[test]
    fn the_same_record_twice_changes_nothing() {
        let mut store = Store::default();
        let create = change(None, Trigger::Create);
        assert_eq!(store.keep(record(1), create), Ok(()));
        assert_eq!(store.keep(record(1), create), Ok(()));
        assert_eq!(store.keep(record(2), change(Some(Status::Idle), Trigger::Start)), Ok(()));
    }

    #[test]
    fn a_gap_a_break_and_a_second_meaning_are_findings() {
        let mut store = Store::default();
        let create = change(None, Trigger::Create);
        let finding = |verdict: Verdict| verdict.expect_err("it is a finding").checker;
        assert_eq!(finding(store.keep(record(2), create)), "records have no gaps");
        store.keep(record(1), create).expect("the first of all");
        let start = change(Some(Status::Idle), Trigger::Start);
        let stray = change(Some(Status::Paused), Trigger::Resume);
        assert_eq!(finding(store.keep(record(2), stray)), "records form a chain");
        assert_eq!(finding(store.keep(record(1), start)), "one record, one change");
    }

    #[test]
    fn what_may_be_stored_is_never_ruled_out() {
        let mut store = Store::default();
        assert!(store.may_refuse(record(1)));
        store.doubt(record(1), change(None, Trigger::Create));
        assert!(!store.may_refuse(record(1)));
    }
}
