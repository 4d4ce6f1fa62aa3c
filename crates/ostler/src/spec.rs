//! A pool's description, made of its part of the configuration. The two are separate types so that
//! the library does not know the file, and the file does not change with the library.

use ostler_core::{
    Admission, Backoff, CapacityFrom, Checkup, Evict, Heartbeat, Keyed, Settings, Strategy,
};
use ostler_runtime::{
    Affinity, KeyedBy, OnDisconnect, PoolSpec, ProcessSettings, Profile, ThreadSafety, containment,
};

use crate::config::{self, Program, WorkerSocket};

pub(crate) fn spec(pool: &config::Pool, server: &config::Server) -> PoolSpec {
    let program = match &pool.program {
        Program::Python { file, interpreter } => ostler_runtime::Program::Python {
            file: file.clone(),
            interpreter: interpreter.display().to_string(),
        },
        Program::Command { argv } => {
            ostler_runtime::Program::Command { argv: argv.iter().map(Into::into).collect() }
        }
    };
    PoolSpec {
        processes: processes(pool),
        env_pass: pool.env_pass.clone(),
        request_timeout: pool.request.timeout,
        max_body: pool.request.max_body,
        max_result: pool.request.max_result,
        max_line: pool.request.max_line,
        on_disconnect: match pool.on_disconnect {
            config::OnDisconnect::Cancel => OnDisconnect::Cancel,
            config::OnDisconnect::Continue => OnDisconnect::Continue,
        },
        affinity: match pool.binding.affinity {
            config::Affinity::Hint => Affinity::Hint,
            config::Affinity::StrictQueue => Affinity::StrictQueue,
            config::Affinity::StrictFailFast => Affinity::StrictFailFast,
        },
        key: pool.binding.keyed.map(|keyed| match keyed.by {
            config::KeyedBy::Session => KeyedBy::Session,
            config::KeyedBy::Workspace => KeyedBy::Workspace,
        }),
        ..PoolSpec::new(pool.name.as_str(), program, settings(pool, server))
    }
}

fn processes(pool: &config::Pool) -> ProcessSettings {
    let (sharing, capacity) = (&pool.sharing, pool.sharing.capacity);
    ProcessSettings {
        env: pool.env.clone().into_iter().collect(),
        cwd: Some(pool.cwd.clone()),
        named_socket: pool.socket == WorkerSocket::Named,
        containment: match pool.containment {
            config::Containment::Shim => containment::Containment::Shim,
            config::Containment::Namespace => containment::Containment::Namespace,
        },
        profile: match sharing.profile {
            config::Profile::Process => Profile::Process,
            config::Profile::Thread => Profile::Thread { threads: capacity },
            config::Profile::Async => Profile::Async { concurrency: capacity },
        },
        thread_safety: match sharing.thread_safety {
            config::ThreadSafety::Off => ThreadSafety::Off,
            config::ThreadSafety::Warn => ThreadSafety::Warn,
            config::ThreadSafety::Refuse => ThreadSafety::Refuse,
        },
        ..ProcessSettings::default()
    }
}

fn settings(pool: &config::Pool, server: &config::Server) -> Settings {
    let defaults = Settings::of_size(pool.size);
    let (scaling, retire, binding) = (&pool.scaling, &pool.retire, &pool.binding);
    Settings {
        min: scaling.min,
        max: pool.size,
        keyed: binding.keyed.map(keyed),
        scale_up_after: scaling.up_after,
        idle_ttl: scaling.idle_ttl,
        ttl: retire.ttl,
        ttl_jitter: retire.ttl_jitter,
        max_requests: retire.max_requests,
        max_memory: retire.max_memory,
        max_memory_hard: retire.max_memory_hard,
        dedicated_max: pool.supervision.dedicated_max,
        supervisor_timeout: pool.supervision.timeout,
        gang_patience: pool.supervision.gang_patience,
        retire_max: retire.max_at_once,
        affinity_ttl: binding.affinity_ttl,
        save_timeout: retire.save_timeout,
        capacity: pool.sharing.capacity,
        capacity_from: match pool.sharing.capacity_from {
            config::CapacityFrom::Pool => CapacityFrom::Pool,
            config::CapacityFrom::Worker => CapacityFrom::Worker,
            config::CapacityFrom::Min => CapacityFrom::Min,
        },
        strategy: match pool.strategy {
            config::Strategy::LeastLoaded => Strategy::LeastLoaded,
            config::Strategy::RoundRobin => Strategy::RoundRobin,
            config::Strategy::Lru => Strategy::Lru,
        },
        admission: match pool.queue.admission {
            config::Admission::Queue => Admission::Queue,
            config::Admission::Deadline => Admission::Deadline,
        },
        queue_max: pool.queue.max,
        queue_timeout: pool.queue.timeout,
        prefetch: pool.queue.prefetch,
        start_timeout: pool.start.timeout,
        start_batch: pool.start.batch,
        start_batch_delay: pool.start.batch_delay,
        cancel_grace: pool.request.cancel_grace,
        attempts_max: pool.request.attempts,
        retry_delay: pool.request.retry_delay,
        stop_grace: pool.stop_grace,
        drain_timeout: server.drain_timeout,
        heartbeat: pool.health.heartbeat.map(heartbeat),
        hang_timeout: pool.health.hang_timeout,
        checkup: pool.health.check.map(checkup),
        restart_max: pool.restart.max,
        restart_period: pool.restart.period,
        restart_cooldown: pool.restart.cooldown,
        backoff: Backoff { first: pool.backoff.min, max: pool.backoff.max, ..defaults.backoff },
        quarantine: pool.quarantine,
        seed: u64::from(std::process::id()),
        ..defaults
    }
}

fn keyed(keyed: config::Keyed) -> Keyed {
    Keyed {
        evict: match keyed.evict {
            config::Evict::Lru => Evict::Lru,
            config::Evict::Oldest => Evict::Oldest,
            config::Evict::LeastUsed => Evict::LeastUsed,
        },
        evict_min_age: keyed.evict_min_age,
    }
}

fn heartbeat(heartbeat: config::Heartbeat) -> Heartbeat {
    let config::Heartbeat { interval, timeout, misses, initial_delay, independent } = heartbeat;
    Heartbeat { interval, timeout, misses, initial_delay, independent }
}

fn checkup(check: config::Check) -> Checkup {
    let config::Check { interval, timeout, again, failures } = check;
    Checkup { interval, timeout, again, failures }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::config::{Config, Source, Surroundings};

    fn config(settings: &str) -> Config {
        let text = format!("version = 1\n[pools.py]\npython = \"w.py\"\n{settings}\n");
        let around = Surroundings {
            root: Path::new("/srv"),
            cores: 4,
            variable: &|_| None,
            exists: &|_| true,
        };
        config::read(&Source::new("ostler.toml", text), &around).expect("a configuration")
    }

    fn described(settings: &str) -> PoolSpec {
        let config = config(settings);
        spec(&config.pools[0], &config.server)
    }

    #[test]
    fn what_makes_a_pool_grow_and_workers_go_reaches_it() {
        let settings = described(
            "min = 1\nmax = 9\nidle_ttl = 11\nscale_up_after = 0.012\nttl = 13\nttl_jitter = 0.14\n\
             max_requests = 15\nmax_memory = \"16MiB\"\nmax_memory_hard = \"17MiB\"\nretire_max = 18\n\
             save_timeout = 19\naffinity_ttl = 20",
        )
        .settings;
        let expected = Settings {
            min: 1,
            max: 9,
            idle_ttl: Some(Duration::from_secs(11)),
            scale_up_after: Duration::from_millis(12),
            ttl: Some(Duration::from_secs(13)),
            ttl_jitter: 0.14,
            max_requests: Some(15),
            max_memory: Some(16 << 20),
            max_memory_hard: Some(17 << 20),
            retire_max: 18,
            save_timeout: Duration::from_secs(19),
            affinity_ttl: Duration::from_secs(20),
            ..settings.clone()
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn what_ties_sessions_to_workers_reaches_the_pool() {
        let plain = described("affinity = \"strict_fail_fast\"");
        assert_eq!((plain.affinity, plain.key), (Affinity::StrictFailFast, None));
        assert_eq!(plain.settings.keyed, None);
        let keyed = described("key = \"workspace\"\nevict = \"oldest\"\nevict_min_age = 7");
        assert_eq!((keyed.affinity, keyed.key), (Affinity::Hint, Some(KeyedBy::Workspace)));
        let expected = Keyed { evict: Evict::Oldest, evict_min_age: Duration::from_secs(7) };
        assert_eq!(keyed.settings.keyed, Some(expected));
        assert_eq!((keyed.settings.min, keyed.settings.max), (0, 4));
        let by_session = described("key = \"session\"");
        assert_eq!(by_session.affinity, Affinity::StrictQueue);
        assert_eq!(by_session.key, Some(KeyedBy::Session));
    }

    #[test]
    fn the_defaults_of_the_file_are_those_of_the_pool() {
        let written = described("size = 4").settings;
        let expected = Settings { seed: written.seed, ..Settings::of_size(4) };
        assert_eq!(written, expected);
    }
}
