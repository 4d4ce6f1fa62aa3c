//! Jobs that come again and again.

use jiff::Timestamp;

use super::id::{JobId, ScheduleId};
use super::job::NewJob;

#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule {
    /// Unique in its workspace.
    pub name: String,
    pub workspace: String,
    /// Five fields (`*/5 * * * *`), or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`, or
    /// `@every 90s`.
    pub cron: String,
    /// An IANA name; `UTC` if nothing is said.
    pub timezone: String,
    /// What is submitted each time.
    pub job: NewJob,
    pub overlap: Overlap,
    pub paused: bool,
}

/// What happens when the last job has no end yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// This time is left out.
    #[default]
    Skip,
    Allow,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub id: ScheduleId,
    pub spec: NewSchedule,
    /// The next time, unless it is paused. Times that passed while no server ran count once.
    pub next_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
    pub last_job: Option<JobId>,
    pub version: u64,
    pub created_at: Timestamp,
}

/// What is to change. None: as it was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScheduleChange {
    pub cron: Option<String>,
    pub timezone: Option<String>,
    pub job: Option<NewJob>,
    pub overlap: Option<Overlap>,
    pub paused: Option<bool>,
}
