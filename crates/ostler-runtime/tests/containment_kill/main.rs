//! `kill -9` at random instants, against workers that do all they can to survive.
//!
//! Each trial starts a server with three workers in a process of its own, kills one process of
//! the tree, and then looks from outside, without help of the code under test, whether anything
//! is left. `OSTLER_KILL_TRIALS` is the number of trials for each victim (50; 5 for a quick look),
//! `OSTLER_KILL_SEED` repeats the instants of a run.
//!
//! The program plays all parts, so it has its own `main`, which understands as much of the usual
//! test arguments as `cargo test` and `cargo nextest` need.

mod harness;
mod hostile;
mod rig;
mod tree;
mod trial;
mod truth;

use trial::{Level, Victim};

const TESTS: [harness::Test; 15] = [
    ("killing_the_server_leaves_nothing_at_c1", || trial::run(Level::C1, Victim::Server)),
    ("killing_the_server_leaves_nothing_at_c2", || trial::run(Level::C2, Victim::Server)),
    ("killing_the_server_leaves_nothing_at_c3", || trial::run(Level::C3, Victim::Server)),
    ("killing_a_worker_leaves_nothing_of_it_at_c1", || trial::run(Level::C1, Victim::Worker)),
    ("killing_a_worker_leaves_nothing_of_it_at_c2", || trial::run(Level::C2, Victim::Worker)),
    ("killing_a_worker_leaves_nothing_of_it_at_c3", || trial::run(Level::C3, Victim::Worker)),
    ("killing_a_shim_leaves_nothing_of_its_worker_at_c1", || trial::run(Level::C1, Victim::Shim)),
    ("killing_a_shim_leaves_nothing_of_its_worker_at_c2", || trial::run(Level::C2, Victim::Shim)),
    ("killing_a_shim_leaves_nothing_of_its_worker_at_c3", || trial::run(Level::C3, Victim::Shim)),
    ("workers_outlive_the_root_shim_but_not_the_server_at_c1", || {
        trial::run(Level::C1, Victim::Root)
    }),
    ("workers_outlive_the_root_shim_but_not_the_server_at_c2", || {
        trial::run(Level::C2, Victim::Root)
    }),
    ("workers_outlive_the_root_shim_but_not_the_server_at_c3", || {
        trial::run(Level::C3, Victim::Root)
    }),
    ("workers_outlive_the_fork_server_but_not_the_server_at_c1", || {
        trial::run(Level::C1, Victim::ForkServer)
    }),
    ("workers_outlive_the_fork_server_but_not_the_server_at_c2", || {
        trial::run(Level::C2, Victim::ForkServer)
    }),
    ("workers_outlive_the_fork_server_but_not_the_server_at_c3", || {
        trial::run(Level::C3, Victim::ForkServer)
    }),
];

fn main() -> std::process::ExitCode {
    ostler_runtime::containment::enter_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(rig::ROLE) => rig::main(&arguments[1..]),
        Some(hostile::ROLE) => hostile::main(&arguments[1]),
        Some(hostile::SLEEPER_ROLE) => hostile::sleep(),
        _ => harness::main(&TESTS, &arguments),
    }
}
