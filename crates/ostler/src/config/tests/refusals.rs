//! What an invalid file is told.

use super::*;

#[test]
fn an_unknown_key_is_shown_with_its_line_and_the_key_that_was_meant() {
    assert_eq!(
        problem(&pool_file("sise = 4")),
        "\
ostler.toml:4:1: unknown key `sise` in [pools.py]
  |
4 | sise = 4
  | ^^^^
  = did you mean `size`?

ostler.toml: 1 problem"
    );
}

#[test]
fn all_problems_of_a_file_are_reported_in_its_order() {
    let text = "\
version = 2
[server]
listen = \"0.0.0.0:80\"
drain_timeout = true
default_pool = \"pi\"
[pools.py]
python = \"w.py\"
size = 0
containment = \"shin\"
request_timeout = \"5 sec onds\"
[pools.Bad]
[extra]
";
    assert_eq!(
        problem(text),
        "\
ostler.toml:1:11: this version of the configuration is not known
  |
1 | version = 2
  |           ^
  = write `version = 1`

ostler.toml:3:10: `0.0.0.0:80` can be reached from other machines, and callers are not authenticated
  |
3 | listen = \"0.0.0.0:80\"
  |          ^^^^^^^^^^^^
  = listen on 127.0.0.1 or [::1]; to serve others, put a proxy that authenticates in front

ostler.toml:4:17: `drain_timeout` must be a duration such as 10, \"10s\" or \"200ms\", not a boolean
  |
4 | drain_timeout = true
  |                 ^^^^

ostler.toml:5:16: there is no pool `pi`
  |
5 | default_pool = \"pi\"
  |                ^^^^
  = did you mean `py`?

ostler.toml:8:8: `size` must be between 1 and 1000
  |
8 | size = 0
  |        ^

ostler.toml:9:15: unknown value `shin` for `containment`
  |
9 | containment = \"shin\"
  |               ^^^^^^
  = did you mean `shim`?

ostler.toml:10:19: `request_timeout`: unknown unit `sec onds`
   |
10 | request_timeout = \"5 sec onds\"
   |                   ^^^^^^^^^^^^
   = known units: ms, s, sec, m, min, h, d

ostler.toml:11:8: `Bad` cannot be the name of a pool
   |
11 | [pools.Bad]
   |        ^^^
   = a lower-case letter, then letters, digits, _ or -, at most 63; `bad` would do

ostler.toml:11:8: [pools.Bad] does not say what to run
   |
11 | [pools.Bad]
   |        ^^^
   = add `python = \"file.py\"` or `command = [\"program\", \"argument\"]`

ostler.toml:12:2: unknown key `extra` in the top level
   |
12 | [extra]
   |  ^^^^^
   = known keys: version, server, store, sessions, jobs, idempotency, pools

ostler.toml: 10 problems"
    );
}

#[test]
fn text_that_is_not_toml_is_reported_at_its_places() {
    assert_eq!(
        messages("version = \n[pools.py\n[pools.js]\npython = 'x'\npython = 'y'\n"),
        [
            "string values must be quoted, expected literal string",
            "unclosed table, expected `]`",
            "duplicate key",
        ]
    );
}

#[test]
fn an_empty_file_is_told_what_it_needs() {
    assert_eq!(
        problem(""),
        "\
ostler.toml:1:1: `version` is missing
  |
1 | 
  | ^
  = add the line `version = 1`

ostler.toml:1:1: there is no pool
  |
1 | 
  | ^
  = add a table such as [pools.hello] with `python = \"hello.py\"`

ostler.toml: 2 problems"
    );
}

#[test]
fn a_table_inside_a_pool_has_its_own_keys() {
    assert_eq!(
        problem(&pool_file("[pools.py.heartbeat]\ninterwal = 1")),
        "\
ostler.toml:5:1: unknown key `interwal` in [pools.py.heartbeat]
  |
5 | interwal = 1
  | ^^^^^^^^
  = did you mean `interval`?

ostler.toml: 1 problem"
    );
    assert_eq!(messages(&pool_file("check = true")), ["`check` must be a table"]);
    assert_eq!(messages("version = 1\npools = 1\n"), ["`pools` must be a table of pools"]);
    assert_eq!(messages("version = 1\n[pools]\npy = 1\n"), ["[pools.py] must be a table"]);
    assert_eq!(
        messages("version = 1\n[pools]\n"),
        ["there must be between 1 and 100 pools, not 0"]
    );
}

#[test]
fn a_contradiction_is_shown_where_it_is_with_the_way_out() {
    assert_eq!(
        problem(&pool_file("threads = 4")),
        "\
ostler.toml:4:11: `threads` has no meaning with profile `process`
  |
4 | threads = 4
  |           ^
  = add `profile = \"thread\"`, or remove `threads`

ostler.toml: 1 problem"
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for (settings, message) in [
        ("threads = 4", "`threads` has no meaning with profile `process`"),
        ("profile = \"async\"\nthreads = 4", "`threads` has no meaning with profile `async`"),
        ("concurrency = 4", "`concurrency` has no meaning with profile `process`"),
        (
            "thread_safety_checks = \"off\"",
            "`thread_safety_checks` has no meaning with profile `process`",
        ),
        (
            "heartbeat = { timeout = 1 }",
            "`timeout` is less than `interval`: every worker would miss",
        ),
        (
            "hang_timeout = 60\nheartbeat = { enabled = false }",
            "`hang_timeout` needs heartbeats, and they are switched off",
        ),
        (
            "hang_timeout = 60\nheartbeat = { independent = true }",
            "`hang_timeout` kills by heartbeats, and they are to report only",
        ),
        ("hang_timeout = 9", "`hang_timeout` is shorter than the first miss of a heartbeat"),
        ("backoff_min = \"1m\"\nbackoff_max = 59", "`backoff_max` is less than `backoff_min`"),
        ("size = 2\nmax = 4", "`size` has no place beside `min` and `max`"),
        ("size = 2\nmin = 2", "`size` has no place beside `min` and `max`"),
        ("min = 3\nmax = 2", "`max` is less than `min`"),
        (
            "key = \"session\"\nmin = 1",
            "`min` must be 0 in a pool with `key`: its workers are made for their keys",
        ),
        ("evict = \"oldest\"", "`evict` has no meaning without `key`"),
        ("evict_min_age = 1", "`evict_min_age` has no meaning without `key`"),
        ("ttl_jitter = 0.2", "`ttl_jitter` has no meaning without `ttl`"),
        (
            "max_memory = \"2GiB\"\nmax_memory_hard = \"1GiB\"",
            "`max_memory_hard` is less than `max_memory`",
        ),
        (
            "[sessions]\nmetadata_max = \"2MiB\"\nmemory_max = \"1MiB\"",
            "`metadata_max` allows one session more than `memory_max` allows all of them",
        ),
        (
            "[sessions]\nprogram_bytes_max = \"1GiB\"",
            "`program_bytes_max` allows one session more than `memory_max` allows all of them",
        ),
    ] {
        assert_eq!(messages(&pool_file(settings)), [message], "{settings}");
    }
}

#[test]
fn each_bound_is_checked() {
    for (setting, message) in [
        ("size = 1001", "`size` must be between 1 and 1000"),
        ("size = -1", "`size` must be between 1 and 1000"),
        ("size = 2.5", "`size` must be a whole number, not a float"),
        ("size = \"many\"", "`size` must be between 1 and 1000"),
        ("min = 1001", "`min` must be between 0 and 1000"),
        ("max = 0", "`max` must be between 1 and 1000"),
        ("idle_ttl = \"31d\"", "`idle_ttl` must be between 0s and 720h"),
        ("scale_up_after = 61", "`scale_up_after` must be between 0s and 1m"),
        ("ttl = 0", "`ttl` must be between 100ms and 720h"),
        ("ttl = 9\nttl_jitter = 0.6", "`ttl_jitter` must be between 0 and 0.5"),
        ("ttl = 9\nttl_jitter = nan", "`ttl_jitter` must be between 0 and 0.5"),
        ("ttl = 9\nttl_jitter = \"x\"", "`ttl_jitter` must be between 0 and 0.5"),
        ("ttl = 9\nttl_jitter = []", "`ttl_jitter` must be a number such as 0.1, not an array"),
        ("max_requests = 0", "`max_requests` must be between 1 and 1000000000"),
        ("max_memory = 5", "`max_memory` must be between 1 MiB and 1024 GiB"),
        ("max_memory_hard = \"2 dogs\"", "`max_memory_hard`: unknown unit `dogs`"),
        ("retire_max = 0", "`retire_max` must be between 1 and 1000"),
        ("save_timeout = 0", "`save_timeout` must be between 10ms and 10m"),
        ("affinity = \"strict\"", "unknown value `strict` for `affinity`"),
        ("affinity_ttl = 0", "`affinity_ttl` must be between 100ms and 24h"),
        ("key = \"tenant\"", "unknown value `tenant` for `key`"),
        ("key = 5", "`key` must be a string, not an integer"),
        ("key = \"session\"\nevict = \"mru\"", "unknown value `mru` for `evict`"),
        ("key = \"session\"\nevict_min_age = -1", "`evict_min_age` must be between 0s and 24h"),
        ("[sessions]\nmax = 0", "`max` must be between 1 and 10000000"),
        ("[sessions]\nttl = 0", "`ttl` must be between 100ms and 8760h"),
        ("[sessions]\nauto_create = 1", "`auto_create` must be true or false, not an integer"),
        ("[sessions]\nmetadata_max = 1", "`metadata_max` must be between 1 KiB and 64 MiB"),
        ("[sessions]\nprograms_max = 10001", "`programs_max` must be between 0 and 10000"),
        ("[sessions]\nmemory_max = 1", "`memory_max` must be between 1 MiB and 1024 GiB"),
        ("[sessions]\nsweep = 0", "`sweep` must be between 100ms and 24h"),
        ("[store]\npath = \"\"", "`` cannot be the name of a file"),
        ("[store]\npath = \"data/\"", "`data/` cannot be the name of a file"),
        ("[store]\npath = 1", "`path` must be a string, not an integer"),
        ("[store]\nurl = \"http://h/d\"", "`url` must begin with postgres://"),
        ("[store]\nurl = \"postgres://h\"", "`url` does not say which database"),
        ("[store]\npath = \"x\"\nurl = \"postgres://h/d\"", "[store] has both `path` and `url`"),
        ("[store]\nworker_retention = 0", "`worker_retention` must be between 1m and 87600h"),
        ("[jobs]\nmax = 0", "`max` must be between 1 and 100000000"),
        ("[jobs]\npayload_max = 1", "`payload_max` must be between 1 KiB and 1 GiB"),
        ("[jobs]\nresult_max = \"2GiB\"", "`result_max` must be between 1 KiB and 1 GiB"),
        ("[jobs]\nevents_max = -1", "`events_max` must be between 0 and 10000000"),
        ("[jobs]\nretention = 0", "`retention` must be between 1m and 87600h"),
        ("[jobs]\ntimeout = 1e-6", "`timeout` is less than 1ms"),
        ("[jobs]\nschedules_max = 1000001", "`schedules_max` must be between 0 and 1000000"),
        ("[idempotency]\nttl = 0", "`ttl` must be between 1s and 8760h"),
        ("[idempotency]\nmax = 0", "`max` must be between 1 and 100000000"),
        ("dedicated_max = 1001", "`dedicated_max` must be between 0 and 1000"),
        ("supervisor_timeout = 0", "`supervisor_timeout` must be between 1s and 1h"),
        ("gang_patience = \"11m\"", "`gang_patience` must be between 0s and 10m"),
        ("queue_max = 1000001", "`queue_max` must be between 0 and 1000000"),
        ("queue_timeout = 0", "`queue_timeout` must be between 1ms and 24h"),
        ("start_timeout = \"1d\"", "`start_timeout` must be between 100ms and 1h"),
        ("start_batch = 0", "`start_batch` must be between 1 and 1000"),
        ("start_batch_delay = 61", "`start_batch_delay` must be between 0s and 1m"),
        ("request_timeout = nan", "`request_timeout` must be between 1ms and 168h"),
        ("request_timeout = -0.5", "`request_timeout` must be between 1ms and 168h"),
        ("cancel_grace = \"11m\"", "`cancel_grace` must be between 0s and 10m"),
        ("stop_grace = \"11m\"", "`stop_grace` must be between 0s and 10m"),
        ("max_result = 1", "`max_result` must be between 1 KiB and 1 GiB"),
        ("max_line = \"2GiB\"", "`max_line` must be between 1 KiB and 1 GiB"),
        ("attempts = 0", "`attempts` must be between 1 and 100"),
        ("retry_delay = 61", "`retry_delay` must be between 0s and 1m"),
        ("quarantine = \"25h\"", "`quarantine` must be between 0s and 24h"),
        ("hang_timeout = \"999ms\"", "`hang_timeout` must be between 1s and 24h"),
        ("strategy = \"rund_robin\"", "unknown value `rund_robin` for `strategy`"),
        ("admission = 1", "`admission` must be a string, not an integer"),
        ("on_disconnect = \"x\"", "unknown value `x` for `on_disconnect`"),
        ("capacity = 4", "`capacity` must be a string, not an integer"),
        ("profile = \"threads\"", "unknown value `threads` for `profile`"),
        ("profile = \"thread\"\nthreads = 0", "`threads` must be between 1 and 10000"),
        ("heartbeat = { misses = 0 }", "`misses` must be between 1 and 1000"),
        ("heartbeat = { interval = 0 }", "`interval` must be between 10ms and 1h"),
        ("heartbeat = { enabled = 1 }", "`enabled` must be true or false, not an integer"),
        ("heartbeat = { enabled = \"no\" }", "`enabled` must be true or false, not a string"),
        ("check = { timeout = \"11m\" }", "`timeout` must be between 10ms and 10m"),
        ("check = { again = 0 }", "`again` must be between 10ms and 24h"),
        ("max_body = \"65MiB\"", "`max_body` is larger than the server's"),
        ("max_body = \"12 apples\"", "`max_body`: unknown unit `apples`"),
        ("prefetch = 65", "`prefetch` must be between 0 and 64"),
        ("restart_max = 0", "`restart_max` must be between 1 and 10000"),
        ("restart_period = 0", "`restart_period` must be between 1s and 1h"),
        ("restart_cooldown = 0", "`restart_cooldown` must be between 1s and 1h"),
        ("backoff_min = 0", "`backoff_min` must be between 1ms and 1h"),
        ("backoff_max = \"100ms\"", "`backoff_max` is less than `backoff_min`"),
        ("socket = \"tcp\"", "unknown value `tcp` for `socket`"),
        ("cwd = \"absent\"", "no such directory: /srv/absent"),
        ("command = [\"x\"]", "[pools.py] has both `python` and `command`"),
        ("env = { \"1X\" = \"a\" }", "`1X` is not the name of an environment variable"),
        ("env = { OSTLER_FD = \"3\" }", "`OSTLER_FD` is set by the server"),
        ("env = { X = \"a\\u0000b\" }", "the value of `X` contains a zero byte"),
        ("env = { X = 1 }", "`env` must be a table of strings, not an integer"),
        ("env_pass = [\"A=B\"]", "`A=B` is not the name of an environment variable"),
        ("env_pass = \"PATH\"", "`env_pass` must be an array of strings, not a string"),
        ("cwd = \"${NONE}\"", "the environment variable `NONE` is not set"),
    ] {
        assert_eq!(messages(&pool_file(setting)), [message], "{setting}");
    }
}

#[test]
fn a_program_must_be_one_that_can_be_run() {
    for (program, message) in [
        ("python = \"absent.py\"", "no such file: /srv/absent.py"),
        ("python = 3", "`python` must be a string, not an integer"),
        ("command = []", "`command` must begin with a program, and no word may hold a zero byte"),
        ("command = [1]", "`command` must be an array of strings, not an integer"),
        (
            "command = [\"x\"]\ninterpreter = \"python3\"",
            "`interpreter` has no meaning beside `command`",
        ),
    ] {
        let text = format!("version = 1\n[pools.py]\n{program}\n");
        assert!(messages(&text).contains(&message.to_owned()), "{program}: {:?}", messages(&text));
    }
}

#[test]
fn settings_that_nothing_obeys_are_refused() {
    for setting in ["max_sessions = 5", "workspace = 5", "dedicated = 5"] {
        let key = setting.split(' ').next().expect("a key");
        let message = format!("unknown key `{key}` in [pools.py]");
        assert_eq!(messages(&pool_file(setting)), [message], "{setting}");
    }
    let store = format!(
        "{}[store]\nhost = \"x\"\n[sessions]\nquota = 1\n[jobs]\nattempts = 1\n",
        pool_file("")
    );
    let unknown = [
        "unknown key `host` in [store]",
        "unknown key `quota` in [sessions]",
        "unknown key `attempts` in [jobs]",
    ];
    assert_eq!(messages(&store), unknown);
}

#[test]
fn the_value_of_a_variable_does_not_appear_in_an_error() {
    let shown = problem(&pool_file("env = { \"1BAD\" = \"${SECRET}\" }\nenv_pass = 3"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_password_that_is_written_in_the_file_does_not_appear_in_an_error() {
    for store in [
        "[store]\nurl = \"postgres://u:hunter2@\"",
        "[store]\nurl = \"mysql://u:hunter2@h/d\"",
        "[store]\nurl = \"postgres://u:hunter2@h/d\" nonsense",
        "[store]\nport = 1\nurl = \"postgres:///d?password=hunter2\"",
    ] {
        let shown = problem(&pool_file(store));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_socket_path_that_the_system_cannot_bind_is_refused() {
    let socket = format!("[server]\nsocket = \"/{}\"\n", "x".repeat(107));
    let message = "the socket's path has 108 bytes, the system allows 107";
    assert_eq!(messages(&format!("{}{socket}", pool_file(""))), [message]);
}
