//! The operations that change sessions: what each demands, and what comes of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::value::RawValue;

use crate::clock::{Millis, millis};
use crate::content::Content;
use crate::draft::Turn;
use crate::error::SessionError;
use crate::kept::{Kept, Programs, info};
use crate::metadata;
use crate::name;
use crate::notice::SessionNotice;
use crate::session::{Entered, NewSession, Patch, Program, ProgramInfo, Session};

impl Turn<'_> {
    pub fn create(&mut self, new: &NewSession) -> Result<Session, SessionError> {
        let id = new.id.clone().unwrap_or_else(name::made);
        name::check_id(&id)?;
        if self.find(&id).is_some() {
            return Err(SessionError::Exists { id });
        }
        let metadata = match &new.metadata {
            Some(given) => self.acceptable(&id, given)?,
            None => metadata::empty(),
        };
        let expires = self.acceptable_expiry(new.expires_at)?;
        let kept = Kept { metadata, expires, ttl: self.ttl(new.ttl), ..self.blank(&id) };
        let kept = self.insert(kept)?;
        Ok(self.shown(&kept))
    }

    /// For a call: makes the session if it may, uses it, and answers for what a server that is gone
    /// had bound.
    pub fn enter(&mut self, id: &str, strict: Option<&str>) -> Result<Entered, SessionError> {
        let found = self.find(id);
        let created = found.is_none();
        let kept = match found {
            Some(kept) => kept,
            None => self.create_for_call(id)?,
        };
        let lost = strict.is_some_and(|pool| self.lost(&kept, pool));
        let mut marks = kept.strict.clone();
        match strict {
            Some(pool) if lost => drop(marks.remove(pool)),
            Some(pool) => drop(marks.insert(pool.into(), self.rules.boot)),
            None => {}
        }
        if kept.strict != marks {
            let after = Kept { strict: marks, ..Kept::clone(&kept) };
            self.replace(&kept, after, true)?;
        } else if !created {
            self.live.touch(kept.number, self.now);
        }
        Ok(Entered { number: kept.number, id: Arc::clone(&kept.id), created, lost })
    }

    /// Its process had it in memory, and neither is there any more.
    fn lost(&self, kept: &Kept, pool: &str) -> bool {
        let another = kept.strict.get(pool).is_some_and(|boot| *boot != self.rules.boot);
        another && !kept.saved.contains_key(pool)
    }

    fn create_for_call(&mut self, id: &str) -> Result<Arc<Kept>, SessionError> {
        name::check_id(id)?;
        if !self.rules.settings.auto_create {
            return Err(SessionError::NotFound { id: id.to_owned() });
        }
        let blank = self.blank(id);
        self.insert(blank)
    }

    pub fn patch(&mut self, id: &str, patch: &Patch) -> Result<Session, SessionError> {
        let kept = self.existing(id)?;
        check_version(&kept, patch.version)?;
        let mut after = Kept { version: kept.version + 1, ..Kept::clone(&kept) };
        if let Some(given) = &patch.metadata {
            self.acceptable(id, given)?;
            let merged = Arc::from(metadata::merged(&kept.metadata, given));
            self.check_size(id, &merged)?;
            after.metadata = merged;
        }
        if let Some(ttl) = patch.ttl {
            after.ttl = self.ttl(ttl);
        }
        if let Some(expires_at) = patch.expires_at {
            after.expires = self.acceptable_expiry(expires_at)?;
        }
        let after = self.replace(&kept, after, true)?;
        Ok(self.shown(&after))
    }

    pub fn delete(&mut self, id: &str, version: Option<u64>) -> Result<(), SessionError> {
        let kept = self.existing(id)?;
        check_version(&kept, version)?;
        let notice = SessionNotice::Deleted { id: Arc::clone(&kept.id), number: kept.number };
        self.remove(&kept, notice);
        Ok(())
    }

    pub fn put_program(
        &mut self,
        id: &str,
        name: &str,
        content: &Content,
        version: Option<u64>,
    ) -> Result<ProgramInfo, SessionError> {
        let kept = self.existing(id)?;
        check_version(&kept, version)?;
        name::check_program(name)?;
        name::check_content_type(&content.content_type)?;
        let name: Arc<str> = Arc::from(name);
        let version = kept.version + 1;
        let program = Arc::new(Program { content: content.clone(), version });
        let told = info(&name, &program);
        let mut programs = kept.programs.clone();
        programs.insert(name, program);
        let after = Kept { version, programs, ..Kept::clone(&kept) };
        self.check_programs(&after)?;
        self.replace(&kept, after, true)?;
        Ok(told)
    }

    /// Answers the version that the session has then.
    pub fn delete_program(
        &mut self,
        id: &str,
        name: &str,
        version: Option<u64>,
    ) -> Result<u64, SessionError> {
        let kept = self.existing(id)?;
        check_version(&kept, version)?;
        let mut programs = kept.programs.clone();
        if programs.remove(name).is_none() {
            let (id, name) = (id.to_owned(), name.to_owned());
            return Err(SessionError::ProgramNotFound { id, name });
        }
        let after = Kept { version: kept.version + 1, programs, ..Kept::clone(&kept) };
        Ok(self.replace(&kept, after, true)?.version)
    }

    /// Not a use: a worker that leaves keeps no session alive.
    pub fn save_state(
        &mut self,
        number: u64,
        pool: &str,
        state: &Content,
    ) -> Result<(), SessionError> {
        name::check_content_type(&state.content_type)?;
        let kept = self.existing_number(number)?;
        let mut after = Kept::clone(&kept);
        after.saved.insert(pool.into(), Arc::new(state.clone()));
        self.replace(&kept, after, false).map(drop)
    }

    pub fn take_state(
        &mut self,
        number: u64,
        pool: &str,
    ) -> Result<Option<Arc<Content>>, SessionError> {
        let kept = self.existing_number(number)?;
        let mut after = Kept::clone(&kept);
        let Some(saved) = after.saved.remove(pool) else { return Ok(None) };
        self.replace(&kept, after, false)?;
        Ok(Some(saved))
    }

    /// A session with nothing in it, used now.
    fn blank(&mut self, id: &str) -> Kept {
        let number = *self.next_number;
        *self.next_number += 1;
        Kept {
            number,
            id: Arc::from(id),
            version: 1,
            metadata: metadata::empty(),
            created: self.now,
            ttl: self.ttl(None),
            expires: None,
            programs: Programs::new(),
            saved: BTreeMap::new(),
            strict: BTreeMap::new(),
        }
    }

    fn existing_number(&self, number: u64) -> Result<Arc<Kept>, SessionError> {
        self.numbered(number).ok_or_else(|| not_numbered(number))
    }

    fn shown(&self, kept: &Kept) -> Session {
        kept.shown(&self.seen(kept.number))
    }

    fn ttl(&self, given: Option<Duration>) -> Millis {
        millis(given.filter(|ttl| !ttl.is_zero()).unwrap_or(self.rules.settings.ttl)).max(1)
    }

    fn acceptable(&self, id: &str, given: &RawValue) -> Result<Arc<RawValue>, SessionError> {
        self.check_size(id, given)?;
        metadata::check(given)?;
        Ok(Arc::from(given.to_owned()))
    }

    fn acceptable_expiry(&self, given: Option<Timestamp>) -> Result<Option<Millis>, SessionError> {
        let Some(given) = given else { return Ok(None) };
        let at = given.as_millisecond();
        if at <= self.now {
            return Err(SessionError::Invalid(format!("`expires_at` is {given}: that has passed")));
        }
        Ok(Some(at))
    }

    fn check_size(&self, id: &str, metadata: &RawValue) -> Result<(), SessionError> {
        let (bytes, max) = (metadata.get().len() as u64, self.rules.settings.metadata_max);
        if bytes > max {
            return Err(SessionError::MetadataTooLarge { id: id.to_owned(), bytes, max });
        }
        Ok(())
    }

    fn check_programs(&self, kept: &Kept) -> Result<(), SessionError> {
        let settings = &self.rules.settings;
        let (programs, bytes) = (kept.programs.len() as u64, kept.program_bytes());
        let (programs_max, bytes_max) =
            (u64::from(settings.programs_max), settings.program_bytes_max);
        if programs > programs_max || bytes > bytes_max {
            let id = kept.id.to_string();
            return Err(SessionError::ProgramQuota {
                id,
                programs,
                bytes,
                programs_max,
                bytes_max,
            });
        }
        Ok(())
    }
}

pub(crate) fn not_numbered(number: u64) -> SessionError {
    SessionError::NotFound { id: format!("number {number}") }
}

fn check_version(kept: &Kept, version: Option<u64>) -> Result<(), SessionError> {
    match version {
        Some(version) if version != kept.version => {
            Err(SessionError::VersionConflict { id: kept.id.to_string(), version: kept.version })
        }
        _ => Ok(()),
    }
}
