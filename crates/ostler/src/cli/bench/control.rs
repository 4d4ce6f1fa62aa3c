//! The routes of operators, timed while nothing waits and while a long queue does.
//!
//! On a server of its own with one worker that holds still: to fill the queue of a pool that
//! somebody uses would harm them, and most pools do not let so many wait.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::super::client::Client;
use super::super::endpoint::Endpoint;
use super::super::exit::Failure;
use super::super::stats;
use super::histogram::Histogram;
use super::own::{Directory, OwnServer, Wanted};
use super::tcp;

const ROUTES: [&str; 4] = ["/livez", "/api/stats", "/api/pools", "/api/workers"];

/// How often each route is asked; enough for a percentile of 99.
const SAMPLES: u32 = 500;

/// The first few open the connection and warm caches.
const DISCARDED: u32 = 20;

/// Each call is a connection, and a server takes 16 384; some are for who measures.
pub(in super::super) const QUEUED_MAX: u32 = 10_000;

/// How long the calls may take to reach the queue.
const FILL_MAX: Duration = Duration::from_secs(120);

const LOOK: Duration = Duration::from_millis(10);

/// The one that the worker works on, and one that may lie in its stream.
const NOT_QUEUED: u32 = 2;

/// Descriptors for everything but the calls.
const SPARE: u64 = 100;

const HOLD: &str = include_str!("hold.py");

#[derive(Debug)]
pub(super) struct Control {
    /// How many waited.
    pub queued: u32,
    pub routes: Vec<Route>,
}

#[derive(Debug)]
pub(super) struct Route {
    pub path: &'static str,
    pub idle: Histogram,
    pub queued: Histogram,
}

impl Route {
    /// How many times longer the slowest hundredth takes beside the queue.
    pub fn ratio(&self) -> f64 {
        let p99 = |times: &Histogram| times.quantile(0.99).as_secs_f64();
        p99(&self.queued) / p99(&self.idle).max(1e-9)
    }
}

pub(super) async fn measure(wanted: u32) -> Result<Control, Failure> {
    let queued = within_limit(wanted)?;
    let directory = Directory::make()?;
    let file = directory.path().join("hold.py");
    std::fs::write(&file, HOLD)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
    let queue_max = Some(queued + NOT_QUEUED);
    let own =
        OwnServer::start(&Wanted { file: Some(&file), queue_max, size: Some(1), config: None })?;
    let socket = own.ready().await?;
    let mut client = Client::connect(socket.clone()).await?;
    let server = stats::parse(&stats::ask(&mut client).await?)?.server;
    let endpoint = tcp(&socket, &server)?;
    let idle = probe(&endpoint).await?;
    let calls = fill(&endpoint, queued).await?;
    until_queued(&socket, queued).await?;
    let beside = probe(&endpoint).await?;
    drop(calls);
    let routes = ROUTES.into_iter().zip(idle.into_iter().zip(beside));
    let routes = routes.map(|(path, (idle, queued))| Route { path, idle, queued }).collect();
    Ok(Control { queued, routes })
}

/// Each call is a connection, and a connection is a descriptor here and one in the server.
fn within_limit(wanted: u32) -> Result<u32, Failure> {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(SPARE);
    match u64::from(wanted + NOT_QUEUED) <= most {
        true => Ok(wanted),
        false => Err(Failure::failed(format!(
            "{wanted} calls in the queue need as many open files, and {most} are left; \
             raise the limit with ulimit -Hn, or use --queued {}",
            most.saturating_sub(u64::from(NOT_QUEUED))
        ))),
    }
}

/// Each route in turn, many times, on one connection.
async fn probe(endpoint: &Endpoint) -> Result<Vec<Histogram>, Failure> {
    let mut client = Client::connect(endpoint.clone()).await?;
    let mut times = vec![Histogram::default(); ROUTES.len()];
    for round in 0..DISCARDED + SAMPLES {
        for (route, times) in ROUTES.into_iter().zip(&mut times) {
            let begun = Instant::now();
            let (status, _) = client.ask(Method::GET, route, Bytes::new()).await?;
            if !status.is_success() {
                return Err(Failure::failed(format!("{route} answered {status}")));
            }
            if round >= DISCARDED {
                times.record(begun.elapsed());
            }
        }
    }
    Ok(times)
}

/// Calls that are written and never read. They are bare connections: so many clients would take
/// more memory than the server does.
async fn fill(endpoint: &Endpoint, queued: u32) -> Result<Vec<TcpStream>, Failure> {
    let Endpoint::Tcp { host, port } = endpoint else {
        return Err(Failure::failed("calls go over TCP"));
    };
    let call = format!(
        "POST /api/pools/hold/call/hold HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
        endpoint.host_header()
    );
    let mut calls = Vec::new();
    for _ in 0..queued + NOT_QUEUED {
        let opened = async {
            let mut stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.write_all(call.as_bytes()).await?;
            Ok(stream)
        };
        calls.push(opened.await.map_err(|error: std::io::Error| {
            Failure::failed(format!("call {} of {queued} failed: {error}", calls.len() + 1))
        })?);
    }
    Ok(calls)
}

/// A new connection: the one from before was silent for so long that the server may have closed it.
async fn until_queued(socket: &Endpoint, queued: u32) -> Result<(), Failure> {
    let mut client = Client::connect(socket.clone()).await?;
    let begun = Instant::now();
    loop {
        let pools = stats::parse(&stats::ask(&mut client).await?)?.pools;
        let waiting: u64 = pools.iter().map(|pool| pool.queue_length).sum();
        if waiting >= u64::from(queued) {
            return Ok(());
        }
        if begun.elapsed() > FILL_MAX {
            return Err(Failure::failed(format!("only {waiting} of {queued} calls are queued")));
        }
        tokio::time::sleep(LOOK).await;
    }
}
