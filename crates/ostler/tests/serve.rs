//! The built server with real workers, as its clients meet it.

#[path = "serve/calls.rs"]
mod calls;
#[path = "serve/cancelling.rs"]
mod cancelling;
#[path = "serve/ending.rs"]
mod ending;
#[path = "serve/errors.rs"]
mod errors;
#[path = "serve/http.rs"]
mod http;
#[path = "serve/leases.rs"]
mod leases;
#[path = "serve/limits.rs"]
mod limits;
#[path = "serve/observing.rs"]
mod observing;
#[path = "serve/operator.rs"]
mod operator;
#[path = "serve/pools_under_control.rs"]
mod pools_under_control;
#[path = "serve/queue.rs"]
mod queue;
#[path = "serve/readme.rs"]
mod readme;
#[path = "serve/server.rs"]
mod server;
#[path = "serve/sessions.rs"]
mod sessions;
#[path = "serve/sse.rs"]
mod sse;
#[path = "serve/streams.rs"]
mod streams;
