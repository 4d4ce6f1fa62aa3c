//! The status of a job: durable, audited, and changed only along this table; and what follows from
//! the end of one of its attempts.
//!
//! ```text
//!   SUBMITTED ──due──▶ PENDING ──claimed──▶ RUNNING ──▶ COMPLETED
//!       │                 │                    ├─────▶ FAILED
//!       └─────────────────┴── FAILED, CANCELED ┴─────▶ CANCELED
//! ```
//!
//! An attempt is a record of its own: a job that is tried again stays RUNNING.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStatus {
    Canceled,
    Completed,
    Failed,
    Pending,
    Running,
    Submitted,
}

impl JobStatus {
    /// In the order of their names, as the refusals list them.
    pub const ALL: [JobStatus; 6] = [
        JobStatus::Canceled,
        JobStatus::Completed,
        JobStatus::Failed,
        JobStatus::Pending,
        JobStatus::Running,
        JobStatus::Submitted,
    ];

    pub fn terminal(self) -> bool {
        matches!(self, JobStatus::Canceled | JobStatus::Completed | JobStatus::Failed)
    }

    pub fn may_become(self, to: JobStatus) -> bool {
        use JobStatus::*;
        matches!(
            (self, to),
            (Submitted, Pending | Canceled | Failed)
                | (Pending, Running | Canceled | Failed)
                | (Running, Completed | Failed | Canceled)
        )
    }

    /// Where one may go from here, sorted by name.
    pub fn allowed(self) -> Vec<JobStatus> {
        JobStatus::ALL.into_iter().filter(|to| self.may_become(*to)).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            JobStatus::Canceled => "CANCELED",
            JobStatus::Completed => "COMPLETED",
            JobStatus::Failed => "FAILED",
            JobStatus::Pending => "PENDING",
            JobStatus::Running => "RUNNING",
            JobStatus::Submitted => "SUBMITTED",
        }
    }

    pub fn named(name: &str) -> Option<JobStatus> {
        JobStatus::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// Why an attempt gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptFailure {
    /// The handler raised something that it does not call retryable.
    Error,
    /// The handler said that another try may help.
    Retryable,
    /// The worker ended under it.
    Crashed,
    /// The server ended under it.
    Lost,
    /// The arguments do not fit the function, or there is no such function.
    Invalid,
}

impl AttemptFailure {
    pub const ALL: [AttemptFailure; 5] = [
        AttemptFailure::Error,
        AttemptFailure::Retryable,
        AttemptFailure::Crashed,
        AttemptFailure::Lost,
        AttemptFailure::Invalid,
    ];

    pub fn name(self) -> &'static str {
        match self {
            AttemptFailure::Error => "error",
            AttemptFailure::Retryable => "retryable",
            AttemptFailure::Crashed => "crashed",
            AttemptFailure::Lost => "lost",
            AttemptFailure::Invalid => "invalid_arguments",
        }
    }

    pub fn named(name: &str) -> Option<AttemptFailure> {
        AttemptFailure::ALL.into_iter().find(|failure| failure.name() == name)
    }
}

/// When a job is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retrying {
    pub max_attempts: u32,
    /// Also an exception that does not say so is worth another try.
    pub on_error: bool,
    pub backoff: JobBackoff,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobBackoff {
    pub initial: Duration,
    pub max: Duration,
    pub factor: f64,
}

impl Default for JobBackoff {
    fn default() -> Self {
        let (initial, max) = (Duration::from_secs(1), Duration::from_secs(300));
        JobBackoff { initial, max, factor: 2.0 }
    }
}

impl Default for Retrying {
    fn default() -> Self {
        Retrying { max_attempts: 3, on_error: false, backoff: JobBackoff::default() }
    }
}

/// What becomes of a job after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextTry {
    After(Duration),
    Never,
}

impl Retrying {
    /// `attempt`: how many there were, this one included. `draw`: 0..1, spreads the delays by a
    /// fifth to either side.
    pub fn next(&self, failure: AttemptFailure, attempt: u32, draw: f64) -> NextTry {
        let worth_it = match failure {
            AttemptFailure::Retryable | AttemptFailure::Crashed | AttemptFailure::Lost => true,
            AttemptFailure::Error => self.on_error,
            AttemptFailure::Invalid => false,
        };
        if !worth_it || attempt >= self.max_attempts {
            return NextTry::Never;
        }
        NextTry::After(self.backoff.delay(attempt, draw))
    }
}

impl JobBackoff {
    fn delay(&self, attempt: u32, draw: f64) -> Duration {
        let steps = attempt.saturating_sub(1).min(64) as i32;
        let whole = self.initial.as_secs_f64() * self.factor.max(1.0).powi(steps);
        let whole = whole.min(self.max.as_secs_f64());
        Duration::try_from_secs_f64(whole * (0.8 + 0.4 * draw.clamp(0.0, 1.0))).unwrap_or(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::JobStatus::{self, *};
    use super::*;

    #[test]
    fn the_whole_matrix_is_as_drawn() {
        let legal = [
            (Submitted, Pending),
            (Submitted, Canceled),
            (Submitted, Failed),
            (Pending, Running),
            (Pending, Canceled),
            (Pending, Failed),
            (Running, Completed),
            (Running, Failed),
            (Running, Canceled),
        ];
        for from in JobStatus::ALL {
            for to in JobStatus::ALL {
                assert_eq!(from.may_become(to), legal.contains(&(from, to)), "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn a_terminal_job_never_moves() {
        for status in JobStatus::ALL {
            assert_eq!(status.terminal(), status.allowed().is_empty(), "{status:?}");
        }
    }

    #[test]
    fn names_are_found_again() {
        for status in JobStatus::ALL {
            assert_eq!(JobStatus::named(status.name()), Some(status));
        }
        for failure in AttemptFailure::ALL {
            assert_eq!(AttemptFailure::named(failure.name()), Some(failure));
        }
    }

    #[test]
    fn crashes_and_what_says_so_is_tried_again_until_the_attempts_are_used_up() {
        let retrying = Retrying::default();
        for failure in [AttemptFailure::Retryable, AttemptFailure::Crashed, AttemptFailure::Lost] {
            assert_ne!(retrying.next(failure, 1, 0.5), NextTry::Never);
            assert_ne!(retrying.next(failure, 2, 0.5), NextTry::Never);
            assert_eq!(retrying.next(failure, 3, 0.5), NextTry::Never);
            let once = Retrying { max_attempts: 1, ..retrying };
            assert_eq!(once.next(failure, 1, 0.5), NextTry::Never);
        }
    }

    #[test]
    fn another_exception_is_tried_again_only_where_that_is_wished() {
        let retrying = Retrying::default();
        assert_eq!(retrying.next(AttemptFailure::Error, 1, 0.5), NextTry::Never);
        let wider = Retrying { on_error: true, ..retrying };
        assert_ne!(wider.next(AttemptFailure::Error, 1, 0.5), NextTry::Never);
        assert_eq!(wider.next(AttemptFailure::Invalid, 1, 0.5), NextTry::Never);
    }

    #[test]
    fn delays_grow_to_their_bound_and_are_spread() {
        let backoff = JobBackoff {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(10),
            factor: 2.0,
        };
        let delay = |attempt, draw| backoff.delay(attempt, draw).as_secs_f64();
        assert_eq!([1, 2, 3, 4, 5, 99].map(|n| delay(n, 0.5)), [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]);
        assert_eq!((delay(1, 0.0), delay(1, 1.0)), (0.8, 1.2));
    }
}
