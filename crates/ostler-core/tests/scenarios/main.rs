//! Scenarios of one pool, told through its public interface only: facts go in, orders come out.
//! One file per noun; `tables` has what every event does in every state; `support` is the world
//! around the pool.

mod admission;
mod affinity;
mod capacity;
mod checkups;
mod circles;
mod control;
mod evacuation;
mod excuses;
mod exhaustion;
mod fairness;
mod health;
mod keyed;
mod leases;
mod nesting;
mod phases;
mod prefetch;
mod processes;
mod quarantine;
mod races;
mod records;
mod recovery;
mod reload;
mod replace;
mod requests;
mod restored;
mod retirement;
mod retry;
mod scaling;
mod shutdown;
mod status;
mod strategies;
mod support;
mod tables;
mod taint;
mod targets;
