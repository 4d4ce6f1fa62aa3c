//! Names of workspaces, as keys of workers. The core knows numbers only.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};

use ostler_core::KeyId;

/// Names that are remembered, to be shown. A key does not need its name to work.
const NAMES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Workspaces {
    /// Random for each server: nobody can make two names meet.
    hasher: RandomState,
    names: Mutex<HashMap<KeyId, Arc<str>>>,
}

impl Workspaces {
    pub fn key(&self, name: &str) -> KeyId {
        let key = KeyId(self.hasher.hash_one(name));
        let mut names = self.names.lock().expect("no code panics here");
        if !names.contains_key(&key) {
            if names.len() >= NAMES_MAX {
                names.clear();
            }
            names.insert(key, name.into());
        }
        key
    }

    pub fn name(&self, key: KeyId) -> Option<Arc<str>> {
        self.names.lock().expect("no code panics here").get(&key).cloned()
    }
}
