//! HTTP in front of the pools: requests in, problems out.
//!
//! One route is fast, `call.rs`; the others go through a router. Nothing here decides anything
//! about workers.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod call;
mod docs;
mod events;
mod exposition;
mod list;
mod listed;
mod logs;
mod metrics;
mod openapi;
mod payload;
mod pools;
mod problem;
mod query;
mod requests;
mod routes;
mod segment;
mod server;
mod sse;
mod status;
mod stream;
mod time;
mod transitions;
mod workers;

pub use problem::Problem;
pub use server::{BindError, Server, ServerSettings, Stopper};
