//! A closed loop: callers on connections of their own, each calling again when it has its answer.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Method, StatusCode};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::super::args::BenchArgs;
use super::super::client::{Client, collect};
use super::super::endpoint::Endpoint;
use super::super::exit::Failure;
use super::super::list::{self, Query};
use super::super::problem;
use super::super::stats::{Server, Worker};
use super::cpu::{Snapshot, Spent};
use super::histogram::Histogram;

/// Calls before this are not counted: connections, caches and idle workers warm up.
const WARM_UP_MAX: Duration = Duration::from_secs(1);

/// A caller whose connection breaks takes a new one, after a moment: the server may be going.
const BREATH: Duration = Duration::from_millis(20);

const WORKERS_MAX: usize = 10_000;

/// What is called.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub endpoint: Endpoint,
    pub path: String,
    pub payload: Bytes,
}

/// What came of so many callers.
#[derive(Debug)]
pub(super) struct Load {
    pub callers: u16,
    pub elapsed: Duration,
    /// Of the calls that succeeded.
    pub latency: Histogram,
    /// The others, by the code of their problem.
    pub errors: BTreeMap<String, u64>,
    pub cpu: Spent,
}

#[derive(Debug, Default)]
struct Tally {
    latency: Histogram,
    errors: BTreeMap<String, u64>,
}

impl Call {
    /// One call, to find out before measuring that it works.
    pub async fn try_once(&self) -> Result<(), Failure> {
        let mut client = Client::connect(self.endpoint.clone()).await?;
        let (status, body) = self.send(&mut client).await?;
        match status.is_success() {
            true => Ok(()),
            false => Err(problem::failure(status, &body)),
        }
    }

    async fn send(&self, client: &mut Client) -> Result<(StatusCode, Bytes), Failure> {
        let mut request =
            client.request(Method::POST, &self.path).header(ACCEPT, "application/json, */*");
        if !self.payload.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let response = client.send(request, self.payload.clone()).await?;
        Ok((response.status(), collect(response.into_body()).await?))
    }
}

/// `control`: where the server's state is asked for.
pub(super) async fn measure(
    control: &Endpoint,
    args: &BenchArgs,
    server: &Server,
    call: &Call,
    callers: u16,
) -> Result<Load, Failure> {
    let mut clients = Vec::new();
    for _ in 0..callers {
        clients.push(Client::connect(call.endpoint.clone()).await?);
    }
    let begin = Instant::now() + WARM_UP_MAX.min(args.duration / 5);
    let end = begin + args.duration;
    let mut running = JoinSet::new();
    for client in clients {
        running.spawn(caller(client, call.clone(), begin, end));
    }
    sleep_until(begin).await;
    let before = snapshot(control, args, server).await?;
    let mut total = Tally::default();
    while let Some(tally) = running.join_next().await {
        total.add(tally.map_err(|error| Failure::failed(format!("a caller broke: {error}")))?);
    }
    let elapsed = begin.elapsed();
    let cpu = before.spent_until(&snapshot(control, args, server).await?);
    Ok(Load { callers, elapsed, latency: total.latency, errors: total.errors, cpu })
}

/// On a connection of its own: the server closes those that are silent for long.
async fn snapshot(
    control: &Endpoint,
    args: &BenchArgs,
    server: &Server,
) -> Result<Snapshot, Failure> {
    let mut client = Client::connect(control.clone()).await?;
    let query = Query::of("/api/workers").with("pool", &args.pool);
    let page = list::read(&mut client, &query, WORKERS_MAX).await?;
    let workers: Vec<Worker> = list::parse(&page.items)?;
    let pids: Vec<u64> = workers.iter().filter_map(|worker| worker.pid).collect();
    Ok(Snapshot::take(control.is_local(), server.pid, &pids))
}

/// Calls until the end, and once at least; what it began before `begin` does not count.
async fn caller(client: Client, call: Call, begin: Instant, end: Instant) -> Tally {
    let mut tally = Tally::default();
    let mut client = Some(client);
    loop {
        let started = Instant::now();
        if started >= end && tally.calls() > 0 {
            return tally;
        }
        let Some(open) = &mut client else {
            client = Client::connect(call.endpoint.clone()).await.ok();
            if client.is_none() {
                tally.fail("not_connected", started >= begin);
                tokio::time::sleep(BREATH).await;
            }
            continue;
        };
        match call.send(open).await {
            Ok((status, _)) if status.is_success() => {
                if started >= begin {
                    tally.latency.record(started.elapsed());
                }
            }
            Ok((status, body)) => tally.fail(&code(status, &body), started >= begin),
            Err(_) => {
                tally.fail("connection_lost", started >= begin);
                client = None;
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

fn code(status: StatusCode, body: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    problem["code"].as_str().map_or_else(|| format!("http_{}", status.as_u16()), str::to_owned)
}

impl Tally {
    fn calls(&self) -> u64 {
        self.latency.count() + self.errors.values().sum::<u64>()
    }

    fn fail(&mut self, code: &str, counts: bool) {
        if counts {
            *self.errors.entry(code.to_owned()).or_default() += 1;
        }
    }

    fn add(&mut self, other: Self) {
        self.latency.add(&other.latency);
        for (code, count) in other.errors {
            *self.errors.entry(code).or_default() += count;
        }
    }
}

impl Load {
    pub fn per_second(&self) -> f64 {
        self.latency.count() as f64 / self.elapsed.as_secs_f64()
    }

    /// What one call cost, of what was spent on all, failed ones included.
    pub fn per_call(&self, spent: Option<Duration>) -> Option<Duration> {
        let calls = self.latency.count() + self.errors.values().sum::<u64>();
        spent.filter(|_| calls > 0).map(|spent| spent.div_f64(calls as f64))
    }
}
