//! How many requests a worker runs at a time, and by what means.

use super::declared::Choice;
use super::section::Section;

/// The most requests that one worker may hold.
const CAPACITY_MAX: u32 = 10_000;

/// Threads of a worker where nothing is set.
pub const DEFAULT_THREADS: u32 = 8;

/// Requests on a worker's event loop where nothing is set.
pub const DEFAULT_CONCURRENCY: u32 = 64;

/// What runs requests side by side inside one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Nothing: one request at a time.
    Process,
    /// The SDK's threads.
    Thread,
    /// An event loop.
    Async,
}

impl Choice for Profile {
    const WORDS: &'static [(&'static str, Self)] =
        &[("process", Self::Process), ("thread", Self::Thread), ("async", Self::Async)];
}

/// Whose word counts for the number of requests that a worker takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityFrom {
    Pool,
    /// What it announces when it is ready.
    Worker,
    /// The smaller of both.
    Min,
}

impl Choice for CapacityFrom {
    const WORDS: &'static [(&'static str, Self)] =
        &[("pool", Self::Pool), ("worker", Self::Worker), ("min", Self::Min)];
}

/// What happens with a function in threads that does not say that it may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadSafety {
    Off,
    Warn,
    Refuse,
}

impl Choice for ThreadSafety {
    const WORDS: &'static [(&'static str, Self)] =
        &[("off", Self::Off), ("warn", Self::Warn), ("refuse", Self::Refuse)];
}

/// How a pool's workers share their process among requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    pub profile: Profile,
    /// Requests at a time that the pool wants of a worker.
    pub capacity: u32,
    pub capacity_from: CapacityFrom,
    pub thread_safety: ThreadSafety,
}

impl Default for Sharing {
    fn default() -> Self {
        Self {
            profile: Profile::Process,
            capacity: 1,
            capacity_from: CapacityFrom::Min,
            thread_safety: ThreadSafety::Warn,
        }
    }
}

impl Sharing {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let defaults = Self::default();
        let profile = section
            .key(
                "profile",
                "how a worker runs requests: one at a time, in threads, on an event loop",
            )
            .choice(defaults.profile);
        let threads = section
            .key("threads", "requests at a time per worker, with profile `thread`")
            .count(DEFAULT_THREADS, 1..=CAPACITY_MAX);
        let concurrency = section
            .key("concurrency", "requests at a time per worker, with profile `async`")
            .count(DEFAULT_CONCURRENCY, 1..=CAPACITY_MAX);
        let capacity_from = section
            .key(
                "capacity",
                "whose number counts: the pool's, what the worker announces, the smaller",
            )
            .choice(defaults.capacity_from);
        let thread_safety = section
            .key("thread_safety_checks", "functions in threads that are not declared thread-safe")
            .choice(defaults.thread_safety);
        only_with(section, "threads", Profile::Thread, profile);
        only_with(section, "thread_safety_checks", Profile::Thread, profile);
        only_with(section, "concurrency", Profile::Async, profile);
        let capacity = match profile {
            Profile::Process => 1,
            Profile::Thread => threads,
            Profile::Async => concurrency,
        };
        Self { profile, capacity, capacity_from, thread_safety }
    }
}

/// A setting of one profile beside another one: somebody expects what will not happen.
fn only_with(section: &Section<'_>, key: &str, needed: Profile, profile: Profile) {
    if profile == needed || !section.has(key) {
        return;
    }
    let (needed, profile) = (needed.word(), profile.word());
    section.blame_key(
        key,
        format!("`{key}` has no meaning with profile `{profile}`"),
        format!("add `profile = \"{needed}\"`, or remove `{key}`"),
    );
}
