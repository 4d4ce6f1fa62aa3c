//! CPU time of processes, as /proc counts it: by ticks of 10 ms on most machines.

use std::collections::BTreeMap;
use std::time::Duration;

/// CPU time spent so far, by those who take part in a call.
#[derive(Debug)]
pub(super) struct Snapshot {
    server: Option<Duration>,
    /// By process: one that is replaced meanwhile would be counted from nothing.
    workers: BTreeMap<u64, Duration>,
    bench: Option<Duration>,
}

/// What was spent between two snapshots. `None`: it cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spent {
    pub server: Option<Duration>,
    pub workers: Option<Duration>,
    pub bench: Option<Duration>,
}

impl Snapshot {
    /// `local`: the processes are of this machine.
    pub fn take(local: bool, server: Option<u32>, workers: &[u64]) -> Self {
        let of = |pid: u64| local.then(|| cpu_time(pid)).flatten();
        Self {
            server: server.and_then(|pid| of(pid.into())),
            workers: workers.iter().filter_map(|&pid| Some((pid, of(pid)?))).collect(),
            bench: cpu_time(std::process::id().into()),
        }
    }

    pub fn spent_until(&self, later: &Self) -> Spent {
        let between = |from: Option<Duration>, to: Option<Duration>| to?.checked_sub(from?);
        let same = self.workers.keys().eq(later.workers.keys()) && !self.workers.is_empty();
        let sum = |snapshot: &Self| same.then(|| snapshot.workers.values().sum());
        Spent {
            server: between(self.server, later.server),
            workers: between(sum(self), sum(later)),
            bench: between(self.bench, later.bench),
        }
    }
}

/// In user and kernel mode, of all its threads.
fn cpu_time(pid: u64) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks(&stat)?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The name between the brackets may hold anything, so fields are counted from the last one.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 40 2 9 9 20 0 1 0 5";
        assert_eq!(ticks(stat), Some(42));
        assert!(cpu_time(std::process::id().into()).is_some());
    }

    #[test]
    fn workers_that_were_replaced_leave_their_sum_unknown() {
        let snapshot = |pids: &[u64], seconds| Snapshot {
            server: Some(Duration::from_secs(seconds)),
            workers: pids.iter().map(|&pid| (pid, Duration::from_secs(seconds))).collect(),
            bench: None,
        };
        let spent = snapshot(&[1, 2], 1).spent_until(&snapshot(&[1, 2], 4));
        let second = Duration::from_secs(1);
        let expected = Spent { server: Some(3 * second), workers: Some(6 * second), bench: None };
        assert_eq!(spent, expected);
        assert_eq!(snapshot(&[1, 2], 1).spent_until(&snapshot(&[1, 3], 4)).workers, None);
        assert_eq!(snapshot(&[], 1).spent_until(&snapshot(&[], 4)).workers, None);
    }
}
