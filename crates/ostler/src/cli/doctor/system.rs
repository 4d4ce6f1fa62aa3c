//! Bounds of the operating system that a server may run into.

use rustix::process::{Resource, geteuid, getrlimit};

use super::Check;
use crate::config::{Config, Profile};

/// Descriptors of the server itself, and room for connections.
const DESCRIPTORS_BASE: u64 = 256;

/// Descriptors per worker: its streams, its output pipes, its process.
const DESCRIPTORS_PER_WORKER: u64 = 8;

/// Processes and threads of the server itself, and of a pool: its root shim and its fork server.
const TASKS_BASE: u64 = 64;
const TASKS_PER_POOL: u64 = 2;

/// Beside the threads for its requests: the shim, and the worker's own few threads.
const TASKS_PER_WORKER: u64 = 4;

pub(super) fn checks(config: Option<&Config>) -> Vec<Check> {
    let workers = match config {
        Some(config) => config.pools.iter().map(|pool| u64::from(pool.size)).sum(),
        None => u64::from(crate::config::cores()),
    };
    vec![
        descriptors(
            getrlimit(Resource::Nofile).current,
            DESCRIPTORS_BASE + DESCRIPTORS_PER_WORKER * workers,
        ),
        tasks(task_limit(), tasks_needed(config, workers)),
    ]
}

/// The system counts the threads of a user as processes; the limit does not bind root.
fn task_limit() -> Option<u64> {
    getrlimit(Resource::Nproc).current.filter(|_| !geteuid().is_root())
}

fn tasks_needed(config: Option<&Config>, workers: u64) -> u64 {
    let pools = config.map_or(&[][..], |config| &config.pools);
    let threads = pools.iter().filter(|pool| pool.sharing.profile == Profile::Thread);
    let threads = threads.map(|pool| u64::from(pool.size) * u64::from(pool.sharing.capacity));
    let fixed = TASKS_BASE + TASKS_PER_POOL * pools.len() as u64 + TASKS_PER_WORKER * workers;
    fixed + threads.sum::<u64>()
}

/// `None` is no limit.
fn tasks(limit: Option<u64>, needed: u64) -> Check {
    let name = "processes";
    match limit {
        None => Check::ok(name, "no limit"),
        Some(limit) if limit < needed => Check::problem(
            name,
            format!("the limit is {limit}, these pools need about {needed} with their threads"),
            "raise it with ulimit -u, or TasksMax= in the systemd unit, or lower `size` or `threads`",
        ),
        Some(limit) => Check::ok(name, format!("the limit is {limit}")),
    }
}

/// `None` is no limit.
fn descriptors(limit: Option<u64>, needed: u64) -> Check {
    let name = "open files";
    match limit {
        None => Check::ok(name, "no limit"),
        Some(limit) if limit < needed => Check::problem(
            name,
            format!("the limit is {limit}, these pools need about {needed}"),
            "raise it with ulimit -n, or LimitNOFILE= in the systemd unit",
        ),
        Some(limit) if limit < 1_024 => Check::warning(
            name,
            format!("the limit is {limit}: few connections at a time"),
            "raise it with ulimit -n, or LimitNOFILE= in the systemd unit",
        ),
        Some(limit) => Check::ok(name, format!("the limit is {limit}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn threads_count_as_processes() {
        let mut config = Config::of_python_file("w.py".as_ref(), "/srv".as_ref(), 3);
        let without = tasks_needed(Some(&config), 3);
        config.pools[0].sharing.profile = Profile::Thread;
        config.pools[0].sharing.capacity = 100;
        let needed = tasks_needed(Some(&config), 3);
        assert_eq!(needed, without + 300);
        assert_eq!(tasks(Some(needed - 1), needed).verdict, Verdict::Problem);
        assert_eq!(tasks(Some(needed), needed).verdict, Verdict::Ok);
        assert_eq!(tasks(None, needed).verdict, Verdict::Ok);
    }

    #[test]
    fn too_few_descriptors_are_a_problem_and_few_a_warning() {
        let verdict = |limit| descriptors(limit, 300).verdict;
        assert_eq!(verdict(Some(299)), Verdict::Problem);
        assert_eq!(verdict(Some(300)), Verdict::Warning);
        assert_eq!(verdict(Some(1_024)), Verdict::Ok);
        assert_eq!(verdict(None), Verdict::Ok);
    }
}
