//! HTTP in front of the pools: requests in, problems out.
//!
//! One route is fast, `call.rs`; the others go through a router. Nothing here decides anything
//! about workers.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod asking;
mod audit;
mod bindings;
mod call;
mod call_terms;
mod docs;
mod door;
mod errands;
mod events;
mod exposition;
mod given;
mod idempotency;
mod job_body;
mod job_events;
mod job_metrics;
mod job_order;
mod jobs;
mod key_desk;
mod key_terms;
mod keys;
mod leases;
mod list;
mod listed;
mod logs;
mod metrics;
mod openapi;
mod orders;
mod payload;
mod pools;
mod prefer;
mod problem;
mod programs;
mod query;
mod queues;
mod refusals;
mod reload;
mod remade;
mod requests;
mod roster;
mod routes;
mod schedules;
mod segment;
mod server;
mod session_stats;
mod sessions;
mod socket;
mod span;
mod sse;
mod status;
mod store;
mod stream;
mod supervise;
mod tenancy;
mod terms;
mod time;
mod told;
mod transitions;
mod upload;
mod version;
mod whereabouts;
mod workers;

pub use problem::Problem;
pub use reload::{Changed, PoolChange, ReloadProblem, ReloadReport};
pub use roster::Pools;
pub use server::{BindError, Server, ServerSettings, Stopper};
