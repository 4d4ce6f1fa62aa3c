//! What differs between the configuration in force and one that was read anew.
//!
//! What a change means is judged by the settings themselves, so that a default that is now written
//! out changes nothing; its keys are those that somebody edited. What is done about it is not
//! decided here.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::{Config, Pool, PoolName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Every pool of either: in the order of the new file, then those that it has no more.
    pub pools: Vec<PoolChange>,
    /// Keys outside the pools, such as `server.listen`. They count when a server starts.
    pub outside: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolChange {
    pub pool: PoolName,
    pub what: What,
    /// Those that were edited, such as `max` or `heartbeat.interval`. Empty where the pool is new or
    /// gone, or where the change came from outside the pool's table.
    pub keys: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Added,
    Removed,
    Changed {
        /// The processes that are there differ from those that would be started now.
        processes: bool,
    },
    Unchanged,
}

impl Config {
    /// What would be different if `new` were in force.
    pub fn difference(&self, new: &Config) -> Difference {
        let mut pools: Vec<PoolChange> =
            new.pools.iter().map(|pool| change(self, new, pool)).collect();
        let removed = self.pools.iter().filter(|pool| new.pool(&pool.name).is_none());
        pools.extend(removed.map(|pool| PoolChange {
            pool: pool.name.clone(),
            what: What::Removed,
            keys: Vec::new(),
        }));
        Difference { pools, outside: outside(self, new) }
    }

    /// What `new` says of one pool is in force from now on; the rest stays as it is.
    pub fn take_pool(&mut self, name: &PoolName, new: &Config) {
        let place = self.pools.iter().position(|pool| pool.name == *name);
        match (place, new.pool(name)) {
            (Some(place), Some(pool)) => self.pools[place] = pool.clone(),
            (Some(place), None) => drop(self.pools.remove(place)),
            (None, Some(pool)) => self.pools.push(pool.clone()),
            (None, None) => {}
        }
        let pools = self.written.entry("pools").or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(pools) = pools {
            match new.written_of(name) {
                Some(written) => drop(pools.insert(name.to_string(), written.clone())),
                None => drop(pools.remove(name.as_str())),
            }
        }
    }

    pub fn pool(&self, name: &PoolName) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == *name)
    }

    fn written_of(&self, pool: &PoolName) -> Option<&Value> {
        self.written.get("pools")?.get(pool.as_str())
    }
}

impl Pool {
    /// The processes of both are started in the same way and run the same way.
    fn starts_like(&self, other: &Pool) -> bool {
        self.program == other.program
            && self.sharing == other.sharing
            && self.env == other.env
            && self.env_pass == other.env_pass
            && self.cwd == other.cwd
            && self.containment == other.containment
            && self.socket == other.socket
    }
}

fn change(old: &Config, new: &Config, pool: &Pool) -> PoolChange {
    let name = &pool.name;
    let what = match old.pool(name) {
        None => What::Added,
        Some(before) if before == pool => What::Unchanged,
        Some(before) => What::Changed { processes: !before.starts_like(pool) },
    };
    let keys = match what {
        What::Changed { .. } => edited(old.written_of(name), new.written_of(name)),
        What::Added | What::Removed | What::Unchanged => Vec::new(),
    };
    PoolChange { pool: name.clone(), what, keys }
}

fn outside(old: &Config, new: &Config) -> Vec<String> {
    let sections = [
        ("server", old.server != new.server),
        ("sessions", old.sessions != new.sessions),
        ("store", old.store != new.store),
        ("jobs", old.jobs != new.jobs),
        ("idempotency", old.idempotency != new.idempotency),
    ];
    let changed = sections.into_iter().filter(|(_, changed)| *changed);
    let keys = changed.flat_map(|(section, _)| {
        let keys = edited(old.written.get(section), new.written.get(section));
        keys.into_iter().map(move |key| format!("{section}.{key}"))
    });
    keys.collect()
}

/// The keys whose values are not the same, those of tables within by their paths.
fn edited(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let table = |value: Option<&'_ Value>| value.and_then(Value::as_table).cloned();
    let (old, new) = (table(old).unwrap_or_default(), table(new).unwrap_or_default());
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    keys.into_iter().flat_map(|key| edited_key(key, &old, &new)).collect()
}

fn edited_key(key: &str, old: &Table, new: &Table) -> Vec<String> {
    let (before, after) = (old.get(key), new.get(key));
    if before == after {
        return Vec::new();
    }
    let inner = [before, after].into_iter().flatten().all(Value::is_table);
    // The user's own names are not keys: `env` is one value.
    match inner && key != "env" {
        true => edited(before, after).into_iter().map(|inner| format!("{key}.{inner}")).collect(),
        false => vec![key.to_owned()],
    }
}
