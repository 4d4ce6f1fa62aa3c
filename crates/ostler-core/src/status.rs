//! The status of a worker: durable, audited, and changed only along this table.
//!
//! ```text
//!   IDLE ──start──▶ RUNNING ──complete──▶ COMPLETED ─┐
//!     │             │   ▲ │                          │
//!     │        pause│   │ └──────────────▶ FAILED ───┤ terminate
//!     │             ▼   │resume              ▲       ▼
//!     │            PAUSED ───────────────────┘   TERMINATED
//!     └──────────────┴───────────terminate──────────▲
//! ```

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    Completed,
    Failed,
    Idle,
    Paused,
    Running,
    Terminated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    Create,
    Start,
    Pause,
    /// A pause by the system, which the system may end.
    PauseExhausted,
    Resume,
    Complete,
    ErrorUnrecoverable,
    Terminate,
}

impl Status {
    /// In the order of their names, as the refusals list them.
    pub const ALL: [Status; 6] = [
        Status::Completed,
        Status::Failed,
        Status::Idle,
        Status::Paused,
        Status::Running,
        Status::Terminated,
    ];

    pub fn terminal(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Terminated)
    }

    pub fn may_become(self, to: Status) -> bool {
        use Status::*;
        match (self, to) {
            (Idle, Running) | (Running, Paused) | (Paused, Running) | (Running, Completed) => true,
            (Idle | Running | Paused, Failed) => true,
            (from, Terminated) => from != Terminated,
            _ => false,
        }
    }

    /// Where one may go from here, sorted by name.
    pub fn allowed(self) -> Vec<Status> {
        Status::ALL.into_iter().filter(|to| self.may_become(*to)).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            Status::Completed => "COMPLETED",
            Status::Failed => "FAILED",
            Status::Idle => "IDLE",
            Status::Paused => "PAUSED",
            Status::Running => "RUNNING",
            Status::Terminated => "TERMINATED",
        }
    }
}

impl Trigger {
    pub fn leads_to(self) -> Status {
        match self {
            Trigger::Create => Status::Idle,
            Trigger::Start | Trigger::Resume => Status::Running,
            Trigger::Pause | Trigger::PauseExhausted => Status::Paused,
            Trigger::Complete => Status::Completed,
            Trigger::ErrorUnrecoverable => Status::Failed,
            Trigger::Terminate => Status::Terminated,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Trigger::Create => "create",
            Trigger::Start => "start",
            Trigger::Pause => "pause",
            Trigger::PauseExhausted => "resource_exhausted",
            Trigger::Resume => "resume",
            Trigger::Complete => "complete",
            Trigger::ErrorUnrecoverable => "error_unrecoverable",
            Trigger::Terminate => "terminate",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{self, *};

    #[test]
    fn the_whole_matrix_is_as_drawn() {
        let legal = [
            (Idle, Running),
            (Idle, Failed),
            (Idle, Terminated),
            (Running, Paused),
            (Running, Completed),
            (Running, Failed),
            (Running, Terminated),
            (Paused, Running),
            (Paused, Failed),
            (Paused, Terminated),
            (Completed, Terminated),
            (Failed, Terminated),
        ];
        for from in Status::ALL {
            for to in Status::ALL {
                assert_eq!(from.may_become(to), legal.contains(&(from, to)), "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn allowed_is_sorted_by_name() {
        let names: Vec<_> = Running.allowed().into_iter().map(Status::name).collect();
        assert_eq!(names, ["COMPLETED", "FAILED", "PAUSED", "TERMINATED"]);
        assert!(Terminated.allowed().is_empty());
    }
}
