//! `ostler status`: the pools and workers of a running server, for people.

use jiff::Timestamp;

use super::args::StatusArgs;
use super::cells::{age, memory, or_dash, since};
use super::client::Client;
use super::endpoint::Endpoint;
use super::exit::{Exit, Failure};
use super::output;
use super::stats::{self, Pool, Server, Stats, Worker};
use super::table::Table;
use crate::text::one_line;

pub(super) async fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let mut client = Client::connect(Endpoint::find(&args.server)?).await?;
    let body = stats::ask(&mut client).await?;
    let stats = stats::parse(&body)?;
    match args.json {
        true => output::pass_on_line(&body)?,
        false => output::print(&render(&stats, Timestamp::now()))?,
    }
    match stats.pools.iter().any(|pool| ailment(pool).is_some()) {
        true => Ok(Exit::Degraded),
        false => Ok(Exit::Ok),
    }
}

fn render(stats: &Stats, now: Timestamp) -> String {
    let mut out = heading(&stats.server);
    out.push('\n');
    out.push_str(&pools(&stats.pools));
    if stats.pools.iter().any(|pool| !pool.workers.is_empty()) {
        out.push('\n');
        out.push_str(&workers(&stats.pools, now));
    }
    let ailments: Vec<String> = stats.pools.iter().filter_map(ailment).collect();
    if !ailments.is_empty() {
        out.push('\n');
        for ailment in ailments {
            out.push_str(&ailment);
            out.push('\n');
        }
    }
    out
}

fn heading(server: &Server) -> String {
    let mut parts = vec![format!("ostler {}", server.version)];
    parts.extend(server.listen.as_ref().map(|listen| {
        let scheme = if listen.contains("://") { "" } else { "http://" };
        format!("{scheme}{listen}")
    }));
    parts.extend(server.pid.map(|pid| format!("pid {pid}")));
    parts.push(format!("up {}", age(server.uptime_seconds)));
    format!("{}\n", one_line(&parts.join("  ")))
}

fn pools(pools: &[Pool]) -> String {
    let mut table =
        Table::new(["POOL", "STATE", "OCCUPANCY", "WORKERS", "RUNNING", "QUEUED", "CONTAINMENT"]);
    for pool in pools {
        let serving = pool.workers.iter().filter(|worker| serves(worker)).count();
        table.row([
            pool.name.clone(),
            state(pool),
            pool.occupancy.clone(),
            format!("{serving}/{}", pool.max.unwrap_or(pool.size)),
            pool.running.to_string(),
            pool.queue_length.to_string(),
            pool.containment.level.clone(),
        ]);
    }
    table.render()
}

fn state(pool: &Pool) -> String {
    match pool.paused {
        true => format!("{}, paused", pool.lifecycle),
        false => pool.lifecycle.clone(),
    }
}

fn workers(pools: &[Pool], now: Timestamp) -> String {
    let mut table = Table::new([
        "WORKER", "STATUS", "PHASE", "HEALTH", "PID", "LOAD", "REQUESTS", "MEMORY", "UP",
    ]);
    for worker in pools.iter().flat_map(|pool| &pool.workers) {
        table.row([
            worker.incarnation(),
            worker.status.clone(),
            or_dash(worker.phase.clone()),
            or_dash(worker.health.clone()),
            or_dash(worker.pid.map(|pid| pid.to_string())),
            format!("{}/{}", worker.load, worker.capacity),
            worker.ended().to_string(),
            or_dash(worker.memory.map(memory)),
            or_dash(worker.started_at.as_deref().and_then(|at| since(at, now))),
        ]);
    }
    table.render()
}

fn serves(worker: &Worker) -> bool {
    matches!(worker.phase.as_deref(), Some("ready" | "busy"))
}

/// Why a pool is not well, if it is not.
fn ailment(pool: &Pool) -> Option<String> {
    let failed = count(pool, |worker| worker.status == "FAILED");
    let degraded = count(pool, |worker| worker.phase.as_deref() == Some("degraded"));
    let what = match pool.lifecycle.as_str() {
        state @ ("failed" | "degraded") => format!("the pool is {state}"),
        _ if failed > 0 => format!("{failed} of {} workers gave up", pool.workers.len()),
        _ if degraded > 0 => format!("{degraded} of {} workers are degraded", pool.workers.len()),
        _ => return None,
    };
    let reason = pool.reason.as_ref().map(|reason| format!(": {reason}"));
    Some(one_line(&format!("{}: {what}{}", pool.name, reason.unwrap_or_default())))
}

fn count(pool: &Pool, which: impl Fn(&Worker) -> bool) -> usize {
    pool.workers.iter().filter(|worker| which(worker)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_unwell_when_it_or_a_worker_failed_or_is_degraded() {
        let worker = |status: &str, phase: &str| Worker {
            status: status.to_owned(),
            phase: Some(phase.to_owned()),
            ..Worker::default()
        };
        let pool = |lifecycle: &str, worker| Pool {
            name: "py".to_owned(),
            lifecycle: lifecycle.to_owned(),
            workers: vec![worker],
            ..Pool::default()
        };
        assert_eq!(ailment(&pool("running", worker("RUNNING", "busy"))), None);
        assert_eq!(ailment(&pool("starting", worker("RUNNING", "starting"))), None);
        for unwell in [
            pool("failed", worker("RUNNING", "ready")),
            pool("running", worker("FAILED", "dead")),
            pool("running", worker("RUNNING", "degraded")),
        ] {
            assert!(ailment(&unwell).is_some(), "{unwell:?}");
        }
    }
}
