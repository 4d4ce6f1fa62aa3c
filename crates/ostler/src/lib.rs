//! Pools of warm worker processes: the library and the command.
//!
//! A program that embeds a pool becomes its shims too, so its first line is
//! [`containment::enter_if_asked`]:
//!
//! ```no_run
//! use ostler::{Body, Call, Pool, PoolSpec, Program, Settings, containment};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     containment::enter_if_asked();
//!     tokio::runtime::Runtime::new()?.block_on(async {
//!         let program = Program::Python { file: "hello.py".into(), interpreter: "python3".into() };
//!         let pool = Pool::start(PoolSpec::new("hello", program, Settings::of_size(2))).await?;
//!         let call = Call {
//!             function: "greet".into(),
//!             body: Body::json(r#"{"name": "Ada"}"#),
//!             ..Call::default()
//!         };
//!         let answer = pool.call(call).result().await?;
//!         println!("{}", String::from_utf8_lossy(&answer.body.bytes));
//!         Ok(())
//!     })
//! }
//! ```
//!
//! Dropping the last [`Pool`] handle ends every process; dropping a [`Running`] call cancels it.

pub mod cli;
pub mod config;
mod conform;
mod daemon;
mod spec;
mod text;

pub use ostler_core::Settings;
pub use ostler_runtime::{
    Answered, Body, Call, CallError, Failure, Item, Pool, PoolInfo, PoolSpec, Program, Refused,
    Running, StartError, containment,
};
