//! Every decision of an Ostler pool, as a value.
//!
//! [`Pool::handle`] is the only mutation, [`Pool::next_deadline`] the only timer. The shell turns
//! what happened into an [`Event`], hands it over with the time, and carries out the
//! [`Command`]s that come back, in their order. Nothing here knows a runtime, a clock, a file, a
//! payload or a thread: whatever could answer differently on a slower machine belongs to the shell.
//!
//! ```
//! use ostler_core::{Command, Event, Pool, Settings, Time};
//!
//! let mut pool = Pool::new(Settings::of_size(1));
//! let mut commands = Vec::new();
//! pool.handle(Time::ZERO, Event::PoolStarted, &mut commands);
//! assert!(matches!(commands[0], Command::Record { .. }), "a worker begins in the store");
//! ```

#![forbid(unsafe_code)]

mod answer;
mod bond;
mod cancel;
mod check;
mod checkup;
mod command;
mod control;
mod dispatch;
mod event;
mod health;
mod id;
mod job;
mod keyed;
mod lease;
mod life;
mod moving;
mod nesting;
mod pool;
mod process;
mod quarantine;
mod queue;
mod recovery;
mod reload;
mod replace;
mod request;
mod restart;
mod restore;
mod retire;
mod roster;
mod scale;
mod settings;
mod shutdown;
mod status;
mod strategy;
mod supervise;
mod sweep;
mod time;
mod timers;
mod way;
mod worker;

pub use command::{
    BondStep, Change, CheckResult, Command, Continuity, LeaseEnd, LossReason, Notice, Outcome,
    Phase, PhaseReason, Refusal, Reply, Retirement, Started, StopReason, Waiting,
};
pub use event::{
    Action, Affinity, Answer, Bond, Event, Exit, LeaseSpec, Ready, Recording, RequestSpec,
    SpawnFailure, Target,
};
pub use id::{
    IdHasher, IdMap, KeyId, LeaseId, OrderId, ProcessId, RecordId, RequestId, SessionId, WorkerId,
};
pub use job::{AttemptFailure, JobBackoff, JobStatus, NextTry, Retrying};
pub use pool::{Counters, Lifecycle, Occupancy, Pool, PoolView};
pub use restore::Restored;
pub use settings::{Admission, Backoff, CapacityFrom, Checkup, Evict, Heartbeat, Keyed, Settings};
pub use status::{Status, Trigger};
pub use strategy::{Candidate, Rank, Ranking, Strategy};
pub use time::Time;
pub use worker::WorkerView;
