//! What a batch of operations would change. The operations of one batch see each other's changes here;
//! nobody else sees any of it before it is committed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use crate::clock::Millis;
use crate::disk::Row;
use crate::error::SessionError;
use crate::kept::{Kept, Seen};
use crate::live::Live;
use crate::notice::SessionNotice;
use crate::settings::SessionSettings;

/// How many expired sessions are removed at once to make room for one.
const ROOM_CHUNK: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Draft {
    changed: BTreeMap<u64, Changed>,
    /// Of the sessions that this batch made.
    ids: HashMap<Arc<str>, u64>,
    /// What would be added to the sessions and to their bytes.
    sessions: i64,
    bytes: i64,
    notices: Vec<SessionNotice>,
}

#[derive(Debug)]
struct Changed {
    /// None: it is gone.
    kept: Option<Arc<Kept>>,
    accessed: Millis,
}

impl Draft {
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.notices.is_empty()
    }

    /// What has to be written.
    pub fn rows(&self, live: &Live) -> Vec<Row> {
        let mut rows = Vec::new();
        for (number, changed) in &self.changed {
            let before = live.entry(*number);
            match (&changed.kept, before) {
                (None, None) => {}
                (None, Some(_)) => rows.push(Row::NoSession(*number)),
                (Some(kept), None) => add_whole(&mut rows, kept, &unused(changed.accessed)),
                (Some(kept), Some(entry)) => {
                    let accessed = entry.seen.accessed.max(changed.accessed);
                    let seen = Seen { accessed, worker: entry.seen.worker.clone() };
                    add_difference(&mut rows, &entry.kept, kept, seen);
                }
            }
        }
        rows
    }

    /// It is committed: others may see it, and be told.
    pub fn apply(self, live: &mut Live) -> Vec<SessionNotice> {
        // Removals first: an id may have gone from one session to the next.
        for (number, _) in self.changed.iter().filter(|(_, changed)| changed.kept.is_none()) {
            live.remove(*number);
        }
        for changed in self.changed.into_values() {
            if let Some(kept) = changed.kept {
                live.put(kept, changed.accessed);
            }
        }
        for notice in &self.notices {
            match notice {
                SessionNotice::Created { .. } => live.counts.created += 1,
                SessionNotice::Deleted { .. } => live.counts.deleted += 1,
                SessionNotice::Expired { .. } => live.counts.expired += 1,
                SessionNotice::Swept { .. } => live.counts.sweeps += 1,
                SessionNotice::Updated { .. } | SessionNotice::QuotaWarning { .. } => {}
            }
        }
        self.notices
    }
}

/// Everything of a session, where the disk has nothing of it.
pub(crate) fn add_whole(rows: &mut Vec<Row>, kept: &Arc<Kept>, seen: &Seen) {
    rows.push(Row::Session(Arc::clone(kept), seen.clone()));
    for (name, program) in &kept.programs {
        rows.push(Row::Program(kept.number, Arc::clone(name), Arc::clone(program)));
    }
    for (pool, saved) in &kept.saved {
        rows.push(Row::Saved(kept.number, Arc::clone(pool), Arc::clone(saved)));
    }
}

fn add_difference(rows: &mut Vec<Row>, before: &Kept, after: &Arc<Kept>, seen: Seen) {
    let number = after.number;
    if before.version != after.version || before.strict != after.strict {
        rows.push(Row::Session(Arc::clone(after), seen));
    }
    for name in before.programs.keys().filter(|name| !after.programs.contains_key(*name)) {
        rows.push(Row::NoProgram(number, Arc::clone(name)));
    }
    for (name, program) in &after.programs {
        let same = before.programs.get(name).is_some_and(|known| Arc::ptr_eq(known, program));
        if !same {
            rows.push(Row::Program(number, Arc::clone(name), Arc::clone(program)));
        }
    }
    for pool in before.saved.keys().filter(|pool| !after.saved.contains_key(*pool)) {
        rows.push(Row::NoSaved(number, Arc::clone(pool)));
    }
    for (pool, saved) in &after.saved {
        if !before.saved.get(pool).is_some_and(|known| Arc::ptr_eq(known, saved)) {
            rows.push(Row::Saved(number, Arc::clone(pool), Arc::clone(saved)));
        }
    }
}

fn unused(accessed: Millis) -> Seen {
    Seen { accessed, worker: None }
}

/// What every operation may know.
#[derive(Debug)]
pub(crate) struct Rules {
    pub settings: SessionSettings,
    /// Which run of the server this is.
    pub boot: Uuid,
}

/// One operation's turn in a batch: it sees what lives and what the batch has changed so far. An
/// operation that is refused leaves the draft as it was, but for expired sessions that are gone now.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub rules: &'a Rules,
    pub now: Millis,
    pub draft: &'a mut Draft,
    pub live: &'a mut Live,
    pub next_number: &'a mut u64,
}

impl Turn<'_> {
    pub fn find(&self, id: &str) -> Option<Arc<Kept>> {
        match self.draft.ids.get(id) {
            Some(number) => self.numbered(*number),
            None => self.numbered(self.live.under(id)?.kept.number),
        }
    }

    pub fn numbered(&self, number: u64) -> Option<Arc<Kept>> {
        match self.draft.changed.get(&number) {
            Some(changed) => changed.kept.clone(),
            None => self.live.numbered(number, self.now).map(|entry| Arc::clone(&entry.kept)),
        }
    }

    pub fn existing(&self, id: &str) -> Result<Arc<Kept>, SessionError> {
        self.find(id).ok_or_else(|| SessionError::NotFound { id: id.to_owned() })
    }

    pub fn accessed(&self, number: u64) -> Millis {
        let drafted = self.draft.changed.get(&number).map_or(Millis::MIN, |c| c.accessed);
        self.live.entry(number).map_or(drafted, |entry| entry.seen.accessed.max(drafted))
    }

    /// As it would be shown after this batch.
    pub fn seen(&self, number: u64) -> Seen {
        let worker = self.live.entry(number).and_then(|entry| entry.seen.worker.clone());
        Seen { accessed: self.accessed(number), worker }
    }

    /// A session under an id that nobody living has.
    pub fn insert(&mut self, kept: Kept) -> Result<Arc<Kept>, SessionError> {
        self.expire_under(&kept.id);
        self.room_for_session()?;
        self.room_for_bytes(kept.size() as i64)?;
        let kept = Arc::new(kept);
        self.draft.sessions += 1;
        self.draft.bytes += kept.size() as i64;
        self.draft.ids.insert(Arc::clone(&kept.id), kept.number);
        self.change(kept.number, Some(Arc::clone(&kept)), self.now);
        let id = Arc::clone(&kept.id);
        self.tell(SessionNotice::Created { id, number: kept.number });
        Ok(kept)
    }

    /// The next state of a session; `used`: by the one whom it belongs to.
    pub fn replace(
        &mut self,
        before: &Kept,
        after: Kept,
        used: bool,
    ) -> Result<Arc<Kept>, SessionError> {
        let more = after.size() as i64 - before.size() as i64;
        self.room_for_bytes(more)?;
        self.draft.bytes += more;
        let accessed = if used { self.now } else { self.accessed(after.number) };
        if after.version != before.version {
            let (id, number) = (Arc::clone(&after.id), after.number);
            self.tell(SessionNotice::Updated { id, number, version: after.version });
        }
        let after = Arc::new(after);
        self.change(after.number, Some(Arc::clone(&after)), accessed);
        Ok(after)
    }

    pub fn remove(&mut self, kept: &Kept, notice: SessionNotice) {
        self.draft.sessions -= 1;
        self.draft.bytes -= kept.size() as i64;
        self.change(kept.number, None, self.now);
        self.tell(notice);
    }

    pub fn tell(&mut self, notice: SessionNotice) {
        self.draft.notices.push(notice);
    }

    /// Removes up to `limit` sessions that have expired.
    pub fn expire(&mut self, limit: usize) -> usize {
        let draft = &*self.draft;
        let known = |number| draft.changed.contains_key(&number);
        let expired = self.live.expired(self.now, limit, known);
        for number in &expired {
            self.expire_one(*number);
        }
        expired.len()
    }

    fn expire_under(&mut self, id: &str) {
        let Some(entry) = self.live.under(id) else { return };
        let number = entry.kept.number;
        if entry.gone(self.now) && !self.draft.changed.contains_key(&number) {
            self.expire_one(number);
        }
    }

    fn expire_one(&mut self, number: u64) {
        let Some(entry) = self.live.entry(number) else { return };
        let kept = Arc::clone(&entry.kept);
        let id = Arc::clone(&kept.id);
        self.remove(&kept, SessionNotice::Expired { id, number });
    }

    fn room_for_session(&mut self) -> Result<(), SessionError> {
        let max = u64::from(self.rules.settings.max);
        loop {
            let current = self.live.len().saturating_add_signed(self.draft.sessions);
            if current < max {
                return Ok(());
            }
            if self.expire(ROOM_CHUNK) == 0 {
                return Err(SessionError::Quota { current, max });
            }
        }
    }

    fn room_for_bytes(&mut self, more: i64) -> Result<(), SessionError> {
        let max = self.rules.settings.memory_max;
        loop {
            let bytes = self.live.bytes().saturating_add_signed(self.draft.bytes);
            if more <= 0 || bytes.saturating_add_signed(more) <= max {
                return Ok(());
            }
            if self.expire(ROOM_CHUNK) == 0 {
                return Err(no_room(bytes, more, max));
            }
        }
    }

    fn change(&mut self, number: u64, kept: Option<Arc<Kept>>, accessed: Millis) {
        self.draft.changed.insert(number, Changed { kept, accessed });
    }
}

fn no_room(bytes: u64, more: i64, max: u64) -> SessionError {
    let reason = format!(
        "sessions take {bytes} bytes of memory, this needs {more} more, and they may take {max}; \
         delete some, let some expire, or raise `memory_max` in [sessions]"
    );
    SessionError::StoreFull { reason }
}
