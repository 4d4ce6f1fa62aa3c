//! `ostler-sim run --seeds 0..1000 --events 20000`, `--seed S` to see one again, `bench` for the
//! core's speed.

use std::process::ExitCode;
use std::time::Instant;

use ostler_sim::{Tracing, bench, run};

const USAGE: &str = "usage:
  ostler-sim run [--seeds A..B | --seed S] [--events N] [--trace] [--keep-going] [--brief]
  ostler-sim bench";

struct Args {
    seeds: std::ops::Range<u64>,
    events: u64,
    trace: bool,
    keep_going: bool,
    /// One line for each failure.
    brief: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("run") => match parse(&args[1..]) {
            Some(args) => run_all(&args),
            None => usage(),
        },
        Some("bench") => {
            print!("{}", bench::report());
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn parse(words: &[String]) -> Option<Args> {
    let mut args =
        Args { seeds: 0..100, events: 20_000, trace: false, keep_going: false, brief: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => {
                let (first, end) = words.next()?.split_once("..")?;
                args.seeds = first.parse().ok()?..end.parse().ok()?;
            }
            "--seed" => {
                let seed = words.next()?.parse().ok()?;
                args.seeds = seed..seed + 1;
            }
            "--events" => args.events = words.next()?.parse().ok()?,
            "--trace" => args.trace = true,
            "--keep-going" => args.keep_going = true,
            "--brief" => args.brief = true,
            _ => return None,
        }
    }
    Some(args)
}

fn run_all(args: &Args) -> ExitCode {
    // Findings are told by this program, once; the panic's own words would come twice.
    std::panic::set_hook(Box::new(|_| {}));
    let tracing = if args.trace { Tracing::Print } else { Tracing::Off };
    let (begun, mut events, mut executions, mut spawns, mut failed) = (Instant::now(), 0, 0, 0, 0);
    for seed in args.seeds.clone() {
        match run::run(seed, args.events, tracing) {
            Ok(tally) => {
                events += tally.events;
                executions += tally.executions;
                spawns += tally.spawns;
            }
            Err(failure) => {
                failed += 1;
                events += failure.events;
                if args.brief {
                    println!("caught {seed} {events} {}", failure.violation.checker);
                } else {
                    tell(&failure, args.keep_going);
                }
                if !args.keep_going {
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{} worlds, {events} events, {executions} executions, {spawns} processes in {took:.1} s: {:.0} events/s",
        args.seeds.end - args.seeds.start,
        events as f64 / took
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell(failure: &run::Failure, briefly: bool) {
    if !briefly {
        for line in &failure.tail {
            println!("{line}");
        }
    }
    println!(
        "seed {} after {} events: {}: {}",
        failure.seed, failure.events, failure.violation.checker, failure.violation.text
    );
}
