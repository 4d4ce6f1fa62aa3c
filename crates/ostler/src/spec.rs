//! A pool's description, made of its part of the configuration. The two are separate types so that
//! the library does not know the file, and the file does not change with the library.

use ostler_core::{Admission, Backoff, CapacityFrom, Checkup, Heartbeat, Settings, Strategy};
use ostler_runtime::{OnDisconnect, PoolSpec, ProcessSettings, Profile, ThreadSafety, containment};

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
    Settings {
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

fn heartbeat(heartbeat: config::Heartbeat) -> Heartbeat {
    let config::Heartbeat { interval, timeout, misses, initial_delay, independent } = heartbeat;
    Heartbeat { interval, timeout, misses, initial_delay, independent }
}

fn checkup(check: config::Check) -> Checkup {
    let config::Check { interval, timeout, again, failures } = check;
    Checkup { interval, timeout, again, failures }
}
