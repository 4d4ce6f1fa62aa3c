//! HTTP in front of the pools: requests in, problems out.
//!
//! One route is fast, `call.rs`; the others go through a router. Nothing here decides anything
//! about workers.

#![forbid(unsafe_code)]

mod call;
mod payload;
mod problem;
mod routes;
mod server;
mod stats;
mod stream;

pub use problem::Problem;
pub use server::{BindError, Server, ServerSettings, Stopper};
