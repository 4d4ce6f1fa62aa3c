//! Bounds of the operating system that a server may run into.

use rustix::process::{Resource, getrlimit};

use super::Check;
use crate::config::Config;

/// Descriptors of the server itself, and room for connections.
const DESCRIPTORS_BASE: u64 = 256;

/// Descriptors per worker: its streams, its output pipes, its process.
const DESCRIPTORS_PER_WORKER: u64 = 8;

pub(super) fn checks(config: Option<&Config>) -> Vec<Check> {
    let workers = match config {
        Some(config) => config.pools.iter().map(|pool| u64::from(pool.size)).sum(),
        None => u64::from(crate::config::cores()),
    };
    vec![descriptors(
        getrlimit(Resource::Nofile).current,
        DESCRIPTORS_BASE + DESCRIPTORS_PER_WORKER * workers,
    )]
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
    fn too_few_descriptors_are_a_problem_and_few_a_warning() {
        let verdict = |limit| descriptors(limit, 300).verdict;
        assert_eq!(verdict(Some(299)), Verdict::Problem);
        assert_eq!(verdict(Some(300)), Verdict::Warning);
        assert_eq!(verdict(Some(1_024)), Verdict::Ok);
        assert_eq!(verdict(None), Verdict::Ok);
    }
}
