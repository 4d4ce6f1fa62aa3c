//! The figures, as a table for people or as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::cells::{or_dash, span};
use super::super::stats::Server;
use super::super::table::Table;
use super::control::{Control, Route};
use super::histogram::Histogram;
use super::load::Load;
use crate::text::one_line;

#[derive(Debug)]
pub(super) struct Report {
    pub pool: String,
    pub function: String,
    pub server: Server,
    pub loads: Vec<Load>,
    pub control: Option<Control>,
}

impl Report {
    pub fn render(&self) -> String {
        let listen = self.server.listen.as_deref().unwrap_or("?");
        let about = format!(
            "{}.{} on http://{listen}, ostler {}",
            self.pool, self.function, self.server.version
        );
        let mut out = format!("{}\n\n{}", one_line(&about), loads(&self.loads));
        for load in &self.loads {
            for (code, count) in &load.errors {
                let line = format!("{} callers: {count} calls ended in {code}", load.callers);
                let _ = writeln!(out, "{}", one_line(&line));
            }
        }
        if let Some(control) = &self.control {
            let _ = write!(out, "\n{}", routes(control));
        }
        out
    }

    pub fn to_json(&self) -> String {
        let control = self.control.as_ref().map(|control| {
            let routes: Vec<Value> = control.routes.iter().map(route_json).collect();
            json!({ "queued": control.queued, "routes": routes })
        });
        let body = json!({
            "pool": self.pool,
            "function": self.function,
            "server": { "version": self.server.version, "listen": self.server.listen },
            "loads": self.loads.iter().map(load_json).collect::<Vec<_>>(),
            "control": control,
        });
        format!("{body}\n")
    }
}

fn loads(loads: &[Load]) -> String {
    let mut table = Table::new([
        "CALLERS",
        "CALLS",
        "PER SECOND",
        "P50",
        "P90",
        "P99",
        "MAX",
        "SERVER CPU",
        "WORKER CPU",
        "BENCH CPU",
    ]);
    for load in loads {
        let cpu = |spent| or_dash(load.per_call(spent).map(span));
        table.row([
            load.callers.to_string(),
            load.latency.count().to_string(),
            format!("{:.0}", load.per_second()),
            quantile(&load.latency, 0.5),
            quantile(&load.latency, 0.9),
            quantile(&load.latency, 0.99),
            span(load.latency.max()),
            cpu(load.cpu.server),
            cpu(load.cpu.workers),
            cpu(load.cpu.bench),
        ]);
    }
    format!(
        "{}CPU is per call; where the callers share the cores, BENCH CPU is what they take.\n",
        table.render()
    )
}

fn quantile(times: &Histogram, share: f64) -> String {
    match times.count() {
        0 => "-".to_owned(),
        _ => span(times.quantile(share)),
    }
}

fn routes(control: &Control) -> String {
    let queued = format!("P99, {} QUEUED", control.queued);
    let mut table = Table::new(["ROUTE", "P99, IDLE", queued.as_str(), "RATIO"]);
    for route in &control.routes {
        table.row([
            format!("GET {}", route.path),
            quantile(&route.idle, 0.99),
            quantile(&route.queued, 0.99),
            format!("{:.2}", route.ratio()),
        ]);
    }
    table.render()
}

fn load_json(load: &Load) -> Value {
    let seconds = |spent: Option<Duration>| load.per_call(spent).map(|time| time.as_secs_f64());
    json!({
        "callers": load.callers,
        "seconds": load.elapsed.as_secs_f64(),
        "calls": load.latency.count(),
        "per_second": load.per_second(),
        "latency_seconds": times_json(&load.latency),
        "cpu_seconds_per_call": {
            "server": seconds(load.cpu.server),
            "workers": seconds(load.cpu.workers),
            "bench": seconds(load.cpu.bench),
        },
        "errors": load.errors,
    })
}

fn route_json(route: &Route) -> Value {
    json!({
        "path": route.path,
        "idle_seconds": times_json(&route.idle),
        "queued_seconds": times_json(&route.queued),
        "p99_ratio": route.ratio(),
    })
}

fn times_json(times: &Histogram) -> Value {
    let quantile = |share| times.quantile(share).as_secs_f64();
    json!({
        "p50": quantile(0.5),
        "p90": quantile(0.9),
        "p99": quantile(0.99),
        "max": times.max().as_secs_f64(),
    })
}
