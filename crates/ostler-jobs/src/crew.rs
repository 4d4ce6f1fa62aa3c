//! How many hands the jobs of a pool need, how much work to fetch for them, and when one of them is
//! to give its place back. Numbers only: it knows no pool, no ledger and no clock.
//!
//! ```text
//!   (seeking) ──a place──▶ (idle) ⇄ (busy)
//!       └────────┬────────────┘
//!              leaves: nothing to do, or its place was held long enough
//! ```
//!
//! What waits in the ledger is not known, only what was heard of it. `expected` follows the jobs
//! that became claimable one by one; `doubt` says that an unknown number may be, until a claim
//! comes back short. Both decide only how many hands there are: as long as nothing was heard that
//! a short claim did not answer, somebody looks.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a hand keeps its place while others may wait for it.
pub(crate) const HOLD: Duration = Duration::from_millis(100);
/// Jobs that are shorter on average are fetched ahead.
const SHORT: Duration = Duration::from_millis(20);
/// And as many for each place.
const AHEAD: usize = 4;
/// What the ledger gives at once. Asked for more it would give less, which is how it says that there
/// is no more.
pub(crate) const CLAIM_MAX: usize = 256;
/// Ends of attempts that may wait for the store, besides one for each place. Beyond that nothing is
/// begun.
const ENDS_MAX: usize = 256;
/// What was fetched and not begun for this long goes back.
const STALE: Duration = Duration::from_millis(250);
const FIRST_REST: Duration = Duration::from_millis(20);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Where a hand stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// It waits for a place.
    Seeking,
    /// It has a place and no job.
    Idle,
    Busy,
}

/// What an idle hand does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<J> {
    Run(J),
    /// More may come any moment.
    Wait,
    Leave,
}

#[derive(Debug)]
pub(crate) struct Crew<J> {
    /// Hands that there may be.
    places: usize,
    seeking: usize,
    idle: usize,
    busy: usize,
    /// Ends of attempts that are not stored yet.
    ending: usize,
    /// Claimed and not begun, with the time of the claim.
    stock: VecDeque<(Instant, J)>,
    claiming: bool,
    /// Something was heard since the claim under way began.
    news: bool,
    expected: usize,
    doubt: bool,
    /// The last claim came back short and nothing was heard since.
    dry: bool,
    mean: Option<Duration>,
    rest: Option<Rest>,
    /// The last hand is to go and runs what was fetched: nothing more is.
    draining: bool,
    closed: bool,
}

/// After a refusal the pool is left alone for a while, each time longer.
#[derive(Debug, Clone, Copy)]
struct Rest {
    until: Instant,
    span: Duration,
}

impl<J> Crew<J> {
    /// Nobody, and nothing heard.
    pub fn new() -> Self {
        Crew {
            places: 0,
            seeking: 0,
            idle: 0,
            busy: 0,
            ending: 0,
            stock: VecDeque::new(),
            claiming: false,
            news: false,
            expected: 0,
            doubt: false,
            dry: true,
            mean: None,
            rest: None,
            draining: false,
            closed: false,
        }
    }

    pub fn set_places(&mut self, places: usize) {
        self.places = places;
    }

    /// So many jobs became claimable.
    pub fn more(&mut self, jobs: usize) {
        self.expected = self.expected.saturating_add(jobs);
        self.heard();
    }

    /// So many of them are not any more, and nobody here claimed them.
    pub fn fewer(&mut self, jobs: usize) {
        self.expected = self.expected.saturating_sub(jobs);
    }

    /// Some jobs may be claimable; how many is not known.
    pub fn perhaps(&mut self) {
        self.doubt = true;
        self.heard();
    }

    fn heard(&mut self) {
        (self.dry, self.news) = (false, true);
    }

    // ---- hands ----

    fn with_places(&self) -> usize {
        self.idle + self.busy
    }

    /// Hands without a job that there should be.
    fn wanted(&self) -> usize {
        let scout = self.doubt || (!self.dry && self.busy == 0);
        (self.stock.len() + self.expected).max(usize::from(scout))
    }

    fn resting(&self, now: Instant) -> bool {
        self.rest.is_some_and(|rest| now < rest.until)
    }

    /// The store is behind: the end of what would be begun could not be kept.
    fn lags(&self) -> bool {
        self.ending >= self.places + ENDS_MAX
    }

    /// Nothing is to be begun now.
    fn halts(&self, now: Instant) -> bool {
        self.closed || self.lags() || self.resting(now)
    }

    /// One more is needed.
    pub fn wants_hand(&self, now: Instant) -> bool {
        !self.halts(now)
            && self.seeking + self.with_places() < self.places
            && self.seeking + self.idle < self.wanted()
    }

    /// One of those that wait for a place waits for nothing.
    pub fn has_spare(&self, now: Instant) -> bool {
        self.halts(now) || self.seeking + self.idle > self.wanted()
    }

    pub fn enters(&mut self) {
        self.seeking += 1;
    }

    pub fn moves(&mut self, from: Stand, to: Stand) {
        *self.count(from) -= 1;
        *self.count(to) += 1;
        self.draining &= from != Stand::Seeking;
    }

    pub fn leaves(&mut self, from: Stand) {
        *self.count(from) -= 1;
        self.draining &= self.with_places() > 0;
    }

    fn count(&mut self, stand: Stand) -> &mut usize {
        match stand {
            Stand::Seeking => &mut self.seeking,
            Stand::Idle => &mut self.idle,
            Stand::Busy => &mut self.busy,
        }
    }

    /// What an idle hand does that has had its place for so long. `Run`: it is busy now.
    pub fn next(&mut self, held: Duration, now: Instant) -> Next<J> {
        let last = self.with_places() == 1;
        let drains = last && !self.stock.is_empty();
        if self.closed || self.resting(now) || (held >= HOLD && !drains) {
            return Next::Leave;
        }
        if self.lags() {
            return if held < HOLD { Next::Wait } else { Next::Leave };
        }
        self.draining |= held >= HOLD;
        match self.stock.pop_front() {
            Some((_, job)) => {
                self.moves(Stand::Idle, Stand::Busy);
                Next::Run(job)
            }
            None if self.claiming || !self.dry => Next::Wait,
            None => Next::Leave,
        }
    }

    /// A job was run for so long.
    pub fn ran(&mut self, time: Duration) {
        self.rest = None;
        self.mean = Some(match self.mean {
            None => time,
            Some(mean) => (mean * 4 + time) / 5,
        });
    }

    /// The end of an attempt waits for the store.
    pub fn ends(&mut self) {
        self.ending += 1;
    }

    /// And waits no more. True: work goes on with that.
    pub fn end_kept(&mut self) -> bool {
        let lagged = self.lags();
        self.ending -= 1;
        lagged && !self.lags()
    }

    /// The pool let nobody in.
    pub fn refused(&mut self, now: Instant) {
        if self.resting(now) {
            return;
        }
        let span = self.rest.map_or(FIRST_REST, |rest| (rest.span * 2).min(LONGEST_REST));
        self.rest = Some(Rest { until: now + span, span });
    }

    // ---- work ----

    /// How many jobs to claim now. It counts as under way until [`claimed`](Self::claimed) or
    /// [`unclaimed`](Self::unclaimed) says otherwise.
    pub fn claim(&mut self, now: Instant) -> Option<usize> {
        if self.halts(now) || self.claiming || self.dry || self.draining {
            return None;
        }
        let short = self.mean.is_some_and(|mean| mean < SHORT);
        let ahead = if short { AHEAD * self.with_places() } else { 0 };
        let limit = (self.idle + ahead).saturating_sub(self.stock.len()).min(CLAIM_MAX);
        if limit == 0 {
            return None;
        }
        (self.claiming, self.news) = (true, false);
        Some(limit)
    }

    /// What a claim of `limit` brought. Whatever comes back has nobody to run it.
    #[must_use]
    pub fn claimed(&mut self, limit: usize, jobs: Vec<J>, now: Instant) -> Vec<J> {
        self.claiming = false;
        let surprise = self.expected == 0 && !jobs.is_empty();
        self.expected = self.expected.saturating_sub(jobs.len());
        if jobs.len() == limit {
            self.doubt |= surprise;
        } else if !self.news {
            (self.dry, self.doubt, self.expected) = (true, false, 0);
        }
        if self.closed {
            return jobs;
        }
        self.stock.extend(jobs.into_iter().map(|job| (now, job)));
        Vec::new()
    }

    /// A claim failed: what is there is as unknown as before.
    pub fn unclaimed(&mut self, now: Instant) {
        self.claiming = false;
        self.refused(now);
    }

    /// What is not to be run here: claimed too long ago by somebody who thought that there were
    /// places, or unwanted by now.
    #[must_use]
    pub fn sort_out(&mut self, now: Instant, unwanted: impl Fn(&J) -> bool) -> Vec<J> {
        let out = |(at, job): &mut (Instant, J)| {
            now.saturating_duration_since(*at) >= STALE || unwanted(job)
        };
        let mut sorted_out = Vec::new();
        for mut claim in std::mem::take(&mut self.stock) {
            if out(&mut claim) {
                sorted_out.push(claim.1);
            } else {
                self.stock.push_back(claim);
            }
        }
        sorted_out
    }

    /// When to look again though nothing was heard.
    pub fn next_look(&self, now: Instant) -> Option<Instant> {
        let rested = self.rest.map(|rest| rest.until).filter(|until| now < *until);
        let stale = self.stock.front().map(|(at, _)| *at + STALE);
        rested.into_iter().chain(stale).min()
    }

    /// Nothing more is begun. What was claimed comes back.
    #[must_use]
    pub fn close(&mut self) -> Vec<J> {
        self.closed = true;
        self.stock.drain(..).map(|(_, job)| job).collect()
    }
}

#[cfg(test)]
mod tests;
