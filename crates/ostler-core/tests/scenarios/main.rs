//! Scenarios of one pool, told through its public interface only: facts go in, orders come out.
//! One file per noun; `tables` has what every event does in every state; `support` is the world
//! around the pool.

mod admission;
mod capacity;
mod checkups;
mod circles;
mod excuses;
mod exhaustion;
mod fairness;
mod health;
mod leases;
mod nesting;
mod phases;
mod prefetch;
mod processes;
mod quarantine;
mod records;
mod recovery;
mod replace;
mod requests;
mod retry;
mod shutdown;
mod status;
mod strategies;
mod support;
mod tables;
mod taint;
mod targets;
