//! `ostler conform`: tests any program against the worker protocol.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ostler_runtime::{Profile, Program};
use tokio::signal::unix::{SignalKind, signal};

use super::args::{ConformArgs, ConformProfile, ConformTransport};
use super::exit::{Exit, Failure};
use super::{output, payload};
use crate::config::DEFAULT_INTERPRETER;
use crate::conform::{self, CannotTest, Finding, Group, Plan, Report, Target, Transport, Verdict};
use crate::text::one_line;

/// A payload must leave room in a message that is near the limit.
const PAYLOAD_MAX: usize = 64 << 10;
/// Calls at a time in the profiles that have several.
const SIDE_BY_SIDE: u32 = 4;

pub(super) async fn run(args: &ConformArgs) -> Result<Exit, Failure> {
    let plan = plan(args)?;
    let report = conform::run(&plan, interrupted()).await.map_err(|error| match error {
        CannotTest::Python(_) | CannotTest::Spawn(_) => Failure::usage(error.to_string()),
        CannotTest::Root(_) | CannotTest::Interrupted => Failure::failed(error.to_string()),
    })?;
    output::print(&match args.json {
        true => json(&report),
        false => render(&report),
    })?;
    match report.count(Verdict::Fail) {
        0 => Ok(Exit::Ok),
        _ => Ok(Exit::Failed),
    }
}

/// Resolves at the first signal that asks for an end.
pub(super) async fn interrupted() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn plan(args: &ConformArgs) -> Result<Plan, Failure> {
    let call = target(args.function.as_ref(), args.payload.as_ref())?.unwrap_or_default();
    let stream = target(args.stream_function.as_ref(), args.stream_payload.as_ref())?;
    let slow = target(args.slow_function.as_ref(), args.slow_payload.as_ref())?;
    let usual = call.function.clone();
    Ok(Plan {
        program: program(&args.command),
        profile: match args.profile {
            ConformProfile::Process => Profile::Process,
            ConformProfile::Thread => Profile::Thread { threads: SIDE_BY_SIDE },
            ConformProfile::Async => Profile::Async { concurrency: SIDE_BY_SIDE },
        },
        transports: match args.transport {
            ConformTransport::Both => Transport::ALL.to_vec(),
            ConformTransport::Inherited => vec![Transport::Inherited],
            ConformTransport::Named => vec![Transport::Named],
        },
        call,
        stream,
        slow: slow.map(|slow| Target { function: slow.function.or(usual), ..slow }),
        timeout: args.timeout,
    })
}

/// `None` if neither is given.
fn target(
    function: Option<&String>,
    argument: Option<&OsString>,
) -> Result<Option<Target>, Failure> {
    let payload = argument.map(|argument| payload::read(std::slice::from_ref(argument)));
    let payload = payload.transpose()?;
    if payload.as_ref().is_some_and(|payload| payload.len() > PAYLOAD_MAX) {
        return Err(Failure::usage("a payload to test with has at most 64 KiB"));
    }
    let given = function.is_some() || payload.is_some();
    Ok(given.then(|| Target { function: function.cloned(), payload }))
}

/// One Python file is a file of functions, for the SDK; everything else is a command.
fn program(command: &[OsString]) -> Program {
    match command {
        [file] if Path::new(file).extension().is_some_and(|kind| kind == "py") => {
            let interpreter = DEFAULT_INTERPRETER.to_owned();
            Program::Python { file: PathBuf::from(file), interpreter }
        }
        argv => Program::Command { argv: argv.to_vec() },
    }
}

fn json(report: &Report) -> String {
    let body = serde_json::json!({
        "passed": report.count(Verdict::Pass),
        "failed": report.count(Verdict::Fail),
        "skipped": report.count(Verdict::Skip),
        "checks": report.findings,
    });
    format!("{body:#}\n")
}

fn render(report: &Report) -> String {
    let width = |text: fn(&Finding) -> &str| {
        report.findings.iter().map(|finding| text(finding).chars().count()).max().unwrap_or(0)
    };
    let (name, expected) = (width(|finding| finding.check), width(|finding| finding.expected));
    let mut out = String::new();
    let mut under: Option<(&str, Group)> = None;
    for finding in &report.findings {
        let heading = (finding.transport, finding.group);
        if under != Some(heading) {
            let gap = if under.is_some() { "\n" } else { "" };
            let _ = writeln!(out, "{gap}{} ({} socket)", heading.1.name(), heading.0);
            under = Some(heading);
        }
        let mark = match finding.verdict {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::Skip => "skip",
        };
        let line = format!(
            "  {mark}  {:name$}  {:expected$}  {}",
            finding.check,
            finding.expected,
            one_line(&finding.found)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let _ = writeln!(out, "\n{}", summary(report));
    out
}

fn summary(report: &Report) -> String {
    let [passed, failed, skipped] =
        [Verdict::Pass, Verdict::Fail, Verdict::Skip].map(|verdict| report.count(verdict));
    format!("{passed} passed, {failed} failed, {skipped} skipped")
}
