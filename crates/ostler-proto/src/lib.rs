//! The worker protocol: bytes to typed messages and back.
//!
//! Two wires carry the same messages: newline-delimited JSON, which any language can speak, and
//! binary frames, in which bodies are opaque bytes. This crate is separate so that the server, the
//! conformance tester and a worker written in Rust share one reading of `PROTOCOL.md`. It knows
//! nothing of sockets, clocks, pools or which ids are in flight: bytes come in through
//! [`Decoder::space`] or [`Decoder::push`], bytes go out through [`Encoder`].
//!
//! ```
//! use bytes::BytesMut;
//! use ostler_proto::{
//!     Body, Decoder, Encoder, FromWorker, Function, Limits, Query, ToWorker, Wire,
//! };
//!
//! let mut decoder = Decoder::opening(Limits::default());
//! decoder.push(b"{\"type\":\"ready\",\"wire\":\"binary\"}\n");
//! let Some(FromWorker::Ready(ready)) = decoder.next()? else { panic!() };
//! assert_eq!((ready.wire, decoder.wire()), (Wire::Binary, Wire::Binary));
//!
//! let encoder = Encoder::new(ready.wire, Limits::default());
//! let query = Query::new(1, Function::Index(0), Body::json(r#"{"name":"Ada"}"#));
//! let mut head = BytesMut::new();
//! let tail = encoder.encode_head(&ToWorker::Query(query), &mut head)?;
//! // write `head`, then `tail.body`, then `tail.end`: the body was not copied.
//! assert_eq!(head.len(), 24);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod base64;
mod body;
mod decoder;
mod encoder;
pub mod env;
mod frame;
mod from_worker;
mod inbox;
mod json;
mod kind;
mod line;
mod meta;
mod parts;
mod ready;
mod report;
mod to_worker;
mod violation;
mod wire;

pub use body::{Body, Encoding};
pub use decoder::Decoder;
pub use encoder::{EncodeError, Encoder, Tail};
pub use from_worker::{Call, FromWorker};
pub use json::{InvalidJson, JsonText, check_json};
pub use parts::Message;
pub use ready::{FunctionSpec, Ready};
pub use report::{HealthReport, Log, LogLevel, Metric, WorkerError};
pub use to_worker::{Context, Credit, Function, JobPart, Query, ToWorker};
pub use violation::Violation;
pub use wire::{Limits, PROTOCOL_VERSION, Wire};
