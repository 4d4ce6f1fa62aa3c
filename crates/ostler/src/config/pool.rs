//! `[pools.NAME]`: one pool, its program, and how it behaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::binding::Binding;
use super::bounds::{Backoff, Queue, Request, Restart, Start};
use super::declared::Choice;
use super::environment::{cwd, env, env_pass};
use super::health::Health;
use super::name::PoolName;
use super::profile::Sharing;
use super::program::Program;
use super::retire::Retire;
use super::scaling::Scaling;
use super::section::Section;
use super::supervision::Supervision;
use super::{DAY, MINUTE, SECOND};

/// The most workers that one pool may have.
pub const SIZE_MAX: u32 = 1_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    pub name: PoolName,
    pub program: Program,
    /// The most workers that there are at a time: always, unless `scaling.min` is less.
    pub size: u32,
    pub scaling: Scaling,
    pub sharing: Sharing,
    /// Variables that the workers get.
    pub env: BTreeMap<String, String>,
    /// Variables of the server that the workers get too.
    pub env_pass: Vec<String>,
    /// Where the workers run, absolute.
    pub cwd: PathBuf,
    pub containment: Containment,
    pub socket: WorkerSocket,
    pub start: Start,
    pub strategy: Strategy,
    pub binding: Binding,
    pub queue: Queue,
    pub request: Request,
    pub on_disconnect: OnDisconnect,
    pub health: Health,
    pub retire: Retire,
    pub stop_grace: Duration,
    pub restart: Restart,
    pub backoff: Backoff,
    /// How long a request is refused that killed two processes; zero: never.
    pub quarantine: Duration,
    pub supervision: Supervision,
}

/// How a worker's descendants are kept from outliving it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    Shim,
    Namespace,
}

impl Choice for Containment {
    const WORDS: &'static [(&'static str, Self)] =
        &[("shim", Self::Shim), ("namespace", Self::Namespace)];
}

/// How a worker gets its stream to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerSocket {
    /// A descriptor that it is born with.
    Inherited,
    /// A unix socket that it connects to.
    Named,
}

impl Choice for WorkerSocket {
    const WORDS: &'static [(&'static str, Self)] =
        &[("inherited", Self::Inherited), ("named", Self::Named)];
}

/// Which of the workers that accept work gets the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    LeastLoaded,
    RoundRobin,
    /// The one that has rested longest.
    Lru,
}

impl Choice for Strategy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("least_loaded", Self::LeastLoaded),
        ("round_robin", Self::RoundRobin),
        ("lru", Self::Lru),
    ];
}

/// What becomes of a request whose caller has gone away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    Cancel,
    Continue,
}

impl Choice for OnDisconnect {
    const WORDS: &'static [(&'static str, Self)] =
        &[("cancel", Self::Cancel), ("continue", Self::Continue)];
}

impl Pool {
    /// A pool with the default of every setting.
    pub fn defaults(name: PoolName, program: Program, cwd: &Path, cores: u32) -> Self {
        let size = cores.clamp(1, SIZE_MAX);
        Self {
            name,
            program,
            size,
            scaling: Scaling::of_min(size),
            sharing: Sharing::default(),
            env: BTreeMap::new(),
            env_pass: Vec::new(),
            cwd: cwd.to_owned(),
            containment: Containment::Shim,
            socket: WorkerSocket::Inherited,
            start: Start::of_size(size),
            strategy: Strategy::LeastLoaded,
            binding: Binding::default(),
            queue: Queue::default(),
            request: Request::default(),
            on_disconnect: OnDisconnect::Cancel,
            health: Health::default(),
            retire: Retire::default(),
            stop_grace: 2 * SECOND,
            restart: Restart::of_size(size),
            backoff: Backoff::default(),
            quarantine: MINUTE,
            supervision: Supervision::default(),
        }
    }

    /// The same pool with another number of workers, and what follows from that number. Where each
    /// key has its worker, it is how many there may be.
    pub fn with_size(mut self, size: u32) -> Self {
        if self.restart.max == Restart::of_size(self.size).max {
            self.restart.max = Restart::of_size(size).max;
        }
        self.size = size;
        self.scaling.min = if self.binding.keyed.is_some() { 0 } else { size };
        self
    }

    /// The same program as a pool of one worker that is there from the start and belongs to no key.
    pub fn of_one_worker(mut self) -> Self {
        self.binding.keyed = None;
        self.with_size(1)
    }

    /// Reads a pool. `None` when there is no program to run; that has been noted then.
    ///
    /// The order here is the order of the reference.
    pub(super) fn read(section: &Section<'_>, name: PoolName, max_body: u64) -> Option<Self> {
        let around = section.reading().around;
        let program = Program::read(section);
        let defaults = Self::defaults(name, Program::placeholder(), around.root, around.cores);
        let (size, scaling) = Scaling::read(section, defaults.size);
        let pool = Self {
            size,
            scaling,
            sharing: Sharing::read(section),
            env: env(section),
            env_pass: env_pass(section),
            cwd: cwd(section),
            containment: section
                .key("containment", "what ends a worker's descendants: its shim, a PID namespace")
                .choice(defaults.containment),
            socket: section
                .key("socket", "how workers get their stream: born with it, connecting by name")
                .choice(defaults.socket),
            start: Start::read(section, defaults.start),
            strategy: section
                .key("strategy", "which of the free workers gets the next request")
                .choice(defaults.strategy),
            binding: Binding::read(section),
            queue: Queue::read(section, defaults.queue),
            request: Request::read(section, defaults.request, max_body),
            on_disconnect: section
                .key("on_disconnect", "what becomes of a request whose caller goes away")
                .choice(defaults.on_disconnect),
            retire: Retire::read(section),
            stop_grace: section
                .key("stop_grace", "between asking, SIGTERM and SIGKILL")
                .duration(defaults.stop_grace, Duration::ZERO..=10 * MINUTE),
            restart: Restart::read(section, size),
            backoff: Backoff::read(section, defaults.backoff),
            quarantine: section
                .key(
                    "quarantine",
                    "how long a request is refused that killed two workers; 0: never",
                )
                .duration(defaults.quarantine, Duration::ZERO..=DAY),
            supervision: Supervision::read(section),
            health: Health::read(section),
            ..defaults
        };
        program.map(|program| Self { program, ..pool })
    }
}
