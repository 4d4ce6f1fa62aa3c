//! Jobs, as they are measured: how many there are in each status, how they moved, and what was not
//! heard any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ostler_core::JobStatus;
use ostler_store::ledger::job::JobCounts;
use ostler_store::ledger::{Ledger, Notice};

use crate::exposition::{Exposition, Kind};
use crate::idempotency::KeyCounts;

const STATUSES: usize = JobStatus::ALL.len();

/// Changes of status by pair. The last row is for what came into being.
#[derive(Debug, Default)]
pub(crate) struct JobMoves {
    counts: [[AtomicU64; STATUSES]; STATUSES + 1],
}

impl JobMoves {
    /// Counts from now on.
    pub fn of(ledger: &Ledger) -> Arc<Self> {
        let moves = Arc::new(JobMoves::default());
        let counting = Arc::clone(&moves);
        ledger.watch(move |notices| notices.iter().for_each(|notice| counting.note(notice)));
        moves
    }

    fn note(&self, notice: &Notice) {
        let Notice::JobChanged { from, to, .. } = notice else { return };
        let from = from.map_or(STATUSES, place);
        self.counts[from][place(*to)].fetch_add(1, Ordering::Relaxed);
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let names = JobStatus::ALL.map(JobStatus::name);
        self.counts.iter().enumerate().flat_map(move |(from, row)| {
            let from = names.get(from).copied().unwrap_or("none");
            row.iter().zip(names).map(move |(count, to)| (from, to, count.load(Ordering::Relaxed)))
        })
    }
}

fn place(status: JobStatus) -> usize {
    JobStatus::ALL.iter().position(|known| *known == status).expect("all of them are there")
}

pub(crate) fn jobs(out: &mut Exposition, counts: Option<&JobCounts>, moves: &JobMoves) {
    // A store that cannot be read has no figures.
    if let Some(counts) = counts {
        out.family("ostler_jobs", Kind::Gauge, "Jobs that are kept, by status.");
        for status in JobStatus::ALL {
            let count = counts.by_status.get(&status).copied().unwrap_or_default();
            out.count(&[("status", status.name())], count);
        }
        let stale = "Words about attempts that were no longer current.";
        out.family("ostler_job_stale_words_total", Kind::Counter, stale);
        out.count(&[], counts.stale);
    }
    let name = "ostler_job_transitions_total";
    out.family(name, Kind::Counter, "Changes of jobs' status by pair; from none: submitted.");
    for (from, to, count) in moves.all().filter(|(.., count)| *count > 0) {
        out.count(&[("from", from), ("to", to)], count);
    }
}

pub(crate) fn keys(out: &mut Exposition, keys: &KeyCounts) {
    let name = "ostler_idempotency_keys_total";
    out.family(name, Kind::Counter, "Requests with a key, by what the key was found to be.");
    for (result, count) in keys.all() {
        out.count(&[("result", result)], count);
    }
}

#[cfg(test)]
mod tests {
    use ostler_store::ledger::JobId;

    use super::*;

    #[test]
    fn changes_are_counted_by_pair() {
        let moves = JobMoves::default();
        let changed = |from, to| Notice::JobChanged {
            job: JobId::fresh(),
            pool: "py".to_owned(),
            from,
            to,
            reason: None,
        };
        moves.note(&changed(None, JobStatus::Submitted));
        moves.note(&changed(Some(JobStatus::Pending), JobStatus::Running));
        moves.note(&changed(Some(JobStatus::Pending), JobStatus::Running));
        let mut out = Exposition::default();
        jobs(&mut out, None, &moves);
        let text = out.finish();
        for line in [
            "ostler_job_transitions_total{from=\"none\",to=\"SUBMITTED\"} 1",
            "ostler_job_transitions_total{from=\"PENDING\",to=\"RUNNING\"} 2",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
        }
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 2);
    }
}
