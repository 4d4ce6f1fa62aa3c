//! What has changed between two files.

use super::*;

fn difference(old: &str, new: &str) -> Difference {
    valid(old).difference(&valid(new))
}

/// The one pool of two files with these settings: what changed, and the keys.
fn of_pool(old: &str, new: &str) -> (What, Vec<String>) {
    let mut difference = difference(&pool_file(old), &pool_file(new));
    let PoolChange { what, keys, .. } = difference.pools.remove(0);
    (what, keys)
}

const SETTINGS: What = What::Changed { processes: false };
const PROCESSES: What = What::Changed { processes: true };

#[test]
fn a_pool_that_means_the_same_is_unchanged_however_it_is_written() {
    for (old, new) in [
        ("", ""),
        ("", "# a word\n"),
        ("ttl = 60", "ttl = \"1m\""),
        ("", "queue_max = 1000"),
        ("size = 4", "min = 4\nmax = 4"),
        ("", "[pools.py.heartbeat]\ninterval = 2"),
        ("env = { A = \"3\" }", "env = { A = \"${WORKERS}\" }"),
    ] {
        assert_eq!(of_pool(old, new), (What::Unchanged, vec![]), "{old:?} {new:?}");
    }
}

#[test]
fn the_keys_that_were_edited_are_named() {
    for (old, new, what, keys) in [
        ("max = 4", "max = 8\nttl = 60", SETTINGS, &["max", "ttl"][..]),
        ("size = 2", "min = 1\nmax = 2", SETTINGS, &["max", "min", "size"]),
        ("queue_max = 5", "", SETTINGS, &["queue_max"]),
        ("check = { again = 1 }", "check = { again = 2 }", SETTINGS, &["check.again"]),
        ("", "check = { enabled = false, again = 2 }", SETTINGS, &["check.again", "check.enabled"]),
        ("", "env = { A = \"1\" }", PROCESSES, &["env"]),
        ("env = { A = \"1\" }", "env = { A = \"2\" }", PROCESSES, &["env"]),
        ("", "env_pass = [\"A\"]", PROCESSES, &["env_pass"]),
        ("", "cwd = \"x\"", PROCESSES, &["cwd"]),
        ("", "interpreter = \"python3.13\"", PROCESSES, &["interpreter"]),
        ("", "containment = \"namespace\"", PROCESSES, &["containment"]),
        ("", "socket = \"named\"\nttl = 60", PROCESSES, &["socket", "ttl"]),
        ("profile = \"thread\"", "profile = \"thread\"\nthreads = 2", PROCESSES, &["threads"]),
    ] {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        assert_eq!(of_pool(old, new), (what, keys), "{old:?} {new:?}");
    }
}

#[test]
fn pools_come_and_go() {
    let file = |pools: &[&str]| {
        let pools = pools.iter().map(|name| format!("[pools.{name}]\ncommand = [\"x\"]\n"));
        format!("version = 1\n{}", pools.collect::<String>())
    };
    let found = difference(&file(&["a", "b", "c"]), &file(&["d", "c", "a"]));
    let found: Vec<(&str, What)> =
        found.pools.iter().map(|change| (change.pool.as_str(), change.what)).collect();
    let expected =
        [("d", What::Added), ("c", What::Unchanged), ("a", What::Unchanged), ("b", What::Removed)];
    assert_eq!(found, expected);
}

#[test]
fn what_counts_at_the_start_of_a_server_only_is_told_apart() {
    let file = |more: &str| format!("{}\n{more}", pool_file(""));
    let new = file(
        "[server]\nlisten = \"127.0.0.1:1\"\nsocket = \".ostler/ostler.sock\"\n\
         [sessions]\nmax = 5\n[store]\npath = \"x.db\"\n[jobs]\nmax = 5\n[idempotency]\nttl = 5",
    );
    let found = difference(&file(""), &new);
    // The socket is the one that it was; it is named because its section differs and it was edited.
    let expected = [
        "server.listen",
        "server.socket",
        "sessions.max",
        "store.path",
        "jobs.max",
        "idempotency.ttl",
    ];
    assert_eq!(found.outside, expected);
    assert_eq!(found.pools[0].what, What::Unchanged);
    let same = file("[server]\nlisten = \"127.0.0.1:6785\"\n[sessions]\nttl = \"60m\"");
    assert_eq!(difference(&file(""), &same).outside, [""; 0]);
}

#[test]
fn a_bound_of_the_server_changes_the_pools_that_follow_it() {
    let found = difference(&pool_file(""), &pool_file("[server]\nmax_body = \"1MiB\""));
    assert_eq!(found.pools[0].what, SETTINGS);
    assert_eq!(found.pools[0].keys, [""; 0]);
    assert_eq!(found.outside, ["server.max_body"]);
}

#[test]
fn a_pool_that_was_taken_over_differs_no_more() {
    let file = |pools: &[(&str, &str)]| {
        let pools = pools
            .iter()
            .map(|(name, settings)| format!("[pools.{name}]\ncommand = [\"x\"]\n{settings}\n"));
        valid(&format!("version = 1\n{}", pools.collect::<String>()))
    };
    let mut current = file(&[("a", "ttl = 5"), ("b", ""), ("c", "ttl = 5")]);
    let new = file(&[("a", "ttl = 6"), ("c", "ttl = 6"), ("d", "")]);
    for name in ["a", "b", "d"] {
        current.take_pool(&PoolName::parse(name).expect("a name"), &new);
    }
    let left: Vec<PoolChange> = current.difference(&new).pools;
    let left: Vec<_> = left.iter().filter(|change| change.what != What::Unchanged).collect();
    let [PoolChange { pool, what: SETTINGS, keys }] = &left[..] else { panic!("{left:?}") };
    assert_eq!((pool.as_str(), &keys[..]), ("c", &["ttl".to_owned()][..]));
}
