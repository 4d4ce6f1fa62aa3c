//! What a valid file means.

use super::*;

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
fn a_pool_of_one_request_at_a_time_is_the_default() {
    let pool = &valid(&pool_file("")).pools[0];
    assert_eq!(pool.sharing.profile, Profile::Process);
    assert_eq!(pool.sharing.capacity, 1);
    assert_eq!(pool.sharing.capacity_from, CapacityFrom::Min);
    assert_eq!(pool.sharing.thread_safety, ThreadSafety::Warn);
    assert_eq!(pool.strategy, Strategy::LeastLoaded);
    assert_eq!(pool.queue.admission, Admission::Queue);
    assert_eq!(pool.on_disconnect, OnDisconnect::Cancel);
    assert_eq!(pool.request.attempts, 3);
    assert_eq!(pool.request.retry_delay, Duration::from_millis(50));
    assert_eq!(pool.quarantine, Duration::from_secs(60));
}

#[test]
fn nothing_retires_or_scales_unless_it_is_asked_to() {
    let pool = &valid(&pool_file("")).pools[0];
    let scaling = Scaling {
        min: 4,
        idle_ttl: Some(Duration::from_secs(300)),
        up_after: Duration::from_millis(50),
    };
    assert_eq!((pool.size, pool.scaling), (4, scaling));
    let retire = Retire {
        ttl: None,
        ttl_jitter: 0.1,
        max_requests: None,
        max_memory: None,
        max_memory_hard: None,
        max_at_once: 1,
        save_timeout: Duration::from_secs(5),
    };
    assert_eq!(pool.retire, retire);
    let affinity_ttl = Duration::from_secs(300);
    let binding = Binding { affinity: Affinity::Hint, affinity_ttl, keyed: None };
    assert_eq!(pool.binding, binding);
}

#[test]
fn size_and_bounds_say_how_many_workers_there_are() {
    // A machine with 4 cores.
    for (settings, min, max) in [
        ("", 4, 4),
        ("size = 6", 6, 6),
        ("min = 2\nmax = 8", 2, 8),
        ("min = 0\nmax = 8", 0, 8),
        ("max = 8", 1, 8),
        ("max = 1", 1, 1),
        ("min = 2", 2, 4),
        ("min = 9", 9, 9),
        ("key = \"session\"", 0, 4),
        ("key = \"session\"\nsize = 6", 0, 6),
        ("key = \"workspace\"\nmin = 0\nmax = 9", 0, 9),
    ] {
        let pool = &valid(&pool_file(settings)).pools[0];
        assert_eq!((pool.scaling.min, pool.size), (min, max), "{settings}");
    }
    let restart_max = valid(&pool_file("min = 2\nmax = 8")).pools[0].restart.max;
    assert_eq!(restart_max, 16, "all of them may die twice");
}

#[test]
fn idle_workers_stay_for_ever_where_it_is_said() {
    let pool = &valid(&pool_file("min = 0\nidle_ttl = 0")).pools[0];
    assert_eq!(pool.scaling.idle_ttl, None);
}

#[test]
fn a_session_that_has_its_own_worker_waits_for_it() {
    for (settings, affinity) in [
        ("key = \"session\"", Affinity::StrictQueue),
        ("key = \"session\"\naffinity = \"strict_fail_fast\"", Affinity::StrictFailFast),
        ("key = \"workspace\"", Affinity::Hint),
        ("affinity = \"strict_queue\"", Affinity::StrictQueue),
    ] {
        let pool = &valid(&pool_file(settings)).pools[0];
        assert_eq!(pool.binding.affinity, affinity, "{settings}");
    }
    let by = |settings: &str| valid(&pool_file(settings)).pools[0].binding.keyed;
    let (evict, evict_min_age) = (Evict::Lru, Duration::ZERO);
    let keyed = Some(Keyed { by: KeyedBy::Session, evict, evict_min_age });
    assert_eq!(by("key = \"session\""), keyed);
}

#[test]
fn sessions_and_the_store_have_finite_defaults_under_the_root() {
    let config = valid(&pool_file(""));
    let sessions = Sessions {
        max: 10_000,
        ttl: Duration::from_secs(3_600),
        auto_create: true,
        metadata_max: 64 << 10,
        programs_max: 64,
        program_bytes_max: 1 << 20,
        memory_max: 256 << 20,
        sweep: Duration::from_secs(60),
    };
    assert_eq!(config.sessions, sessions);
    let place = Place::Sqlite("/srv/.ostler/ostler.db".into());
    let week = Duration::from_secs(7 * 86_400);
    assert_eq!((config.store.place, config.store.worker_retention), (place, week));
}

#[test]
fn jobs_and_keys_have_finite_defaults() {
    let config = valid(&pool_file(""));
    let jobs = Jobs {
        max: 1_000_000,
        payload_max: 16 << 20,
        result_max: 64 << 20,
        events_max: 10_000,
        retention: Duration::from_secs(7 * 86_400),
        timeout: Some(Duration::from_secs(3_600)),
        schedules_max: 1_000,
    };
    assert_eq!(config.jobs, jobs);
    let idempotency = Idempotency { ttl: Duration::from_secs(3_600), max: 1_000_000 };
    assert_eq!(config.idempotency, idempotency);
    let supervision = Supervision {
        dedicated_max: 10,
        timeout: Duration::from_secs(30),
        gang_patience: Duration::from_secs(5),
    };
    assert_eq!(config.pools[0].supervision, supervision);
}

#[test]
fn a_database_of_others_is_named_by_its_address_and_shown_without_its_password() {
    let file = pool_file("[store]\nurl = \"postgres://ostler:${SECRET}@127.0.0.1/jobs\"");
    let config = valid(&file);
    let Place::Postgres(url) = &config.store.place else { panic!("{:?}", config.store) };
    assert_eq!(url.reveal(), "postgres://ostler:hunter2@127.0.0.1/jobs");
    assert_eq!(url.to_string(), "postgres://ostler:***@127.0.0.1/jobs");
    assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
}

#[test]
fn a_job_may_be_left_all_the_time_it_takes() {
    assert_eq!(valid(&pool_file("[jobs]\ntimeout = 0")).jobs.timeout, None);
}

#[test]
fn health_is_watched_by_default() {
    let pool = &valid(&pool_file("")).pools[0];
    let heartbeat = Heartbeat {
        interval: Duration::from_secs(2),
        timeout: Duration::from_secs(10),
        misses: 3,
        initial_delay: Duration::ZERO,
        independent: false,
    };
    let check = Check {
        interval: Duration::from_secs(30),
        timeout: Duration::from_secs(5),
        again: Duration::from_secs(5),
        failures: 3,
    };
    let (heartbeat, check) = (Some(heartbeat), Some(check));
    assert_eq!(pool.health, Health { heartbeat, check, hang_timeout: None });
}

#[test]
fn each_kind_of_health_can_be_switched_off() {
    let settings =
        "[pools.py.heartbeat]\nenabled = false\ninterval = 1\n[pools.py.check]\nenabled = false";
    let health = valid(&pool_file(settings)).pools[0].health;
    assert_eq!(health, Health { heartbeat: None, check: None, hang_timeout: None });
}

#[test]
fn the_profile_decides_how_many_requests_a_worker_holds() {
    for (settings, profile, capacity) in [
        ("profile = \"thread\"", Profile::Thread, 8),
        ("profile = \"thread\"\nthreads = 3", Profile::Thread, 3),
        ("profile = \"async\"", Profile::Async, 64),
        ("profile = \"async\"\nconcurrency = 500", Profile::Async, 500),
        ("capacity = \"worker\"", Profile::Process, 1),
    ] {
        let sharing = valid(&pool_file(settings)).pools[0].sharing;
        assert_eq!((sharing.profile, sharing.capacity), (profile, capacity), "{settings}");
    }
}

/// A default that is published but not the one that holds would be a lie to every reader.
#[test]
fn every_default_that_is_published_is_the_one_that_holds() {
    let schema = schema();
    let pool = &schema["properties"]["pools"]["additionalProperties"]["properties"];
    let tables = [
        ("[server]\n", &schema["properties"]["server"]["properties"]),
        ("[store]\n", &schema["properties"]["store"]["properties"]),
        ("[sessions]\n", &schema["properties"]["sessions"]["properties"]),
        ("[jobs]\n", &schema["properties"]["jobs"]["properties"]),
        ("[idempotency]\n", &schema["properties"]["idempotency"]["properties"]),
        ("", pool),
        ("[pools.py.heartbeat]\n", &pool["heartbeat"]["properties"]),
        ("[pools.py.check]\n", &pool["check"]["properties"]),
    ];
    let mut compared = 0;
    for (title, properties) in tables {
        for (key, property) in properties.as_object().expect("keys") {
            let Some(default) = property.get("default") else { continue };
            // These have a default beside the setting that gives them a meaning.
            let beside = match (title, key.as_str()) {
                ("", "threads" | "thread_safety_checks") => "profile = \"thread\"",
                ("", "concurrency") => "profile = \"async\"",
                ("", "ttl_jitter") => "ttl = \"1h\"",
                ("", "evict" | "evict_min_age") => "key = \"workspace\"",
                _ => "",
            };
            let meaning = |settings: &str| Config {
                written: toml::Table::new(),
                ..valid(&pool_file(settings))
            };
            let written = meaning(&format!("{beside}\n{title}{key} = {default}"));
            assert_eq!(written, meaning(beside), "{title}{key} = {default}");
            compared += 1;
        }
    }
    assert!(compared > 55, "{compared}");
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
path = "state/x.db"
worker_retention = "1d"

[jobs]
max = 7
payload_max = "1 KiB"
result_max = 2048
events_max = 0
retention = "1h"
timeout = "1m"
schedules_max = 3

[idempotency]
ttl = 60
max = 8

[sessions]
max = 50
ttl = "10m"
auto_create = false
metadata_max = "1KiB"
programs_max = 3
program_bytes_max = "2 KiB"
memory_max = "1MiB"
sweep = 5

[pools.py]
python = "py/w.py"
interpreter = ".venv/bin/python"
min = 1
max = "${WORKERS}"
idle_ttl = "1m"
scale_up_after = "20ms"
ttl = "2h"
ttl_jitter = 0.25
max_requests = 1_000
max_memory = "512MiB"
max_memory_hard = "1GiB"
retire_max = 2
save_timeout = "3s"
affinity = "strict_fail_fast"
affinity_ttl = "1h"
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
profile = "async"
concurrency = 16
capacity = "worker"
strategy = "round_robin"
admission = "deadline"
on_disconnect = "continue"
attempts = 5
retry_delay = "20ms"
quarantine = 0
dedicated_max = 4
supervisor_timeout = 45
gang_patience = "300ms"
hang_timeout = "2m"

[pools.py.heartbeat]
enabled = "${BEAT:-true}"
interval = 1
timeout = "3s"
misses = 4
initial_delay = "5s"

[pools.py.check]
interval = "1m"
timeout = 2
again = 3
failures = 1

[pools.node]
command = ["./bin/worker", "--fast"]
profile = "thread"
thread_safety_checks = "refuse"
strategy = "lru"
heartbeat = { independent = true }
key = "workspace"
evict = "least_used"
evict_min_age = "1m"
"#,
    );
    assert_eq!(config.server.listen.to_string(), "[::1]:7000");
    assert_eq!(config.server.socket, Path::new("/run/ostler.sock"));
    assert_eq!(config.server.max_body, 8 << 20);
    assert_eq!(config.server.drain_timeout, Duration::from_secs(60));
    assert_eq!(config.default_pool().name.as_str(), "node");
    let place = Place::Sqlite("/srv/state/x.db".into());
    let day = Duration::from_secs(86_400);
    assert_eq!((config.store.place, config.store.worker_retention), (place, day));
    let jobs = Jobs {
        max: 7,
        payload_max: 1 << 10,
        result_max: 2 << 10,
        events_max: 0,
        retention: Duration::from_secs(3_600),
        timeout: Some(Duration::from_secs(60)),
        schedules_max: 3,
    };
    assert_eq!(config.jobs, jobs);
    assert_eq!(config.idempotency, Idempotency { ttl: Duration::from_secs(60), max: 8 });
    let sessions = Sessions {
        max: 50,
        ttl: Duration::from_secs(600),
        auto_create: false,
        metadata_max: 1 << 10,
        programs_max: 3,
        program_bytes_max: 2 << 10,
        memory_max: 1 << 20,
        sweep: Duration::from_secs(5),
    };
    assert_eq!(config.sessions, sessions);

    let py = &config.pools[0];
    let program = Program::Python {
        file: "/srv/py/w.py".into(),
        interpreter: "/srv/.venv/bin/python".into(),
    };
    let expected = Pool {
        name: PoolName::parse("py").expect("a name"),
        program,
        size: 3,
        scaling: Scaling {
            min: 1,
            idle_ttl: Some(Duration::from_secs(60)),
            up_after: Duration::from_millis(20),
        },
        sharing: Sharing {
            profile: Profile::Async,
            capacity: 16,
            capacity_from: CapacityFrom::Worker,
            thread_safety: ThreadSafety::Warn,
        },
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
        strategy: Strategy::RoundRobin,
        binding: Binding {
            affinity: Affinity::StrictFailFast,
            affinity_ttl: Duration::from_secs(3_600),
            keyed: None,
        },
        queue: Queue {
            admission: Admission::Deadline,
            max: 0,
            timeout: Duration::from_millis(500),
            prefetch: 2,
        },
        request: Request {
            timeout: Duration::from_secs(3_600),
            cancel_grace: Duration::from_secs(1),
            attempts: 5,
            retry_delay: Duration::from_millis(20),
            max_body: 4_096,
            max_result: 1 << 20,
            max_line: 64_000,
        },
        on_disconnect: OnDisconnect::Continue,
        health: Health {
            heartbeat: Some(Heartbeat {
                interval: Duration::from_secs(1),
                timeout: Duration::from_secs(3),
                misses: 4,
                initial_delay: Duration::from_secs(5),
                independent: false,
            }),
            check: Some(Check {
                interval: Duration::from_secs(60),
                timeout: Duration::from_secs(2),
                again: Duration::from_secs(3),
                failures: 1,
            }),
            hang_timeout: Some(Duration::from_secs(120)),
        },
        retire: Retire {
            ttl: Some(Duration::from_secs(7_200)),
            ttl_jitter: 0.25,
            max_requests: Some(1_000),
            max_memory: Some(512 << 20),
            max_memory_hard: Some(1 << 30),
            max_at_once: 2,
            save_timeout: Duration::from_secs(3),
        },
        stop_grace: Duration::from_secs(3),
        restart: Restart {
            max: 9,
            period: Duration::from_secs(60),
            cooldown: Duration::from_secs(5),
        },
        backoff: Backoff { min: Duration::from_secs(1), max: Duration::from_secs(2) },
        quarantine: Duration::ZERO,
        supervision: Supervision {
            dedicated_max: 4,
            timeout: Duration::from_secs(45),
            gang_patience: Duration::from_millis(300),
        },
    };
    assert_eq!(py, &expected);

    let node = &config.pools[1];
    let argv = ["/srv/./bin/worker", "--fast"].map(str::to_owned).to_vec();
    assert_eq!(node.program, Program::Command { argv });
    assert_eq!(node.request.max_body, 8 << 20, "the server's");
    assert_eq!(node.sharing.thread_safety, ThreadSafety::Refuse);
    assert_eq!(node.strategy, Strategy::Lru);
    let keyed = Keyed {
        by: KeyedBy::Workspace,
        evict: Evict::LeastUsed,
        evict_min_age: Duration::from_secs(60),
    };
    assert_eq!(node.binding.keyed, Some(keyed));
    assert!(node.health.heartbeat.is_some_and(|heartbeat| heartbeat.independent));
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
fn a_python_file_alone_is_a_configuration() {
    let config = Config::of_python_file(Path::new("dir/Hello World.py"), Path::new("/srv"), 2);
    assert_eq!(config.server.socket, Path::new("/srv/.ostler/ostler.sock"));
    assert_eq!(config.store, Store::in_file("/srv/.ostler/ostler.db".into()));
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

#[test]
fn another_size_replaces_the_bounds_and_a_key_keeps_its_workers_on_demand() {
    let pool = |text: &str| valid(&pool_file(text)).pools.remove(0);
    let sized = pool("min = 1\nmax = 8").with_size(3);
    assert_eq!((sized.scaling.min, sized.size), (3, 3));
    let keyed = pool("key = \"session\"").with_size(3);
    assert_eq!((keyed.scaling.min, keyed.size), (0, 3));
    let one = keyed.of_one_worker();
    assert_eq!((one.scaling.min, one.size, one.binding.keyed), (1, 1, None));
}
