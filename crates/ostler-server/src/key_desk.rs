//! Who is busy under which key in this server. The ledger says that a key is in progress; where a
//! store failed in between, nobody may be at it: nothing was done, and it could not even be said
//! that nothing was. Such a key is remembered as idle, so that the next who comes with it may begin
//! anew.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ostler_store::ledger::key::Key;

/// More than these wait for their keys to expire.
const IDLE_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct KeyDesk {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// How many requests stand here with a key.
    present: HashMap<Key, usize>,
    idle: HashSet<Key>,
}

/// A request that stands here with its key.
#[derive(Debug)]
pub(crate) struct Presence<'d> {
    desk: &'d KeyDesk,
    key: &'d Key,
}

impl KeyDesk {
    pub fn come<'d>(&'d self, key: &'d Key) -> Presence<'d> {
        *self.lock().present.entry(key.clone()).or_default() += 1;
        Presence { desk: self, key }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Presence<'_> {
    /// Nothing was done, and the ledger may not know. With somebody else here it is theirs to say.
    pub fn leave_idle(&self) {
        let mut inner = self.desk.lock();
        if inner.alone_with(self.key) && inner.idle.len() < IDLE_MAX {
            inner.idle.insert(self.key.clone());
        }
    }

    /// Whether the key is only said to be in progress. Asked once: whoever is told so begins anew.
    pub fn take_idle(&self) -> bool {
        let mut inner = self.desk.lock();
        inner.alone_with(self.key) && inner.idle.remove(self.key)
    }
}

impl Inner {
    fn alone_with(&self, key: &Key) -> bool {
        self.present.get(key) == Some(&1)
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        let mut inner = self.desk.lock();
        match inner.present.get_mut(self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(inner.present.remove(self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { caller: "c".to_owned(), route: "POST /x".to_owned(), key: name.to_owned() }
    }

    #[test]
    fn an_idle_key_is_taken_up_once() {
        let (desk, key) = (KeyDesk::default(), key("k"));
        desk.come(&key).leave_idle();
        let next = desk.come(&key);
        assert!(next.take_idle());
        assert!(!next.take_idle());
        drop(next);
        assert!(desk.lock().present.is_empty() && desk.lock().idle.is_empty());
    }

    #[test]
    fn a_key_under_which_somebody_works_is_not_idle() {
        let (desk, key) = (KeyDesk::default(), key("k"));
        let worker = desk.come(&key);
        desk.come(&key).leave_idle();
        assert!(!worker.take_idle(), "it was not left idle");
        drop(worker);
        desk.come(&key).leave_idle();
        let (one, other) = (desk.come(&key), desk.come(&key));
        assert!(!one.take_idle() && !other.take_idle(), "either may be at it");
        drop(other);
        assert!(one.take_idle());
    }
}
