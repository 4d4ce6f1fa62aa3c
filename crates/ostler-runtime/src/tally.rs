//! What a pool counts, for its metrics. Plain numbers without atomics: the driver notes them under
//! the lock that it holds anyway, and whoever wants to read them gets a copy.
//!
//! Kinds of things are counted by static names, of which there are few, so that labels are bounded.

use std::time::Duration;

use ostler_core::{CheckResult, Phase, Status};

/// Upper bounds of the buckets, in microseconds.
const BOUNDS_US: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];
const BUCKETS: usize = BOUNDS_US.len() + 1;

/// How long things took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    sum_nanos: u64,
}

impl Histogram {
    pub fn note(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| bound * 1_000 < nanos);
        self.buckets[bucket] += 1;
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }

    /// Each bound in seconds with how many took no longer. The last, without a bound, is
    /// [`count`](Self::count).
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut total = 0;
        BOUNDS_US.iter().zip(self.buckets).map(move |(bound, count)| {
            total += count;
            (*bound as f64 / 1e6, total)
        })
    }
}

/// Counts by a name out of a short closed list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    counts: Vec<(&'static str, u64)>,
}

impl Counts {
    pub fn note(&mut self, name: &'static str) {
        // The same name is nearly always the same constant, and what comes often came early.
        match self.counts.iter_mut().find(|(known, _)| std::ptr::eq(*known, name) || *known == name)
        {
            Some((_, count)) => *count += 1,
            None => self.counts.push((name, 1)),
        }
    }

    pub fn get(&self, name: &str) -> u64 {
        self.counts.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }

    /// In the order in which they first came.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().copied()
    }
}

const PHASES: [Phase; 6] =
    [Phase::Starting, Phase::Ready, Phase::Busy, Phase::Degraded, Phase::Stopping, Phase::Dead];

/// The code under which answered requests are counted.
pub const OK: &str = "ok";

/// Counts by pair; the last row is for workers that come into being.
type StatusPairs = [[u64; Status::ALL.len()]; Status::ALL.len() + 1];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    outcomes: Counts,
    queue_wait: Histogram,
    service: Histogram,
    /// By the phase that was left, the last row for those that were in none.
    phase_moves: [[u64; PHASES.len()]; PHASES.len() + 1],
    phase_nanos: [u64; PHASES.len()],
    status_moves: StatusPairs,
    status_refused: StatusPairs,
    checks: Counts,
    check_time: Histogram,
    heartbeat_time: Histogram,
    heartbeats_missed: u64,
    starts: Histogram,
    ends: Counts,
    retirements: Counts,
    chunks: u64,
}

impl Tally {
    /// A request has ended: [`OK`], or the code of its problem.
    pub fn note_outcome(&mut self, code: &'static str) {
        self.outcomes.note(code);
    }

    /// From its arrival to its first worker.
    pub fn note_queue_wait(&mut self, waited: Duration) {
        self.queue_wait.note(waited);
    }

    /// From its worker to its answer.
    pub fn note_service(&mut self, took: Duration) {
        self.service.note(took);
    }

    /// `after`: the time spent in `from`.
    pub fn note_phase(&mut self, from: Option<Phase>, to: Phase, after: Duration) {
        let row = from.map_or(PHASES.len(), phase_index);
        self.phase_moves[row][phase_index(to)] += 1;
        if let Some(from) = from {
            let spent = &mut self.phase_nanos[phase_index(from)];
            *spent = spent.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
        }
        if from == Some(Phase::Starting) && to == Phase::Ready {
            self.starts.note(after);
        }
    }

    pub fn note_status(&mut self, from: Option<Status>, to: Status) {
        let row = from.map_or(Status::ALL.len(), status_index);
        self.status_moves[row][status_index(to)] += 1;
    }

    pub fn note_refused_status(&mut self, from: Status, to: Status) {
        self.status_refused[status_index(from)][status_index(to)] += 1;
    }

    /// `took`: from the question to the answer, where there was one.
    pub fn note_check(&mut self, result: CheckResult, took: Option<Duration>) {
        self.checks.note(match result {
            CheckResult::Passed => "passed",
            CheckResult::Failed => "failed",
            CheckResult::TimedOut => "timed_out",
        });
        if let Some(took) = took {
            self.check_time.note(took);
        }
    }

    pub fn note_heartbeat(&mut self, took: Duration) {
        self.heartbeat_time.note(took);
    }

    pub fn note_heartbeat_missed(&mut self) {
        self.heartbeats_missed += 1;
    }

    /// A process is gone: why it was stopped, or how it ended by itself.
    pub fn note_end(&mut self, reason: &'static str) {
        self.ends.note(reason);
    }

    pub fn note_retirement(&mut self, reason: &'static str) {
        self.retirements.note(reason);
    }

    pub fn note_chunks(&mut self, delivered: u64) {
        self.chunks += delivered;
    }

    /// Workers that were to go, by the reason.
    pub fn retirements(&self) -> &Counts {
        &self.retirements
    }

    pub fn outcomes(&self) -> &Counts {
        &self.outcomes
    }

    pub fn queue_wait(&self) -> &Histogram {
        &self.queue_wait
    }

    pub fn service(&self) -> &Histogram {
        &self.service
    }

    pub fn checks(&self) -> &Counts {
        &self.checks
    }

    pub fn check_time(&self) -> &Histogram {
        &self.check_time
    }

    pub fn heartbeat_time(&self) -> &Histogram {
        &self.heartbeat_time
    }

    pub fn heartbeats_missed(&self) -> u64 {
        self.heartbeats_missed
    }

    /// From spawn to ready.
    pub fn starts(&self) -> &Histogram {
        &self.starts
    }

    pub fn ends(&self) -> &Counts {
        &self.ends
    }

    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// The pairs that have occurred.
    pub fn phase_moves(&self) -> impl Iterator<Item = (Option<Phase>, Phase, u64)> {
        let rows = PHASES.map(Some).into_iter().chain([None]).zip(&self.phase_moves);
        rows.flat_map(|(from, row)| PHASES.into_iter().zip(row).map(move |(to, n)| (from, to, *n)))
            .filter(|(_, _, count)| *count > 0)
    }

    /// Time that processes spent in phases they have left.
    pub fn time_in_phase(&self) -> impl Iterator<Item = (Phase, Duration)> {
        PHASES.into_iter().zip(self.phase_nanos.map(Duration::from_nanos))
    }

    pub fn status_moves(&self) -> impl Iterator<Item = (Option<Status>, Status, u64)> {
        status_pairs(&self.status_moves)
    }

    pub fn refused_status_moves(&self) -> impl Iterator<Item = (Option<Status>, Status, u64)> {
        status_pairs(&self.status_refused)
    }
}

fn status_pairs(counts: &StatusPairs) -> impl Iterator<Item = (Option<Status>, Status, u64)> {
    let rows = Status::ALL.map(Some).into_iter().chain([None]).zip(counts);
    rows.flat_map(|(from, row)| Status::ALL.into_iter().zip(row).map(move |(to, n)| (from, to, *n)))
        .filter(|(_, _, count)| *count > 0)
}

const fn phase_index(phase: Phase) -> usize {
    match phase {
        Phase::Starting => 0,
        Phase::Ready => 1,
        Phase::Busy => 2,
        Phase::Degraded => 3,
        Phase::Stopping => 4,
        Phase::Dead => 5,
    }
}

const fn status_index(status: Status) -> usize {
    match status {
        Status::Completed => 0,
        Status::Failed => 1,
        Status::Idle => 2,
        Status::Paused => 3,
        Status::Running => 4,
        Status::Terminated => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let mut histogram = Histogram::default();
        for micros in [0, 100, 101, 60_000_000, 60_000_001] {
            histogram.note(Duration::from_micros(micros));
        }
        let cumulative: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!(cumulative[..2], [2, 3], "a bound belongs to its bucket");
        assert_eq!(cumulative.last(), Some(&4), "what took longer is only in the count");
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.sum(), Duration::from_micros(120_000_202));
    }

    #[test]
    fn bounds_rise() {
        let bounds: Vec<f64> = Histogram::default().cumulative().map(|(bound, _)| bound).collect();
        assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((bounds[0], bounds[17]), (0.0001, 60.0));
    }

    #[test]
    fn names_are_counted_by_what_they_say() {
        let mut counts = Counts::default();
        counts.note(OK);
        counts.note(String::from("ok").leak());
        counts.note("cancelled");
        assert_eq!(counts.iter().collect::<Vec<_>>(), [("ok", 2), ("cancelled", 1)]);
        assert_eq!((counts.get("ok"), counts.get("never")), (2, 0));
    }

    #[test]
    fn phases_are_counted_by_pair_and_time() {
        let mut tally = Tally::default();
        let second = Duration::from_secs(1);
        tally.note_phase(None, Phase::Starting, Duration::ZERO);
        tally.note_phase(Some(Phase::Starting), Phase::Ready, second);
        tally.note_phase(Some(Phase::Ready), Phase::Busy, second);
        tally.note_phase(Some(Phase::Busy), Phase::Ready, second);
        tally.note_phase(Some(Phase::Ready), Phase::Busy, second);
        let moves: Vec<_> = tally.phase_moves().collect();
        assert_eq!(moves.len(), 4);
        assert!(moves.contains(&(None, Phase::Starting, 1)));
        assert!(moves.contains(&(Some(Phase::Ready), Phase::Busy, 2)));
        let ready = tally.time_in_phase().find(|(phase, _)| *phase == Phase::Ready);
        assert_eq!(ready, Some((Phase::Ready, 2 * second)));
        assert_eq!(tally.starts().sum(), second);
    }

    #[test]
    fn every_phase_and_status_has_its_own_place() {
        for (index, phase) in PHASES.into_iter().enumerate() {
            assert_eq!(phase_index(phase), index);
        }
        for (index, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status_index(status), index);
        }
    }

    #[test]
    fn refused_changes_of_status_are_counted_apart() {
        let mut tally = Tally::default();
        tally.note_status(None, Status::Idle);
        tally.note_status(Some(Status::Idle), Status::Running);
        tally.note_refused_status(Status::Idle, Status::Paused);
        let moves: Vec<_> = tally.status_moves().collect();
        let made = (None, Status::Idle, 1);
        assert_eq!(moves, [(Some(Status::Idle), Status::Running, 1), made]);
        let refused: Vec<_> = tally.refused_status_moves().collect();
        assert_eq!(refused, [(Some(Status::Idle), Status::Paused, 1)]);
    }
}
