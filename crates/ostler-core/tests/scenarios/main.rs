//! Scenarios of one pool, told through its public interface only: facts go in, orders come out.
//! One file per noun; `support` is the world around the pool.

mod health;
mod leases;
mod prefetch;
mod processes;
mod records;
mod recovery;
mod replace;
mod requests;
mod retry;
mod shutdown;
mod status;
mod support;
mod targets;
