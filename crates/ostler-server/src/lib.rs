//! HTTP in front of the pools: requests in, problems out.
//!
//! One route is fast, `call.rs`; the others go through a router. Nothing here decides anything
//! about workers.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod bindings;
mod call;
mod docs;
mod door;
mod events;
mod exposition;
mod given;
mod leases;
mod list;
mod listed;
mod logs;
mod metrics;
mod openapi;
mod orders;
mod payload;
mod pools;
mod problem;
mod programs;
mod query;
mod refusals;
mod reload;
mod requests;
mod roster;
mod routes;
mod segment;
mod server;
mod session_stats;
mod sessions;
mod socket;
mod span;
mod sse;
mod status;
mod stream;
mod tenancy;
mod terms;
mod time;
mod transitions;
mod upload;
mod version;
mod workers;

pub use problem::Problem;
pub use reload::{Changed, PoolChange, ReloadProblem, ReloadReport};
pub use roster::Pools;
pub use server::{BindError, Server, ServerSettings, Stopper};
