//! `ostler bench`: what calls of a function cost on this machine, measured from outside over HTTP.
//!
//! One caller shows the latency, many show the throughput, and the routes of operators are timed
//! idle and beside a long queue. Nothing here knows how the server works; what it reports is what a
//! client would see, and what /proc says of CPU.

mod control;
mod cpu;
mod histogram;
mod load;
mod own;
mod report;

use std::net::SocketAddr;

use serde::Deserialize;
use serde_json::Value;

use self::control::Control;
use self::load::Call;
use self::own::{OwnServer, Wanted};
use self::report::Report;
use super::args::BenchArgs;
use super::call::path_segment;
use super::client::Client;
use super::conform::interrupted;
use super::endpoint::{Endpoint, config_file, current_dir};
use super::exit::{Exit, Failure};
use super::stats::{self, Server};
use super::{list, output, payload};

pub(super) use control::QUEUED_MAX;
pub(super) use own::serve;

/// An interrupted measurement cleans up like one that has ended.
pub(super) async fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    tokio::select! {
        result = measure(args) => result,
        () = interrupted() => Err(Failure::failed("interrupted; nothing is left behind")),
    }
}

async fn measure(args: &BenchArgs) -> Result<Exit, Failure> {
    let payload = payload::read(&args.payload)?;
    let (own, endpoint) = server(args).await?;
    let mut client = Client::connect(endpoint.clone()).await?;
    let server = stats::parse(&stats::ask(&mut client).await?)?.server;
    let function = function(&mut client, args).await?;
    let path = format!("/api/pools/{}/call/{}", path_segment(&args.pool), path_segment(&function));
    let call = Call { endpoint: tcp(&endpoint, &server)?, path, payload };
    drop(client);
    call.try_once().await?;
    let mut loads = Vec::new();
    let mut callers = vec![1, args.callers];
    callers.dedup();
    for callers in callers {
        say(args, &format!("measuring {callers} at a time"));
        loads.push(load::measure(&endpoint, args, &server, &call, callers).await?);
    }
    // Its own server holds cores and memory that the next part should have.
    drop(own);
    let control = control(args).await;
    let (control, failure) = match control {
        Ok(control) => (control, None),
        Err(failure) => (None, Some(failure)),
    };
    let report = Report { pool: args.pool.clone(), function, server, loads, control };
    output::print(&if args.json { report.to_json() } else { report.render() })?;
    match failure {
        // What was measured before is worth showing all the same.
        Some(failure) => Err(failure),
        None if report.loads.iter().any(|load| load.latency.count() == 0) => {
            Err(Failure::failed("no call succeeded; the errors are counted above"))
        }
        None => Ok(Exit::Ok),
    }
}

async fn control(args: &BenchArgs) -> Result<Option<Control>, Failure> {
    if args.queued == 0 {
        return Ok(None);
    }
    say(args, &format!("measuring with {} in the queue", args.queued));
    control::measure(args.queued).await.map(Some)
}

/// Word of what is going on, for who waits.
fn say(args: &BenchArgs, what: &str) {
    if !args.json {
        eprintln!("{what} …");
    }
}

/// The server to measure: the one that runs, or one that is started for it.
async fn server(args: &BenchArgs) -> Result<(Option<OwnServer>, Endpoint), Failure> {
    if let Some(file) = &args.serve {
        let own = OwnServer::start(&Wanted { file: Some(file), ..Wanted::default() })?;
        let endpoint = own.ready().await?;
        return Ok((Some(own), endpoint));
    }
    let endpoint = Endpoint::find(&args.server)?;
    match Client::connect(endpoint.clone()).await {
        Ok(_) => Ok((None, endpoint)),
        Err(failure) if failure.exit != Exit::NotRunning || args.server.url.is_some() => {
            Err(failure)
        }
        Err(failure) => {
            let Some(config) = config_file(&args.server.config, &current_dir()?) else {
                return Err(Failure::new(
                    Exit::NotRunning,
                    format!(
                        "{}\n  or let bench start one: ostler bench {} --serve FILE.py",
                        failure.message(),
                        args.pool
                    ),
                ));
            };
            say(args, "no server runs; starting one from the configuration");
            let own = OwnServer::start(&Wanted { config: Some(&config), ..Wanted::default() })?;
            let endpoint = own.ready().await?;
            Ok((Some(own), endpoint))
        }
    }
}

/// Calls go over TCP, as those of most clients do.
fn tcp(found: &Endpoint, server: &Server) -> Result<Endpoint, Failure> {
    if let Endpoint::Tcp { .. } = found {
        return Ok(found.clone());
    }
    let listen = server.listen.as_deref().and_then(|listen| listen.parse::<SocketAddr>().ok());
    let listen = listen.ok_or_else(|| {
        Failure::failed("the server does not say where it listens; name its address with --url")
    })?;
    Ok(Endpoint::Tcp { host: listen.ip().to_string(), port: listen.port() })
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    parameters: Value,
}

impl Function {
    fn needs_nothing(&self) -> bool {
        self.parameters["required"].as_array().is_none_or(Vec::is_empty)
    }
}

/// The function that is meant. The pool is asked for even if it is named: whether there is such a
/// pool shows there.
async fn function(client: &mut Client, args: &BenchArgs) -> Result<String, Failure> {
    let path = format!("/api/pools/{}", path_segment(&args.pool));
    let body = list::get(client, &path).await?;
    if let Some(function) = &args.function {
        return Ok(function.clone());
    }
    let pool: Value = list::understood(serde_json::from_slice(&body))?;
    let functions = Vec::<Function>::deserialize(&pool["functions"]);
    let functions = list::understood(functions)?;
    match functions.iter().find(|function| function.needs_nothing()) {
        Some(function) => Ok(function.name.clone()),
        None => Err(Failure::usage(none_without_arguments(&args.pool, &functions))),
    }
}

fn none_without_arguments(pool: &str, functions: &[Function]) -> String {
    let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    match names.as_slice() {
        [] => {
            format!("pool `{pool}` announces no function; name one: ostler bench {pool} FUNCTION")
        }
        [first, ..] => format!(
            "every function of pool `{pool}` needs arguments: {}\n  \
             name one with its payload: ostler bench {pool} {first} '{{…}}'",
            names.join(", ")
        ),
    }
}
