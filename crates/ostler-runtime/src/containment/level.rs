//! How well processes are contained, as asked for and as it really is.

use std::fmt;

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
    pub(super) fn new(
        wanted: Containment,
        granted: Option<Namespaces>,
        refusal: Option<std::io::Error>,
        cgroup: Result<(), String>,
    ) -> Level {
        let rung = match (granted, &cgroup) {
            (Some(_), _) => Rung::C3,
            (None, Ok(())) => Rung::C2,
            (None, Err(_)) => Rung::C1,
        };
        Level {
            rung,
            cgroup: cgroup.is_ok(),
            namespaces: granted,
            reason: reason(wanted, granted, refusal, cgroup),
        }
    }
}

fn reason(
    wanted: Containment,
    granted: Option<Namespaces>,
    refusal: Option<std::io::Error>,
    cgroup: Result<(), String>,
) -> String {
    let cgroup = match cgroup {
        Ok(()) => "a cgroup per worker".to_owned(),
        Err(why) => format!("no cgroup per worker: {why}"),
    };
    match (wanted, granted) {
        (Containment::Shim, _) => format!("a shim per worker, {cgroup}"),
        (Containment::Namespace, None) => {
            let why = refusal.map_or_else(|| "unknown reason".to_owned(), |e| e.to_string());
            format!("PID namespaces are refused here ({why}); a shim per worker, {cgroup}")
        }
        (Containment::Namespace, Some(namespaces)) => {
            let user = if namespaces.user { " in a user namespace" } else { "" };
            let proc = if namespaces.own_proc { "its own" } else { "the host's" };
            format!("a PID namespace per worker{user} with {proc} /proc, {cgroup}")
        }
    }
}
