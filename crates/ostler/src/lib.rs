//! Pools of warm worker processes: the library and the command.
//!
//! A program that embeds a pool becomes its shims too, so its first line is
//! [`containment::enter_if_asked`]:
//!
//! ```no_run
//! use ostler::{Pool, containment};
//! use serde_json::json;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     containment::enter_if_asked();
//!     tokio::runtime::Runtime::new()?.block_on(async {
//!         let pool = Pool::python("hello", "hello.py").size(2).start().await?;
//!         let greeting: String = pool.invoke("greet", &json!({ "name": "Ada" })).await?;
//!         println!("{greeting}");
//!         Ok(())
//!     })
//! }
//! ```
//!
//! - [`Pool::invoke`] and [`Pool::stream`] call a function; [`Pool::call`] takes a [`Call`] with a
//!   deadline, a priority, an owner. Dropping a [`Running`] call cancels it.
//! - [`Pool::enter`] gives calls a session: state of their own, and a process that they come back to.
//! - [`Pool::lease`] holds a worker for several calls; the [`Lease`] is a guard.
//! - [`PoolBuilder::host_function`] lets workers call back into this program; pools that share a
//!   [`Directory`] can call each other.
//! - [`Pool::reload`] changes a running pool; [`Pool::order`] scales, recycles, pauses and drains it.
//! - [`Pool::events`] follows what happens, [`Pool::info`] shows what is.
//! - [`Strategy`] says which worker gets the next request; [`Ranking`] is for one's own.
//!
//! Dropping the last [`Pool`] handle ends every process. The examples in `examples/` run.

pub mod cli;
pub mod config;
mod conform;
mod daemon;
mod reload;
mod spec;
mod text;
mod watch;

pub use ostler_core::{
    Action, Admission, Affinity, Candidate, CapacityFrom, Continuity, Evict, Keyed, Rank, Ranking,
    Refusal, Reply, SessionId, Settings, Strategy,
};
/// Where sessions are kept.
pub use ostler_runtime::store;
pub use ostler_runtime::{
    Answered, Body, Call, CallError, CallSession, Directory, Event, EventKind, EventLog, Failure,
    Followed, Follower, HostCall, HostError, Item, KeyedBy, Lease, LeaseRequest, OnDisconnect,
    Pool, PoolBuilder, PoolInfo, PoolSpec, Profile, Program, Refused, ReloadError, RequestInfo,
    Running, StartError, WorkerInfo, containment,
};
