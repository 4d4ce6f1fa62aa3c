//! What the server tells about its pools, as JSON.

use ostler_core::{Lifecycle, Phase, Status};
use ostler_runtime::{Pool, PoolInfo, WorkerInfo};
use serde_json::{Value, json};

pub(crate) fn pool(info: &PoolInfo) -> Value {
    let view = &info.view;
    let living: Vec<&WorkerInfo> = info.workers.iter().collect();
    json!({
        "name": info.name,
        "lifecycle": lifecycle(view.lifecycle),
        "reason": reason(info),
        "occupancy": occupancy(&living),
        "containment": { "level": info.level.rung.to_string(), "detail": info.level.reason },
        "size": view.size,
        "queue_length": view.queued,
        "oldest_waits_seconds": view.oldest_waits.as_secs_f64(),
        "running": living.iter().map(|worker| worker.view.load).sum::<u32>(),
        "requests": {
            "arrived": view.counters.arrived,
            "resolved": view.counters.resolved,
            "refused": view.counters.refused,
            "retried": view.counters.retried,
            "prefetched": view.counters.prefetched,
            "moved": view.counters.moved,
            "stale": view.counters.stale,
        },
        "restarts": {
            "planned": view.counters.restarts_planned,
            "unplanned": view.counters.restarts_unplanned,
        },
        "workers": living.into_iter().map(worker).collect::<Vec<_>>(),
    })
}

fn lifecycle(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::Starting => "starting",
        Lifecycle::Running => "running",
        Lifecycle::Draining => "draining",
        Lifecycle::Stopped => "stopped",
        Lifecycle::Failed => "failed",
    }
}

/// Why the pool is not what it should be.
fn reason(info: &PoolInfo) -> Option<String> {
    match info.view.lifecycle {
        Lifecycle::Failed | Lifecycle::Starting => info.last_failure.clone(),
        Lifecycle::Running | Lifecycle::Draining | Lifecycle::Stopped => None,
    }
}

fn occupancy(workers: &[&WorkerInfo]) -> &'static str {
    let mut serving = workers.iter().filter(|worker| worker.pid.is_some()).peekable();
    if serving.peek().is_none() {
        return "idle";
    }
    let full = serving.all(|worker| worker.view.load >= worker.view.capacity);
    if full { "at_capacity" } else { "active" }
}

fn worker(worker: &WorkerInfo) -> Value {
    let view = &worker.view;
    json!({
        "id": format!("w_{}", view.id.0),
        "name": worker.name,
        "status": view.status.name(),
        "phase": view.phase.map(phase),
        "health": health(worker),
        "generation": view.generation,
        "pid": worker.pid,
        "capacity": view.capacity,
        "load": view.load,
        "dedicated": view.dedicated,
        "requests": { "answered": view.answered },
        "memory": worker.pid.and_then(resident_bytes),
    })
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Busy => "busy",
        Phase::Degraded => "degraded",
        Phase::Stopping => "stopping",
        Phase::Dead => "dead",
    }
}

fn health(worker: &WorkerInfo) -> &'static str {
    match (worker.view.status, worker.view.phase) {
        _ if worker.view.unresponsive => "unhealthy",
        (_, Some(Phase::Degraded)) => "unhealthy",
        (Status::Running | Status::Paused, Some(Phase::Ready | Phase::Busy)) => "healthy",
        _ => "unknown",
    }
}

fn resident_bytes(pid: i32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

pub(crate) fn functions(pool: &Pool) -> Value {
    let functions = pool.functions().iter().map(|function| {
        json!({ "name": function.name, "doc": function.doc, "streaming": function.streaming })
    });
    functions.collect()
}
