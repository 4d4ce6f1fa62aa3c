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
mod clock;
pub mod containment;
mod driver;
mod exchange;
mod failure;
mod journal;
mod launcher;
mod link;
mod outbox;
mod output;
mod pool;
mod program;
mod python;
mod reader;
mod rendezvous;
mod trace;

pub use driver::Readiness;
pub use exchange::Item;
pub use failure::{CallError, Failure, Refused, signal_name};
pub use launcher::ProcessSettings;
pub use ostler_core as core;
pub use ostler_proto::{Body, Encoding, FunctionSpec, WorkerError};
pub use pool::{Answered, Call, Pool, PoolInfo, PoolSpec, Running, StartError, WorkerInfo};
pub use program::Program;
pub use python::{Interpreter, PythonError};
pub use trace::Trace;
