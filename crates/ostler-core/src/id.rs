//! Names of things. A number is given once and never again, so that a late message can be told
//! from a current one by comparing two ids.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    };
}

id!(
    /// One place in a pool. Outlives its processes. Given by the core.
    WorkerId
);
id!(
    /// One call. Given by the shell, rising.
    RequestId
);
id!(
    /// A holding of places on one or more workers. Given by the shell.
    LeaseId
);
id!(
    /// A caller's named state. Given by the shell, never again within a run.
    SessionId
);
id!(
    /// What a worker of a keyed pool belongs to. Given by the shell.
    KeyId
);
id!(
    /// Something a person or a program asked of the supervisor. Given by the shell.
    OrderId
);

/// What a worker runs on: the n-th incarnation of that worker. Every message about a process
/// carries this, so that an older incarnation can never be taken for the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    pub worker: WorkerId,
    pub generation: u32,
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.worker.0, self.generation)
    }
}

/// A durable change: the `seq`-th of its worker. The same id always means the same change, so
/// that asking the store twice is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    pub worker: WorkerId,
    pub seq: u64,
}

/// Ids are small integers that nobody outside chooses: one multiplication spreads them enough,
/// and the order of a map does not change from run to run.
#[derive(Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;
