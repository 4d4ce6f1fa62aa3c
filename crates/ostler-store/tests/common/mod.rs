//! Stores to test with.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ostler_store::{NewSession, Patch, SessionNotice, SessionSettings, Sessions};
use serde_json::value::RawValue;
use tempfile::TempDir;

/// A store and the directory that it may be in.
pub struct Store {
    pub sessions: Sessions,
    pub kind: &'static str,
    _directory: TempDir,
}

/// One of each kind: what holds for one holds for the other.
pub async fn each(settings: &SessionSettings) -> [Store; 2] {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("ostler.db");
    let durable = Sessions::open(&path, settings.clone()).await.unwrap();
    let passing = Sessions::in_memory(settings.clone());
    [
        Store { sessions: passing, kind: "in memory", _directory: TempDir::new().unwrap() },
        Store { sessions: durable, kind: "in a file", _directory: directory },
    ]
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
