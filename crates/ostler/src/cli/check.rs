//! `ostler check`: reads the configuration, starts one worker of each pool, stops them again, and
//! looks at the store.
//!
//! Nothing listens and no function is called, so it may run beside a server of the same
//! configuration.

mod advice;
mod store;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ostler_runtime::{Pool, PoolSpec};
use serde::Serialize;
use serde_json::json;

use self::advice::advice;
use super::args::CheckArgs;
use super::endpoint::{config_file, current_dir};
use super::exit::{Exit, Failure};
use super::output;
use crate::config::units::show_duration;
use crate::config::{self, Config, Invalid, LoadError};
use crate::spec;
use crate::text::{one_line, printable};

/// A pool tells when it is ready, but not when a process of it failed: that is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Our own timer is to run out first: it knows why it runs.
const BEYOND: Duration = Duration::from_secs(60);

/// What became of one pool.
#[derive(Debug, Serialize)]
struct Trial {
    name: String,
    verdict: Verdict,
    seconds: f64,
    functions: Vec<Function>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ready,
    Failed,
}

#[derive(Debug, Serialize)]
struct Function {
    name: String,
    streaming: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
}

pub(super) async fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    if args.schema {
        output::print(&format!("{:#}\n", config::schema()))?;
        return Ok(Exit::Ok);
    }
    let file = config_file(&args.config, &current_dir()?).ok_or_else(|| {
        Failure::usage(
            "there is nothing to check: no ostler.toml here or above\n  \
             write a first one with: ostler init",
        )
    })?;
    match config::load(&file) {
        Ok(config) => try_pools(&config, &file, args).await,
        Err(LoadError::Invalid(invalid)) if args.json => {
            output::print(&refusal(&file, &invalid))?;
            Ok(Exit::Failed)
        }
        Err(error @ LoadError::Invalid(_)) => Err(Failure::failed(error.to_string())),
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}

/// One after the other: each pool's time is its own.
async fn try_pools(config: &Config, file: &Path, args: &CheckArgs) -> Result<Exit, Failure> {
    let names: Vec<&str> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
    if !args.json {
        let shown = one_line(&file.display().to_string());
        output::print(&format!("{shown} is valid, pools: {}\n", names.join(", ")))?;
    }
    let mut trials = Vec::new();
    for pool in config.pools.iter().filter(|_| !args.no_start) {
        let trial = try_pool(pool, &config.server).await;
        if !args.json {
            output::print(&render(&trial))?;
        }
        trials.push(trial);
    }
    let store = match args.no_start {
        true => None,
        false => Some(store::look(&config.store).await),
    };
    if let Some(store) = store.as_ref().filter(|_| !args.json) {
        output::print(&store.line())?;
    }
    let ok = trials.iter().all(|trial| trial.verdict == Verdict::Ready)
        && store.as_ref().is_none_or(|store| store.ok);
    output::print(&match args.json {
        true => {
            let config = file.display().to_string();
            let report = json!({
                "ok": ok, "config": config, "problems": [], "pools": trials, "store": store,
            });
            format!("{report:#}\n")
        }
        false => summary(&trials),
    })?;
    match ok {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Failed),
    }
}

async fn try_pool(pool: &config::Pool, server: &config::Server) -> Trial {
    let begun = Instant::now();
    let mut spec = spec::spec(&pool.clone().of_one_worker(), server);
    spec.settings.start_timeout = pool.start.timeout + BEYOND;
    let outcome = start_and_stop(spec, pool.start.timeout, begun).await;
    let name = pool.name.to_string();
    match outcome {
        Ok((functions, took)) => Trial {
            name,
            verdict: Verdict::Ready,
            seconds: took.as_secs_f64(),
            functions,
            error: None,
            advice: None,
        },
        Err(error) => Trial {
            name,
            verdict: Verdict::Failed,
            seconds: begun.elapsed().as_secs_f64(),
            functions: Vec::new(),
            advice: Some(advice(pool, &error)),
            error: Some(error),
        },
    }
}

/// What the pool's first worker serves and how long it took to be ready, or why it never was.
async fn start_and_stop(
    spec: PoolSpec,
    patience: Duration,
    begun: Instant,
) -> Result<(Vec<Function>, Duration), String> {
    let pool = Pool::start(spec).await.map_err(|error| error.to_string())?;
    let outcome = come_up(&pool, patience).await.map(|()| (functions(&pool), begun.elapsed()));
    pool.shut_down(outcome.is_err());
    pool.stopped().await;
    outcome
}

async fn come_up(pool: &Pool, patience: Duration) -> Result<(), String> {
    let failure = async {
        loop {
            if let Some(why) = pool.info().last_failure {
                return why;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    tokio::select! {
        () = pool.ready() => Ok(()),
        why = failure => Err(why),
        () = tokio::time::sleep(patience) => Err(still_starting(pool, patience)),
    }
}

fn still_starting(pool: &Pool, patience: Duration) -> String {
    let info = pool.info();
    let said = info.workers.iter().flat_map(|worker| worker.last_lines(20));
    let said: String = said.map(|line| format!("\n  {line}")).collect();
    format!("not ready after {}{said}", show_duration(patience))
}

fn functions(pool: &Pool) -> Vec<Function> {
    let functions = pool.functions();
    functions
        .iter()
        .cloned()
        .map(|function| Function {
            name: function.name,
            streaming: function.streaming,
            doc: function.doc,
        })
        .collect()
}

fn render(trial: &Trial) -> String {
    let mut out = String::new();
    let (name, seconds) = (&trial.name, trial.seconds);
    let Some(error) = &trial.error else {
        let _ = writeln!(out, "{name}: ready after {seconds:.2} s, {}", served(&trial.functions));
        return out;
    };
    let _ = writeln!(out, "{name}: failed after {seconds:.2} s");
    for line in printable(error).lines() {
        let _ = writeln!(out, "  {line}");
    }
    for line in trial.advice.iter().flat_map(|advice| advice.lines()) {
        let _ = writeln!(out, "  = {}", one_line(line));
    }
    out
}

fn summary(trials: &[Trial]) -> String {
    let failed = trials.iter().filter(|trial| trial.verdict == Verdict::Failed).count();
    match (failed, trials.len()) {
        (0, 0) => "nothing was started\n".to_owned(),
        (0, _) => "every pool starts\n".to_owned(),
        (failed, all) => format!("{failed} of {all} pools did not start\n"),
    }
}

fn served(functions: &[Function]) -> String {
    let shown = functions.iter().map(|function| match function.streaming {
        true => format!("{} (streams)", one_line(&function.name)),
        false => one_line(&function.name),
    });
    match functions {
        [] => "announces no functions".to_owned(),
        _ => format!("functions: {}", shown.collect::<Vec<_>>().join(", ")),
    }
}

/// An invalid configuration, for programs.
fn refusal(file: &Path, invalid: &Invalid) -> String {
    let problems = invalid.places().map(|(at, problem)| {
        json!({
            "line": at.line,
            "column": at.column,
            "message": problem.message,
            "help": problem.help,
        })
    });
    let problems: Vec<_> = problems.collect();
    let config = file.display().to_string();
    let report = json!({ "ok": false, "config": config, "problems": problems, "pools": [] });
    format!("{report:#}\n")
}
