//! One session as the store keeps it: what is durable and only the writer changes (`Kept`), and what
//! is written late and changes with every use (`Seen`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use uuid::Uuid;

use crate::clock::{Millis, timestamp};
use crate::content::Content;
use crate::session::{Program, ProgramInfo, Session};

/// Measured with `examples/sessions.rs`: what the indexes and allocations of a session take beside
/// its texts and bytes.
const SESSION_OVERHEAD: u64 = 400;
/// The same of a program, and of a saved state.
const CONTENT_OVERHEAD: u64 = 200;

pub(crate) type Programs = BTreeMap<Arc<str>, Arc<Program>>;

/// Never changed once others can see it: a change makes another.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub number: u64,
    pub id: Arc<str>,
    pub version: u64,
    pub metadata: Arc<RawValue>,
    pub created: Millis,
    pub ttl: Millis,
    pub expires: Option<Millis>,
    pub programs: Programs,
    /// What workers remembered of it, by pool.
    pub saved: BTreeMap<Arc<str>, Arc<Content>>,
    /// The pools where it is bound under a strict mode, each with the run of the server that did it.
    pub strict: BTreeMap<Arc<str>, Uuid>,
}

#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub accessed: Millis,
    pub worker: Option<Arc<str>>,
}

impl Kept {
    /// The first moment at which it is gone.
    pub fn gone_at(&self, accessed: Millis) -> Millis {
        let idle = accessed.saturating_add(self.ttl);
        self.expires.map_or(idle, |at| at.min(idle))
    }

    /// What it counts towards the memory that sessions may have.
    pub fn size(&self) -> u64 {
        let programs: u64 = self.programs.iter().map(|(name, p)| program_size(name, p)).sum();
        let saved = self
            .saved
            .iter()
            .map(|(pool, saved)| CONTENT_OVERHEAD + pool.len() as u64 + saved.size());
        let texts = self.id.len() + self.metadata.get().len();
        SESSION_OVERHEAD + texts as u64 + programs + saved.sum::<u64>()
    }

    pub fn program_bytes(&self) -> u64 {
        self.programs.values().map(|program| program.content.bytes.len() as u64).sum()
    }

    pub fn shown(&self, seen: &Seen) -> Session {
        Session {
            number: self.number,
            id: Arc::clone(&self.id),
            metadata: Arc::clone(&self.metadata),
            programs: self.programs.iter().map(|(name, program)| info(name, program)).collect(),
            created_at: timestamp(self.created),
            last_accessed: timestamp(seen.accessed),
            ttl: Duration::from_millis(self.ttl.unsigned_abs()),
            expires_at: self.expires.map(timestamp),
            last_worker: seen.worker.clone(),
            version: self.version,
            bytes: self.size(),
            saved: !self.saved.is_empty(),
        }
    }
}

pub(crate) fn info(name: &Arc<str>, program: &Program) -> ProgramInfo {
    ProgramInfo {
        name: Arc::clone(name),
        content_type: program.content.content_type.clone(),
        bytes: program.content.bytes.len() as u64,
        version: program.version,
    }
}

fn program_size(name: &str, program: &Program) -> u64 {
    CONTENT_OVERHEAD + name.len() as u64 + program.content.size()
}
