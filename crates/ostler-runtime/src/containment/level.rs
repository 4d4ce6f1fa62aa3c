//! How well processes are contained, as asked for and as it really is.

use std::fmt;
use std::io;

use super::namespace::Namespaces;

/// What a pool asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Containment {
    /// A shim per worker. User code cannot notice it.
    #[default]
    Shim,
    /// A PID namespace per worker, with its own /proc. Inside, pids differ from the host's.
    Namespace,
}

/// What is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Process groups and end-of-file only: detached grandchildren survive.
    C0,
    /// Shims: nothing survives, unless every shim above a worker is killed together with it.
    C1,
    /// Shims and a cgroup per worker.
    C2,
    /// A PID namespace per worker: nothing survives.
    C3,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The rung and why it is no higher, for `doctor` and the statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    pub rung: Rung,
    /// Is every worker also in a cgroup of its own?
    pub cgroup: bool,
    /// The kind of namespaces, at C3.
    pub namespaces: Option<Namespaces>,
    /// One sentence.
    pub reason: String,
}

impl Level {
    /// From what was asked for and what was granted, or refused with a reason.
    pub(super) fn new(
        wanted: Containment,
        namespaces: io::Result<Namespaces>,
        cgroup: Result<(), &String>,
    ) -> Level {
        let rung = match (&namespaces, cgroup) {
            (Ok(_), _) => Rung::C3,
            (Err(_), Ok(())) => Rung::C2,
            (Err(_), Err(_)) => Rung::C1,
        };
        let cgroups = match cgroup {
            Ok(()) => "a cgroup per worker".to_owned(),
            Err(why) => format!("no cgroup per worker: {why}"),
        };
        Level {
            rung,
            cgroup: cgroup.is_ok(),
            reason: format!("{}, {cgroups}", describe(wanted, &namespaces)),
            namespaces: namespaces.ok(),
        }
    }
}

fn describe(wanted: Containment, namespaces: &io::Result<Namespaces>) -> String {
    match (wanted, namespaces) {
        (Containment::Shim, _) => "a shim per worker".to_owned(),
        (Containment::Namespace, Err(why)) => {
            format!("PID namespaces are refused here ({why}), a shim per worker instead")
        }
        (Containment::Namespace, Ok(namespaces)) => {
            let user = if namespaces.user { " in a user namespace" } else { "" };
            let proc = if namespaces.own_proc { "its own" } else { "the host's" };
            format!("a PID namespace per worker{user} with {proc} /proc")
        }
    }
}
