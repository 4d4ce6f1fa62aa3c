//! What is measured, for Prometheus: base units, and labels out of short lists. Workers are no
//! label: they come and go for as long as the server runs.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use ostler_core::Lifecycle;
use ostler_runtime::{Counts, Histogram, MetricKey, Pool, PoolInfo, Tally, phase_name as phase};
use ostler_store::SessionStats;

use crate::exposition::{CONTENT_TYPE, Exposition, Kind};
use crate::job_metrics;
use crate::pools::lifecycle;
use crate::query::{Nothing, Params};
use crate::server::Shared;
use crate::workers::memory;

/// Everything measured, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server", operation_id = "server.metrics",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn expose(
    State(shared): State<Arc<Shared>>,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let pools: Vec<Measured> =
        shared.pools().iter().map(|served| Measured::of(&served.pool)).collect();
    let counts = shared.jobs.ledger().counts().await.ok();
    let mut out = Exposition::default();
    server(&mut out, &shared);
    sessions(&mut out, &shared.sessions.stats());
    job_metrics::jobs(&mut out, counts.as_ref(), &shared.job_moves);
    job_metrics::keys(&mut out, &shared.keys);
    gauges(&mut out, &pools);
    requests(&mut out, &pools);
    processes(&mut out, &pools);
    health(&mut out, &pools);
    affinity(&mut out, &pools);
    own(&mut out, &pools);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], out.finish()).into_response()
}

struct Measured {
    info: PoolInfo,
    tally: Tally,
    /// What the workers measured themselves.
    own: Vec<(MetricKey, f64)>,
}

impl Measured {
    fn of(pool: &Pool) -> Self {
        Measured { info: pool.info(), tally: pool.tally(), own: pool.metrics() }
    }

    fn pool(&self) -> (&'static str, &str) {
        ("pool", &self.info.name)
    }
}

fn server(out: &mut Exposition, shared: &Shared) {
    out.family("ostler_build_info", Kind::Gauge, "The version that runs; always 1.");
    out.sample(&[("version", shared.version)], 1.0);
    out.family("ostler_uptime_seconds", Kind::Gauge, "Since the server started.");
    out.sample(&[], shared.started.elapsed().as_secs_f64());
}

fn sessions(out: &mut Exposition, stats: &SessionStats) {
    let mut one = |name, kind, help, value: u64| {
        out.family(name, kind, help);
        out.count(&[], value);
    };
    one("ostler_sessions", Kind::Gauge, "Sessions that live.", stats.current);
    one("ostler_sessions_max", Kind::Gauge, "Sessions that may live.", stats.max);
    one("ostler_session_bytes", Kind::Gauge, "Memory of all sessions.", stats.memory_bytes);
    one("ostler_session_bytes_max", Kind::Gauge, "What it may be.", stats.memory_max);
    one("ostler_sessions_created_total", Kind::Counter, "Sessions made.", stats.created);
    one("ostler_sessions_deleted_total", Kind::Counter, "Ended by somebody.", stats.deleted);
    one("ostler_sessions_expired_total", Kind::Counter, "Ended by time.", stats.expired);
    one("ostler_session_sweeps_total", Kind::Counter, "Looks for expired ones.", stats.sweeps);
    let refused = "Changes of sessions that the disk refused.";
    one("ostler_store_refusals_total", Kind::Counter, refused, stats.disk_refusals);
}

fn gauges(out: &mut Exposition, pools: &[Measured]) {
    const LIFECYCLES: [Lifecycle; 5] = [
        Lifecycle::Starting,
        Lifecycle::Running,
        Lifecycle::Draining,
        Lifecycle::Stopped,
        Lifecycle::Failed,
    ];
    out.family("ostler_pool_lifecycle", Kind::Gauge, "1 for the lifecycle the pool is in.");
    for pool in pools {
        for known in LIFECYCLES {
            let is = f64::from(pool.info.view.lifecycle == known);
            out.sample(&[pool.pool(), ("lifecycle", lifecycle(known))], is);
        }
    }
    out.family("ostler_workers", Kind::Gauge, "Workers by the phase of their process.");
    for pool in pools {
        for (phase, count) in by_phase(&pool.info) {
            out.count(&[pool.pool(), ("phase", phase)], count);
        }
    }
    let gauge = |out: &mut Exposition, name, help, value: fn(&PoolInfo) -> f64| {
        out.family(name, Kind::Gauge, help);
        for pool in pools {
            out.sample(&[pool.pool()], value(&pool.info));
        }
    };
    gauge(out, "ostler_pool_target", "Workers that the pool wants.", |info| {
        f64::from(info.view.target)
    });
    gauge(out, "ostler_pool_workers", "Workers that the pool has.", |info| {
        info.view.workers as f64
    });
    gauge(out, "ostler_pool_min", "No fewer workers than these.", |info| f64::from(info.view.min));
    gauge(out, "ostler_pool_max", "No more workers than these.", |info| f64::from(info.view.max));
    gauge(out, "ostler_pool_paused", "1 while calls wait by order.", |info| {
        f64::from(info.view.paused)
    });
    gauge(out, "ostler_pool_strained", "1 while it does not grow for want of memory.", |info| {
        f64::from(info.view.strained)
    });
    gauge(out, "ostler_leases", "Leases that are held.", |info| info.view.leases as f64);
    gauge(out, "ostler_pool_capacity", "Places of the workers that serve.", |info| {
        f64::from(info.view.capacity)
    });
    gauge(out, "ostler_pool_running", "Places in use.", |info| f64::from(info.view.running));
    gauge(out, "ostler_queue_length", "Requests that wait.", |info| info.view.queued as f64);
    gauge(out, "ostler_queue_oldest_seconds", "How long the oldest has waited.", |info| {
        info.view.oldest_waits.as_secs_f64()
    });
    gauge(out, "ostler_pool_memory_bytes", "Resident memory of the pool's workers.", |info| {
        info.workers.iter().filter_map(memory).sum::<u64>() as f64
    });
}

fn by_phase(info: &PoolInfo) -> Vec<(&'static str, u64)> {
    let mut counts: Vec<(&'static str, u64)> = Vec::new();
    for worker in &info.workers {
        let name = worker.view.phase.map_or("none", phase);
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

fn requests(out: &mut Exposition, pools: &[Measured]) {
    by_name(
        out,
        pools,
        "ostler_requests_total",
        "Ended requests by code; ok if answered.",
        "code",
        |t| t.outcomes(),
    );
    counter(out, pools, "ostler_requests_arrived_total", "Requests that arrived.", |m| {
        m.info.view.counters.arrived
    });
    counter(out, pools, "ostler_request_retries_total", "Further attempts.", |m| {
        m.info.view.counters.retried
    });
    counter(out, pools, "ostler_requests_prefetched_total", "Written behind another one.", |m| {
        m.info.view.counters.prefetched
    });
    counter(out, pools, "ostler_requests_moved_total", "Taken back for another worker.", |m| {
        m.info.view.counters.moved
    });
    counter(out, pools, "ostler_stale_messages_total", "Late messages, dropped.", |m| {
        m.info.view.counters.stale
    });
    counter(out, pools, "ostler_chunks_total", "Chunks delivered.", |m| m.tally.chunks());
    histogram(out, pools, "ostler_queue_wait_seconds", "From arrival to a worker.", |t| {
        t.queue_wait()
    });
    histogram(out, pools, "ostler_service_seconds", "From a worker to its answer.", |t| {
        t.service()
    });
}

fn processes(out: &mut Exposition, pools: &[Measured]) {
    let name = "ostler_phase_transitions_total";
    out.family(name, Kind::Counter, "Changes of phase by pair; from none: spawned.");
    for pool in pools {
        for (from, to, count) in pool.tally.phase_moves() {
            let from = from.map_or("none", phase);
            out.count(&[pool.pool(), ("from", from), ("to", phase(to))], count);
        }
    }
    out.family("ostler_phase_seconds_total", Kind::Counter, "Time in phases that were left.");
    for pool in pools {
        for (known, spent) in pool.tally.time_in_phase() {
            out.sample(&[pool.pool(), ("phase", phase(known))], spent.as_secs_f64());
        }
    }
    out.family("ostler_status_transitions_total", Kind::Counter, "Changes of status by pair.");
    for pool in pools {
        for (from, to, count) in pool.tally.status_moves() {
            let from = from.map_or("none", |from| from.name());
            out.count(&[pool.pool(), ("from", from), ("to", to.name())], count);
        }
    }
    out.family("ostler_status_refused_total", Kind::Counter, "Refused changes of status.");
    for pool in pools {
        for (from, to, count) in pool.tally.refused_status_moves() {
            let from = from.map_or("none", |from| from.name());
            out.count(&[pool.pool(), ("from", from), ("to", to.name())], count);
        }
    }
    out.family("ostler_restarts_total", Kind::Counter, "Processes that replaced another.");
    for pool in pools {
        let counters = &pool.info.view.counters;
        out.count(&[pool.pool(), ("planned", "true")], counters.restarts_planned);
        out.count(&[pool.pool(), ("planned", "false")], counters.restarts_unplanned);
    }
    by_name(out, pools, "ostler_process_ends_total", "Ended processes by reason.", "reason", |t| {
        t.ends()
    });
    histogram(out, pools, "ostler_process_start_seconds", "From spawn to ready.", |t| t.starts());
}

fn health(out: &mut Exposition, pools: &[Measured]) {
    by_name(out, pools, "ostler_health_checks_total", "Health checks by result.", "result", |t| {
        t.checks()
    });
    histogram(out, pools, "ostler_health_check_seconds", "Until the answer.", |t| t.check_time());
    histogram(out, pools, "ostler_heartbeat_seconds", "From ping to a sign of life.", |t| {
        t.heartbeat_time()
    });
    counter(out, pools, "ostler_heartbeats_missed_total", "Heartbeats missed.", |m| {
        m.tally.heartbeats_missed()
    });
}

fn affinity(out: &mut Exposition, pools: &[Measured]) {
    let hits = "Requests of sessions that went to the process of their session.";
    counter(out, pools, "ostler_affinity_hits_total", hits, |m| m.info.view.counters.affinity_hits);
    let misses = "Requests of sessions that went to another process.";
    counter(out, pools, "ostler_affinity_misses_total", misses, |m| {
        m.info.view.counters.affinity_misses
    });
    let name = "ostler_worker_retirements_total";
    by_name(out, pools, name, "Workers to be replaced or let go, by reason.", "reason", |t| {
        t.retirements()
    });
    let found = "What the sweep found that should not be.";
    counter(out, pools, "ostler_sweep_findings_total", found, |m| {
        m.info.view.counters.sweep_findings
    });
}

/// Under one family: what the names mean, the workers know.
fn own(out: &mut Exposition, pools: &[Measured]) {
    out.family("ostler_worker_metric", Kind::Gauge, "What workers measured, the last of each.");
    for pool in pools {
        for ((name, labels), value) in &pool.own {
            let theirs: Vec<(String, &str)> =
                labels.iter().map(|(label, value)| (their_label(label), value.as_str())).collect();
            let theirs = theirs.iter().map(|(label, value)| (label.as_str(), *value));
            let labels: Vec<_> =
                [pool.pool(), ("metric", name)].into_iter().chain(theirs).collect();
            out.sample(&labels, *value);
        }
    }
}

/// A label that a worker chose, so that it is well formed and is none of ours.
fn their_label(label: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let spelled = label.chars().map(|c| if fits(c) { c } else { '_' });
    "label_".chars().chain(spelled).collect()
}

fn counter(
    out: &mut Exposition,
    pools: &[Measured],
    name: &'static str,
    help: &str,
    value: fn(&Measured) -> u64,
) {
    out.family(name, Kind::Counter, help);
    for pool in pools {
        out.count(&[pool.pool()], value(pool));
    }
}

fn by_name(
    out: &mut Exposition,
    pools: &[Measured],
    name: &'static str,
    help: &str,
    label: &str,
    counts: fn(&Tally) -> &Counts,
) {
    out.family(name, Kind::Counter, help);
    for pool in pools {
        for (value, count) in counts(&pool.tally).iter() {
            out.count(&[pool.pool(), (label, value)], count);
        }
    }
}

fn histogram(
    out: &mut Exposition,
    pools: &[Measured],
    name: &'static str,
    help: &str,
    of: fn(&Tally) -> &Histogram,
) {
    out.family(name, Kind::Histogram, help);
    for pool in pools {
        out.histogram(&[pool.pool()], of(&pool.tally));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_cannot_choose_a_label_of_ours_or_break_the_format() {
        assert_eq!(their_label("pool"), "label_pool");
        assert_eq!(their_label("a b\"}\n"), "label_a_b___");
    }
}
