//! Whole files in, whole configurations or exact error texts out.

use std::path::Path;
use std::time::Duration;

use super::*;

fn variable(name: &str) -> Option<String> {
    match name {
        "PORT" => Some("7000".to_owned()),
        "WORKERS" => Some("3".to_owned()),
        "SECRET" => Some("hunter2".to_owned()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Config, String> {
    let around = Surroundings {
        root: Path::new("/srv"),
        cores: 4,
        variable: &variable,
        exists: &|path| !path.ends_with("absent.py") && !path.ends_with("absent"),
    };
    read(&Source::new("ostler.toml", text), &around).map_err(|invalid| invalid.to_string())
}

fn valid(text: &str) -> Config {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn problem(text: &str) -> String {
    parse(text).expect_err("this file has a problem")
}

/// The settings of one pool named `py`, under the smallest valid file.
fn pool_file(settings: &str) -> String {
    format!("version = 1\n[pools.py]\npython = \"w.py\"\n{settings}\n")
}

#[test]
fn the_smallest_file_gets_every_default() {
    let config = valid(&pool_file(""));
    let server = &config.server;
    assert_eq!(server.listen.to_string(), "127.0.0.1:6785");
    assert_eq!(server.socket, Path::new("/srv/.ostler/ostler.sock"));
    assert_eq!(server.max_body, 64 << 20);
    assert_eq!(server.drain_timeout, Duration::from_secs(30));

    let pool = &config.pools[0];
    assert_eq!(pool.name.as_str(), "py");
    assert_eq!(
        pool.program,
        Program::Python { file: "/srv/w.py".into(), interpreter: "python3".into() }
    );
    assert_eq!(pool.size, 4);
    assert_eq!(pool.cwd, Path::new("/srv"));
    assert_eq!(pool.containment, Containment::Shim);
    assert_eq!(pool.socket, WorkerSocket::Inherited);
    assert_eq!(pool.start.timeout, Duration::from_secs(30));
    assert_eq!(pool.start.batch, 4);
    assert_eq!(pool.start.batch_delay, Duration::ZERO);
    assert_eq!(pool.queue.max, 1_000);
    assert_eq!(pool.queue.timeout, Duration::from_secs(10));
    assert_eq!(pool.queue.prefetch, 1);
    assert_eq!(pool.request.timeout, Duration::from_secs(60));
    assert_eq!(pool.request.cancel_grace, Duration::from_secs(5));
    assert_eq!(pool.request.max_body, 64 << 20);
    assert_eq!(pool.request.max_result, 64 << 20);
    assert_eq!(pool.request.max_line, 16 << 20);
    assert_eq!(pool.stop_grace, Duration::from_secs(2));
    assert_eq!(pool.restart.max, 8);
    assert_eq!(pool.restart.period, Duration::from_secs(30));
    assert_eq!(pool.restart.cooldown, Duration::from_secs(30));
    assert_eq!(pool.backoff.min, Duration::from_millis(200));
    assert_eq!(pool.backoff.max, Duration::from_secs(30));
}

#[test]
fn every_setting_is_read() {
    let config = valid(
        r#"
version = 1

[server]
listen = "[::1]:${PORT}"
socket = "/run/ostler.sock"
max_body = "8 MiB"
drain_timeout = "1m"
default_pool = "node"

[store]

[pools.py]
python = "py/w.py"
interpreter = ".venv/bin/python"
size = "${WORKERS}"
env = { TOKEN = "${SECRET}", MODE = "${MODE:-fast}" }
env_pass = ["CUDA_VISIBLE_DEVICES"]
cwd = "py"
containment = "namespace"
socket = "named"
start_timeout = 90
start_batch = 2
start_batch_delay = 0.25
queue_max = 0
queue_timeout = "500ms"
request_timeout = "1h"
cancel_grace = 1
stop_grace = 3
max_body = 4096
max_result = "1MiB"
max_line = "64kB"
prefetch = 2
restart_max = 9
restart_period = "1m"
restart_cooldown = "5s"
backoff_min = "1s"
backoff_max = "2s"

[pools.node]
command = ["./bin/worker", "--fast"]
"#,
    );
    assert_eq!(config.server.listen.to_string(), "[::1]:7000");
    assert_eq!(config.server.socket, Path::new("/run/ostler.sock"));
    assert_eq!(config.server.max_body, 8 << 20);
    assert_eq!(config.server.drain_timeout, Duration::from_secs(60));
    assert_eq!(config.default_pool().name.as_str(), "node");

    let py = &config.pools[0];
    let program = Program::Python {
        file: "/srv/py/w.py".into(),
        interpreter: "/srv/.venv/bin/python".into(),
    };
    let expected = Pool {
        name: PoolName::parse("py").expect("a name"),
        program,
        size: 3,
        env: [("TOKEN", "hunter2"), ("MODE", "fast")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        env_pass: vec!["CUDA_VISIBLE_DEVICES".to_owned()],
        cwd: "/srv/py".into(),
        containment: Containment::Namespace,
        socket: WorkerSocket::Named,
        start: Start {
            timeout: Duration::from_secs(90),
            batch: 2,
            batch_delay: Duration::from_millis(250),
        },
        queue: Queue { max: 0, timeout: Duration::from_millis(500), prefetch: 2 },
        request: Request {
            timeout: Duration::from_secs(3_600),
            cancel_grace: Duration::from_secs(1),
            max_body: 4_096,
            max_result: 1 << 20,
            max_line: 64_000,
        },
        stop_grace: Duration::from_secs(3),
        restart: Restart {
            max: 9,
            period: Duration::from_secs(60),
            cooldown: Duration::from_secs(5),
        },
        backoff: Backoff { min: Duration::from_secs(1), max: Duration::from_secs(2) },
    };
    assert_eq!(py, &expected);

    let node = &config.pools[1];
    let argv = ["/srv/./bin/worker", "--fast"].map(str::to_owned).to_vec();
    assert_eq!(node.program, Program::Command { argv });
    assert_eq!(node.request.max_body, 8 << 20, "the server's");
}

#[test]
fn pools_keep_the_order_of_the_file_and_the_first_is_the_default() {
    let config =
        valid("version = 1\n[pools.zebra]\ncommand = [\"z\"]\n[pools.ant]\ncommand = [\"a\"]\n");
    let names: Vec<_> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["zebra", "ant"]);
    assert_eq!(config.default_pool().name.as_str(), "zebra");
}

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
   = known keys: version, server, store, pools

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

/// The messages of a file's problems, without their drawings.
fn messages(text: &str) -> Vec<String> {
    let shown = problem(text);
    let lines = shown.lines().filter_map(|line| {
        let rest = line.strip_prefix("ostler.toml:")?;
        rest.split_once(": ").map(|(_, message)| message.to_owned())
    });
    lines.collect()
}

#[test]
fn each_bound_is_checked() {
    for (setting, message) in [
        ("size = 1001", "`size` must be between 1 and 1000"),
        ("size = -1", "`size` must be between 1 and 1000"),
        ("size = 2.5", "`size` must be a whole number, not a float"),
        ("size = \"many\"", "`size` must be between 1 and 1000"),
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
    for setting in ["min = 1", "max_sessions = 5", "profile = \"thread\"", "ttl = 5"] {
        let key = setting.split(' ').next().expect("a key");
        let message = format!("unknown key `{key}` in [pools.py]");
        assert_eq!(messages(&pool_file(setting)), [message], "{setting}");
    }
    let store = format!("{}[store]\npath = \"x.db\"\n", pool_file(""));
    assert_eq!(messages(&store), ["unknown key `path` in [store]"]);
}

#[test]
fn the_value_of_a_variable_does_not_appear_in_an_error() {
    let shown = problem(&pool_file("env = { \"1BAD\" = \"${SECRET}\" }\nenv_pass = 3"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_socket_path_that_the_system_cannot_bind_is_refused() {
    let socket = format!("[server]\nsocket = \"/{}\"\n", "x".repeat(107));
    let message = "the socket's path has 108 bytes, the system allows 107";
    assert_eq!(messages(&format!("{}{socket}", pool_file(""))), [message]);
}

#[test]
fn a_file_on_disk_is_the_root_of_its_paths() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("site.toml");
    std::fs::write(&file, pool_file("")).expect("written");
    let missing = load(&file).expect_err("w.py is missing").to_string();
    assert!(missing.contains("no such file"), "{missing}");
    std::fs::write(directory.path().join("w.py"), "").expect("written");
    let config = load(&file).expect("valid");
    assert_eq!(config.root, directory.path());
    assert_eq!(config.file.as_deref(), Some(file.as_path()));
}

#[test]
fn a_file_that_cannot_be_text_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("x.toml");
    assert!(matches!(load(&file), Err(LoadError::Unreadable { .. })));
    std::fs::write(&file, b"ab\xff").expect("written");
    assert!(matches!(load(&file), Err(LoadError::NotText { at: 2, .. })));
    std::fs::write(&file, vec![b'#'; 1 + FILE_MAX as usize]).expect("written");
    assert!(matches!(load(&file), Err(LoadError::TooLarge { .. })));
    let named = load(&file).expect_err("too large").to_string();
    assert!(named.contains("x.toml"), "{named}");
}

#[test]
fn a_client_reads_the_server_whatever_is_wrong_with_the_pools() {
    let around =
        Surroundings { root: Path::new("/srv"), cores: 4, variable: &variable, exists: &|_| false };
    let text = "[server]\nsocket = \"s\"\n[pools.Nope]\nwhat = 1\n";
    let server = document::read_server(&Source::new("o", text), &around).expect("a server");
    assert_eq!(server.socket, Path::new("/srv/s"));
    let broken = Source::new("o", "[server]\nsocket = 3\n");
    assert!(document::read_server(&broken, &around).is_err());
}

#[test]
fn a_python_file_alone_is_a_configuration() {
    let config = Config::of_python_file(Path::new("dir/Hello World.py"), Path::new("/srv"), 2);
    assert_eq!(config.server.socket, Path::new("/srv/.ostler/ostler.sock"));
    let [pool] = &config.pools[..] else { panic!("one pool") };
    assert_eq!(pool.name.as_str(), "hello-world");
    assert_eq!(pool.size, 2);
    assert_eq!(pool.program, Program::python("/srv/dir/Hello World.py".into()));
}

#[test]
fn another_size_brings_its_own_restart_budget_unless_one_was_set() {
    let pool = |text: &str| valid(&pool_file(text)).pools.remove(0).with_size(50);
    assert_eq!(pool("").restart.max, 100);
    assert_eq!(pool("restart_max = 7").restart.max, 7);
}

/// A small generator with a fixed seed: the same inputs on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn no_input_makes_the_reader_panic() {
    let valid_text = "version = 1\n[server]\nlisten = \"127.0.0.1:1\"\n[pools.py]\npython = \"ü${PORT:-x}\"\n\
        size = 0x10\nenv = { A = \"b\" }\nqueue_timeout = 1e3\ncommand = [\"a\", 'b']\nmax_body = \"1.5MiB\"\n";
    let words = [
        "[pools.",
        "]",
        "[[",
        "=",
        "\"",
        "'''",
        "${",
        "}",
        ":-",
        "\n",
        "\t",
        "\u{0}",
        "é",
        "\u{1b}",
        "9e999",
        "-",
        "_",
        "0x",
        "inf",
        "version",
        "pools",
        "server",
        "size",
        "{",
        ".",
        "#",
        "1979-05-27",
        "\\u00",
    ];
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4_000 {
        let mut bytes = valid_text.as_bytes().to_vec();
        for _ in 0..=dice.roll(6) {
            let at = dice.roll(bytes.len() + 1);
            match dice.roll(4) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = dice.roll(256) as u8,
                2 => drop(bytes.splice(at..at, words[dice.roll(words.len())].bytes())),
                _ => drop(bytes.drain(at..(at + dice.roll(20)).min(bytes.len()))),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Err(shown) = parse(&text) {
            assert!(shown.contains("problem"), "{text:?}");
            assert!(!shown.contains('\u{1b}'), "{text:?}");
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let text = format!("version = 1\nx = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(parse(&text).is_err());
}
