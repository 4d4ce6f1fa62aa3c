//! Stores to test with.

// Each test binary uses its own part of this.
#![allow(dead_code)]

#[path = "../../src/sql/rig.rs"]
mod rig;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ostler_store::Store as Whole;
use ostler_store::ledger::Place;
use ostler_store::{NewSession, Patch, SessionNotice, SessionSettings, Sessions};
use serde_json::value::RawValue;
use tempfile::TempDir;

pub use rig::TestDatabase;

/// A store and what it is in.
pub struct Store {
    pub sessions: Sessions,
    pub kind: &'static str,
    _directory: Option<TempDir>,
    _database: Option<TestDatabase>,
}

/// One of each kind: what holds for one holds for the others.
pub async fn each(settings: &SessionSettings) -> [Store; 3] {
    [in_memory(settings), in_a_file(settings).await, in_a_database(settings).await]
}

fn in_memory(settings: &SessionSettings) -> Store {
    let sessions = Sessions::in_memory(settings.clone());
    Store { sessions, kind: "in memory", _directory: None, _database: None }
}

async fn in_a_file(settings: &SessionSettings) -> Store {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("ostler.db");
    let sessions = Sessions::open(&path, settings.clone()).await.unwrap();
    Store { sessions, kind: "in a file", _directory: Some(directory), _database: None }
}

async fn in_a_database(settings: &SessionSettings) -> Store {
    let database = TestDatabase::new().await;
    let whole = Whole::open(&Place::Postgres(database.url())).await.unwrap();
    let sessions = whole.sessions(settings.clone()).await.unwrap();
    Store { sessions, kind: "in PostgreSQL", _directory: None, _database: Some(database) }
}

/// A place for a store that is opened more than once.
pub fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("made").join("ostler.db");
    (directory, path)
}

pub fn named(id: &str) -> NewSession {
    NewSession { id: Some(id.to_owned()), ..NewSession::default() }
}

pub fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub fn merge(text: &str) -> Patch {
    Patch { metadata: Some(json(text)), ..Patch::default() }
}

/// What a store tells from now on.
pub fn told(sessions: &Sessions) -> Arc<Mutex<Vec<SessionNotice>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    sessions.watch(move |notice| listener.lock().unwrap().push(notice.clone()));
    told
}

pub fn taken(told: &Mutex<Vec<SessionNotice>>) -> Vec<SessionNotice> {
    std::mem::take(&mut told.lock().unwrap())
}
