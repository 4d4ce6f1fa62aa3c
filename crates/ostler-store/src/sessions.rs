//! The store of sessions as others use it.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::clock::{Clock, MachineClock, Time, timestamp};
use crate::content::{Content, Saved};
use crate::decide::not_numbered;
use crate::disk::{Disk, NoDisk};
use crate::draft::{Rules, Turn};
use crate::error::{OpenError, SessionError};
use crate::live::Live;
use crate::notice::{SessionNotice, Watchers};
use crate::session::{Entered, NewSession, Patch, Program, ProgramInfo, Session, SessionStats};
use crate::settings::SessionSettings;
use crate::sql::SqlDisk;
use crate::writer::{Ask, Message, Shared, Sweep, WAITING_MAX, Writer};

/// Sessions listed at once, whatever was asked for.
const LIST_MAX: usize = 1000;

/// A handle; the sessions live while one does. Its writer is a task, so a store is made and used
/// inside a tokio runtime.
#[derive(Debug, Clone)]
pub struct Sessions {
    shared: Arc<Shared>,
    writer: mpsc::Sender<Message>,
}

impl Sessions {
    /// The sessions in a file, which is made if it is not there: mode 0600, in a directory of mode
    /// 0700. The file belongs to this store until it is closed.
    pub async fn open(path: &Path, settings: SessionSettings) -> Result<Sessions, OpenError> {
        Sessions::open_by(path, settings, MachineClock::new()).await
    }

    pub(crate) async fn open_by(
        path: &Path,
        settings: SessionSettings,
        clock: impl Clock,
    ) -> Result<Sessions, OpenError> {
        Sessions::on(SqlDisk::in_file(path).await?, settings, clock).await
    }

    /// What is on this disk.
    pub(crate) async fn on(
        mut disk: SqlDisk,
        settings: SessionSettings,
        clock: impl Clock,
    ) -> Result<Sessions, OpenError> {
        let rules = Rules { settings, boot: Uuid::now_v7() };
        let time = Time::new(clock);
        let (live, next_number) = disk.load(time.now()).await?;
        Ok(Sessions::start(rules, time, live, next_number, disk))
    }

    /// Sessions that end with this store.
    pub fn in_memory(settings: SessionSettings) -> Sessions {
        let rules = Rules { settings, boot: Uuid::now_v7() };
        Sessions::start(rules, Time::new(MachineClock::new()), Live::default(), 1, NoDisk)
    }

    pub(crate) fn start(
        rules: Rules,
        time: Time,
        live: Live,
        next_number: u64,
        disk: impl Disk,
    ) -> Sessions {
        let watchers = Watchers::default();
        let shared = Arc::new(Shared { live: live.into(), time, rules, watchers });
        let (writer, inbox) = mpsc::channel(WAITING_MAX);
        // It ends with `close`, or when the last handle is dropped.
        tokio::spawn(Writer::new(Arc::clone(&shared), disk, next_number, inbox).run());
        Sessions { shared, writer }
    }

    /// From now on the listener is told, in the order of the commits and before the operation is
    /// answered. It runs in the writer: what it does, all changes wait for. Several may watch.
    pub fn watch(&self, listener: impl Fn(&SessionNotice) + Send + Sync + 'static) {
        self.shared.watchers.add(listener);
    }

    /// The session that a call names: made if it is unknown (`auto_create`), and used. `strict` is the
    /// pool where it is bound under a strict mode, which is remembered durably, once per run of the
    /// server. A session
    /// that is known, and marked if it must be, is entered without waiting for the disk.
    pub async fn enter(&self, id: &str, strict: Option<&str>) -> Result<Entered, SessionError> {
        if let Some(entered) = self.enter_known(id, strict) {
            return Ok(entered);
        }
        let (id, strict) = (id.to_owned(), strict.map(str::to_owned));
        self.write(move |turn| turn.enter(&id, strict.as_deref())).await
    }

    fn enter_known(&self, id: &str, strict: Option<&str>) -> Option<Entered> {
        let mut live = self.shared.live();
        let now = self.shared.time.now();
        let kept = &live.find(id, now)?.kept;
        let boot = &self.shared.rules.boot;
        if strict.is_some_and(|pool| kept.strict.get(pool) != Some(boot)) {
            return None;
        }
        let (number, id) = (kept.number, Arc::clone(&kept.id));
        live.touch(number, now);
        Some(Entered { number, id, created: false, lost: false })
    }

    pub async fn create(&self, new: NewSession) -> Result<Session, SessionError> {
        self.write(move |turn| turn.create(&new)).await
    }

    /// Using it.
    pub async fn get(&self, id: &str) -> Result<Session, SessionError> {
        self.used(id, |entry| entry.shown())
    }

    /// Without using it.
    pub fn peek(&self, id: &str) -> Option<Session> {
        let live = self.shared.live();
        live.find(id, self.shared.time.now()).map(|entry| entry.shown())
    }

    /// The same by number.
    pub fn peek_number(&self, number: u64) -> Option<Session> {
        let live = self.shared.live();
        live.numbered(number, self.shared.time.now()).map(|entry| entry.shown())
    }

    /// The id of a session that lives.
    pub fn id_of(&self, number: u64) -> Option<Arc<str>> {
        let live = self.shared.live();
        let entry = live.numbered(number, self.shared.time.now());
        entry.map(|entry| Arc::clone(&entry.kept.id))
    }

    /// In the order of ids, those after `after`, without using any; at most 1000 at once.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Vec<Session> {
        let live = self.shared.live();
        let now = self.shared.time.now();
        live.list(after, now).take(limit.min(LIST_MAX)).map(|entry| entry.shown()).collect()
    }

    pub async fn patch(&self, id: &str, patch: Patch) -> Result<Session, SessionError> {
        let id = id.to_owned();
        self.write(move |turn| turn.patch(&id, &patch)).await
    }

    /// With a version: only if it is the current one.
    pub async fn delete(&self, id: &str, version: Option<u64>) -> Result<(), SessionError> {
        let id = id.to_owned();
        self.write(move |turn| turn.delete(&id, version)).await
    }

    /// With a version: only if it is the session's current one. A program of that name is replaced.
    pub async fn put_program(
        &self,
        id: &str,
        name: &str,
        content: Content,
        version: Option<u64>,
    ) -> Result<ProgramInfo, SessionError> {
        let (id, name, content) = (id.to_owned(), name.to_owned(), content.detached());
        self.write(move |turn| turn.put_program(&id, &name, &content, version)).await
    }

    /// Using the session.
    pub async fn get_program(&self, id: &str, name: &str) -> Result<Program, SessionError> {
        let found = self.used(id, |entry| entry.kept.programs.get(name).cloned())?;
        found.map(|program| Program::clone(&program)).ok_or_else(|| SessionError::ProgramNotFound {
            id: id.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Answers the version that the session has then.
    pub async fn delete_program(
        &self,
        id: &str,
        name: &str,
        version: Option<u64>,
    ) -> Result<u64, SessionError> {
        let (id, name) = (id.to_owned(), name.to_owned());
        self.write(move |turn| turn.delete_program(&id, &name, version)).await
    }

    /// What a worker of a pool remembered of a session when it left; the last one counts.
    pub async fn save_state(
        &self,
        number: u64,
        pool: &str,
        state: Saved,
    ) -> Result<(), SessionError> {
        let (pool, state) = (pool.to_owned(), state.detached());
        self.write(move |turn| turn.save_state(number, &pool, &state)).await
    }

    /// What was saved, once: it is gone from the disk before it is given.
    pub async fn take_state(&self, number: u64, pool: &str) -> Result<Option<Saved>, SessionError> {
        if !self.has_saved(number, pool)? {
            return Ok(None);
        }
        let pool = pool.to_owned();
        let taken = self.write(move |turn| turn.take_state(number, &pool)).await?;
        Ok(taken.map(|saved| Content::clone(&saved)))
    }

    /// Whether there is something to be taken by a worker of that pool.
    ///
    /// # Errors
    /// There is no such session.
    pub fn has_saved(&self, number: u64, pool: &str) -> Result<bool, SessionError> {
        let live = self.shared.live();
        let entry = live.numbered(number, self.shared.time.now());
        entry.map(|entry| entry.kept.saved.contains_key(pool)).ok_or_else(|| not_numbered(number))
    }

    /// Who served it last. Written some seconds late.
    pub fn note_worker(&self, number: u64, worker: &str) {
        self.shared.live().note_worker(number, worker);
    }

    /// Removes what has expired and answers how many that were.
    pub async fn sweep(&self) -> usize {
        let (answer, answered) = oneshot::channel();
        let sweep = Message::Sweep(Sweep::new(Some(answer)));
        let removed = match self.writer.send(sweep).await {
            Ok(()) => answered.await.unwrap_or_default(),
            Err(_) => 0,
        };
        removed as usize
    }

    pub fn stats(&self) -> SessionStats {
        let live = self.shared.live();
        let settings = &self.shared.rules.settings;
        SessionStats {
            current: live.current(self.shared.time.now()),
            max: settings.max.into(),
            memory_bytes: live.bytes(),
            memory_max: settings.memory_max,
            created: live.counts.created,
            deleted: live.counts.deleted,
            expired: live.counts.expired,
            sweeps: live.counts.sweeps,
            commits: live.counts.commits,
            rows_written: live.counts.rows_written,
            expiry_looks: live.expiry_looks(),
            disk_refusals: live.counts.disk_refusals,
        }
    }

    /// By the store's clock, which is the one that ages are counted by.
    pub fn now(&self) -> Timestamp {
        timestamp(self.shared.time.now())
    }

    /// Does what was asked before, writes what is written late and gives the file back. What is
    /// asked of the disk afterwards is refused.
    pub async fn close(&self) {
        let (answer, answered) = oneshot::channel();
        if self.writer.send(Message::Close(answer)).await.is_ok() {
            let _ = answered.await;
        }
    }

    fn used<T>(
        &self,
        id: &str,
        read: impl FnOnce(&crate::live::Entry) -> T,
    ) -> Result<T, SessionError> {
        let mut live = self.shared.live();
        let now = self.shared.time.now();
        let found = live.find(id, now).map(|entry| entry.kept.number);
        let number = found.ok_or_else(|| SessionError::NotFound { id: id.to_owned() })?;
        live.touch(number, now);
        Ok(read(live.entry(number).expect("was just found")))
    }

    async fn write<T, F>(&self, decide: F) -> Result<T, SessionError>
    where
        T: Send + 'static,
        F: FnMut(&mut Turn<'_>) -> Result<T, SessionError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let ask = Ask { decide, decided: None, answer };
        let sent = self.writer.send(Message::Ask(Box::new(ask))).await;
        sent.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

fn closed() -> SessionError {
    SessionError::StoreUnavailable { reason: "it is closed".to_owned() }
}
