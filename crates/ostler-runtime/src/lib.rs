//! The shell around the core: contained processes, worker streams, timers, one driver per pool.
//!
//! ```text
//!  caller ──Call──▶ Pool ──one event──▶ Driver(core) ──Assign──▶ Link ──bytes──▶ process
//!    ▲                                    ▲                       │
//!    └────chunks, one end── Exchange ◀────┴──one event────────────┘ reader
//! ```
//!
//! Whatever could answer differently on a slower machine is here; every decision is in
//! `ostler-core`.

mod attend;
mod builder;
mod callback;
mod chronicle;
mod clock;
pub mod containment;
mod desk;
mod directory;
mod dossier;
mod driver;
mod duty;
mod events;
mod exchange;
mod failure;
mod fingerprint;
mod known;
mod launcher;
mod lease;
mod link;
mod manner;
mod memory;
mod naming;
mod outbox;
mod output;
mod pool;
mod pressure;
mod profile;
mod program;
mod python;
mod reader;
mod record;
mod registry;
mod reload;
mod rendezvous;
mod running;
mod session;
mod tally;
mod trace;
mod view;
mod vigil;
mod workspace;

pub use builder::PoolBuilder;
pub use chronicle::{MetricKey, continuity_name, phase_name};
pub use desk::{DESK_OPERATIONS, Desk, DeskAnswer, DeskAsk};
pub use directory::{Directory, HostCall, HostError};
pub use dossier::{PhaseStep, StatusStep};
pub use driver::Readiness;
pub use duty::{Duty, Listener};
pub use events::reason::{of_exit as exit_class, of_phase as phase_reason, of_stop as stop_reason};
pub use events::{EVENTS_KEPT, Event, EventDraft, EventKind, EventLog, Followed, Follower};
pub use exchange::Item;
pub use failure::{CallError, Condition, Failure, Refused, signal_name};
pub use known::{Known, started_value};
pub use launcher::ProcessSettings;
pub use lease::{Lease, LeaseRequest};
pub use link::Connection;
pub use naming::made_id;
pub use ostler_core as core;
pub use ostler_core::{Affinity, Continuity};
pub use ostler_proto::{Body, Encoding, FunctionSpec, LogLevel, WorkerError};
pub use ostler_store as store;
pub use output::{Line, Output, OutputSettings, Stream};
pub use pool::{OnDisconnect, Pool, PoolSpec, StartError};
pub use profile::{Profile, ThreadSafety};
pub use program::{Program, Resolved};
pub use python::{Interpreter, PythonError};
pub use record::{ENDED_KEPT, History, Register, RequestRecord, RequestState, Step};
pub use reload::ReloadError;
pub use running::{Answered, Call, Running};
pub use session::{CallSession, KeyedBy, tell_of_sessions};
pub use tally::{Counts, Histogram, OK, Tally};
pub use trace::Trace;
pub use view::{PoolInfo, RequestInfo, WorkerHistory, WorkerInfo};
