//! `[pools.NAME]`: one pool, its program, and its bounds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::name::PoolName;
use super::program::Program;
use super::section::Section;
use super::server::BODY_CEILING;
use super::substitute::is_name;
use super::{DAY, HOUR, KIB, MIB, MILLISECOND, MINUTE, SECOND, Surroundings};

/// The most workers that one pool may have.
pub const SIZE_MAX: u32 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub name: PoolName,
    pub program: Program,
    pub size: u32,
    /// Variables that the workers get.
    pub env: BTreeMap<String, String>,
    /// Variables of the server that the workers get too.
    pub env_pass: Vec<String>,
    /// Where the workers run, absolute.
    pub cwd: PathBuf,
    pub containment: Containment,
    pub socket: WorkerSocket,
    pub start: Start,
    pub queue: Queue,
    pub request: Request,
    pub stop_grace: Duration,
    pub restart: Restart,
    pub backoff: Backoff,
}

/// How a worker's descendants are kept from outliving it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    Shim,
    Namespace,
}

/// How a worker gets its stream to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerSocket {
    /// A descriptor that it is born with.
    Inherited,
    /// A unix socket that it connects to.
    Named,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    pub timeout: Duration,
    pub batch: u32,
    pub batch_delay: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// 0: no request waits.
    pub max: u32,
    pub timeout: Duration,
    /// Requests written to a busy worker ahead of time.
    pub prefetch: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub timeout: Duration,
    pub cancel_grace: Duration,
    pub max_body: u64,
    pub max_result: u64,
    pub max_line: u64,
}

/// The breaker: more than `max` unplanned restarts within `period` open it for `cooldown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    pub max: u32,
    pub period: Duration,
    pub cooldown: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub min: Duration,
    pub max: Duration,
}

impl Pool {
    /// A pool with the default of every setting.
    pub fn defaults(name: PoolName, program: Program, cwd: &Path, cores: u32) -> Self {
        let size = cores.clamp(1, SIZE_MAX);
        Self {
            name,
            program,
            size,
            env: BTreeMap::new(),
            env_pass: Vec::new(),
            cwd: cwd.to_owned(),
            containment: Containment::Shim,
            socket: WorkerSocket::Inherited,
            start: Start { timeout: 30 * SECOND, batch: size, batch_delay: Duration::ZERO },
            queue: Queue { max: 1_000, timeout: 10 * SECOND, prefetch: 1 },
            request: Request {
                timeout: MINUTE,
                cancel_grace: 5 * SECOND,
                max_body: 64 * MIB,
                max_result: 64 * MIB,
                max_line: 16 * MIB,
            },
            stop_grace: 2 * SECOND,
            restart: Restart { max: restart_max(size), period: 30 * SECOND, cooldown: 30 * SECOND },
            backoff: Backoff { min: 200 * MILLISECOND, max: 30 * SECOND },
        }
    }

    /// The same pool with another number of workers, and what follows from that number.
    pub fn with_size(mut self, size: u32) -> Self {
        if self.restart.max == restart_max(self.size) {
            self.restart.max = restart_max(size);
        }
        self.size = size;
        self
    }

    /// Reads a pool. `None` when there is no program to run; that has been noted then.
    pub(super) fn read(section: Section<'_>, name: PoolName, max_body: u64) -> Option<Self> {
        let around = section.reading().around;
        let program = Program::read(&section);
        let defaults = Self::defaults(name, Program::placeholder(), around.root, around.cores);
        let size = section.count("size", defaults.size, 1..=SIZE_MAX);
        let pool = Self {
            size,
            env: env(&section),
            env_pass: env_pass(&section),
            cwd: cwd(&section, around),
            containment: section.choice(
                "containment",
                defaults.containment,
                &[("shim", Containment::Shim), ("namespace", Containment::Namespace)],
            ),
            socket: section.choice(
                "socket",
                defaults.socket,
                &[("inherited", WorkerSocket::Inherited), ("named", WorkerSocket::Named)],
            ),
            start: Start::read(&section, defaults.start),
            queue: Queue::read(&section, defaults.queue),
            request: Request::read(&section, defaults.request, max_body),
            stop_grace: section.duration(
                "stop_grace",
                defaults.stop_grace,
                Duration::ZERO..=10 * MINUTE,
            ),
            restart: Restart::read(&section, defaults.restart, size),
            backoff: Backoff::read(&section, defaults.backoff),
            ..defaults
        };
        section.finish();
        program.map(|program| Self { program, ..pool })
    }
}

impl Start {
    fn read(section: &Section<'_>, defaults: Self) -> Self {
        Self {
            timeout: section.duration("start_timeout", defaults.timeout, 100 * MILLISECOND..=HOUR),
            batch: section.count("start_batch", defaults.batch, 1..=SIZE_MAX),
            batch_delay: section.duration(
                "start_batch_delay",
                defaults.batch_delay,
                Duration::ZERO..=MINUTE,
            ),
        }
    }
}

impl Queue {
    fn read(section: &Section<'_>, defaults: Self) -> Self {
        Self {
            max: section.count("queue_max", defaults.max, 0..=1_000_000),
            timeout: section.duration("queue_timeout", defaults.timeout, MILLISECOND..=DAY),
            prefetch: section.count("prefetch", defaults.prefetch, 0..=64),
        }
    }
}

impl Request {
    fn read(section: &Section<'_>, defaults: Self, server_max_body: u64) -> Self {
        let max_body = section.size("max_body", server_max_body, KIB..=BODY_CEILING);
        if max_body > server_max_body {
            section.reading().note(
                section.span_of("max_body"),
                "`max_body` is larger than the server's",
                Some("raise `max_body` in [server] as well".to_owned()),
            );
        }
        Self {
            timeout: section.duration("request_timeout", defaults.timeout, MILLISECOND..=7 * DAY),
            cancel_grace: section.duration(
                "cancel_grace",
                defaults.cancel_grace,
                Duration::ZERO..=10 * MINUTE,
            ),
            max_body,
            max_result: section.size("max_result", defaults.max_result, KIB..=BODY_CEILING),
            max_line: section.size("max_line", defaults.max_line, KIB..=BODY_CEILING),
        }
    }
}

impl Restart {
    fn read(section: &Section<'_>, defaults: Self, size: u32) -> Self {
        Self {
            max: section.count("restart_max", restart_max(size), 1..=10_000),
            period: section.duration("restart_period", defaults.period, SECOND..=HOUR),
            cooldown: section.duration("restart_cooldown", defaults.cooldown, SECOND..=HOUR),
        }
    }
}

impl Backoff {
    fn read(section: &Section<'_>, defaults: Self) -> Self {
        let range = MILLISECOND..=HOUR;
        let min = section.duration("backoff_min", defaults.min, range.clone());
        let max = section.duration("backoff_max", defaults.max.max(min), range);
        if min > max {
            section.reading().note(
                section.span_of("backoff_max"),
                "`backoff_max` is less than `backoff_min`",
                None,
            );
        }
        Self { min, max }
    }
}

/// Twice the pool may die and come back; small pools get a little more.
fn restart_max(size: u32) -> u32 {
    (2 * size).max(5)
}

fn cwd(section: &Section<'_>, around: &Surroundings<'_>) -> PathBuf {
    let Some(text) = section.string("cwd") else {
        return around.root.to_owned();
    };
    let path = around.root.join(text.get_ref());
    if !(around.exists)(&path) {
        section.reading().note(
            text.span(),
            format!("no such directory: {}", path.display()),
            Some("paths are relative to the configuration's directory".to_owned()),
        );
    }
    path
}

/// Names that the server sets itself; a pool that set them would break its workers.
const RESERVED: &str = "OSTLER_";

fn env(section: &Section<'_>) -> BTreeMap<String, String> {
    let entries = section.string_table("env").into_iter();
    entries
        .filter(|(name, _)| usable_name(section, name))
        .filter(|(name, value)| without_zero(section, name, value))
        .map(|(name, value)| (name.into_inner(), value))
        .collect()
}

fn env_pass(section: &Section<'_>) -> Vec<String> {
    let names = section.strings("env_pass").unwrap_or_default().into_iter();
    names.filter(|name| usable_name(section, name)).map(toml::Spanned::into_inner).collect()
}

fn usable_name(section: &Section<'_>, name: &toml::Spanned<String>) -> bool {
    let text = name.get_ref();
    let (message, help) = match () {
        () if !is_name(text) => (
            format!("`{text}` is not the name of an environment variable"),
            "letters, digits and _, no digit first",
        ),
        () if text.starts_with(RESERVED) => {
            (format!("`{text}` is set by the server"), "names that begin with OSTLER_ are taken")
        }
        () => return true,
    };
    section.reading().note(name.span(), message, Some(help.to_owned()));
    false
}

fn without_zero(section: &Section<'_>, name: &toml::Spanned<String>, value: &str) -> bool {
    let fine = !value.contains('\0');
    if !fine {
        section.reading().note(
            name.span(),
            format!("the value of `{}` contains a zero byte", name.get_ref()),
            Some("no environment can hold it".to_owned()),
        );
    }
    fine
}
