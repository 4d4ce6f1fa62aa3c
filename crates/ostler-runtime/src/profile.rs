//! How a worker runs its handlers, and what its environment says of that.

use ostler_proto::env;

/// How many requests a worker works on at a time, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// One at a time, on the main thread. Numeric libraries are told to use one thread too.
    #[default]
    Process,
    /// Side by side, each on a thread of its own.
    Thread { threads: u32 },
    /// Side by side, as tasks of one event loop.
    Async { concurrency: u32 },
}

/// What a threaded worker does about handlers that are not declared safe for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadSafety {
    Off,
    #[default]
    Warn,
    Refuse,
}

/// One request at a time means one thread: numeric libraries must not each take all cores.
const SINGLE_THREADED: [(&str, &str); 6] = [
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("NUMEXPR_NUM_THREADS", "1"),
    ("VECLIB_MAXIMUM_THREADS", "1"),
    ("GRPC_POLL_STRATEGY", "poll"),
];

impl Profile {
    pub fn name(self) -> &'static str {
        match self {
            Profile::Process => "process",
            Profile::Thread { .. } => "thread",
            Profile::Async { .. } => "async",
        }
    }

    pub fn capacity(self) -> u32 {
        match self {
            Profile::Process => 1,
            Profile::Thread { threads } => threads,
            Profile::Async { concurrency } => concurrency,
        }
    }

    /// Defaults that the pool's own `env` overrides.
    pub(crate) fn defaults(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Profile::Process => &SINGLE_THREADED,
            Profile::Thread { .. } | Profile::Async { .. } => &[],
        }
    }

    pub(crate) fn environment(self, safety: ThreadSafety) -> [(&'static str, String); 3] {
        let safety = match safety {
            ThreadSafety::Off => "off",
            ThreadSafety::Warn => "warn",
            ThreadSafety::Refuse => "refuse",
        };
        [
            (env::PROFILE, self.name().to_owned()),
            (env::CAPACITY, self.capacity().to_string()),
            (env::THREAD_SAFETY, safety.to_owned()),
        ]
    }
}
