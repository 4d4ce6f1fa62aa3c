//! From the start to the first call.

use std::collections::HashSet;

use ostler_proto::{Ready, Wire};

use super::super::bench::{Bench, query};
use super::super::finding::{Fault, Judged};
use super::super::launcher::LINES_ONLY;
use super::super::subject::{Subject, Trouble};

/// Signals that a process may be sent.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

pub(super) async fn ready_valid(bench: &mut Bench<'_>) -> Judged {
    let subject = bench.subject().await?;
    match nonsense(subject) {
        Some(nonsense) => Err(Fault::failed(nonsense)),
        None => Ok(announced(&subject.ready)),
    }
}

/// What no decoder refuses and no server can use.
fn nonsense(subject: &Subject) -> Option<String> {
    let ready = &subject.ready;
    let mut names = HashSet::new();
    if let Some(function) = ready.functions.iter().find(|function| !names.insert(&function.name)) {
        return Some(format!("two functions are named {:?}", function.name));
    }
    if names.contains(&String::new()) {
        return Some("a function has an empty name".to_owned());
    }
    let is_schema = |text: &str| text.starts_with(['{', 't', 'f']);
    let odd = ready.functions.iter().find(|function| {
        function.parameters.as_ref().is_some_and(|schema| !is_schema(schema.as_str().trim_start()))
    });
    if let Some(function) = odd {
        return Some(format!("the parameters of {:?} are no JSON schema", function.name));
    }
    for (key, signal) in
        [("cancelSignal", ready.cancel_signal), ("traceSignal", ready.trace_signal)]
    {
        if let Some(signal) = signal.filter(|signal| !SIGNALS.contains(signal)) {
            return Some(format!("{key} is {signal}, which is no signal"));
        }
    }
    (ready.control && !subject.has_control())
        .then(|| "control is true, and there is no second connection".to_owned())
}

fn announced(ready: &Ready) -> String {
    let functions = ready.functions.len();
    let mut text = format!("{}, capacity {}, functions {functions}", ready.wire, ready.capacity);
    for (said, word) in
        [(ready.control, "control"), (ready.credit, "credit"), (ready.withdraw, "withdraw")]
    {
        if said {
            text = format!("{text}, {word}");
        }
    }
    text
}

pub(super) async fn token(bench: &mut Bench<'_>) -> Judged {
    let subject = bench.subject().await?;
    let Some(token) = &subject.token else {
        return Err(Fault::skipped("an inherited stream needs none"));
    };
    match subject.tokens.iter().position(|presented| presented.as_ref() != Some(token)) {
        None => Ok(format!("presented on {} of {0}", subject.tokens.len())),
        Some(at) => Err(Fault::failed(match &subject.tokens[at] {
            None => "a connection presented none".to_owned(),
            Some(_) => "a connection presented another one".to_owned(),
        })),
    }
}

pub(super) async fn wire_offered(bench: &mut Bench<'_>) -> Judged {
    let chosen = bench.subject().await?.ready.wire;
    if chosen == Wire::Ndjson {
        return Ok("ndjson, which every server offers".to_owned());
    }
    let started = bench.start(LINES_ONLY).await;
    let subject = started.map_err(|unready| Fault::failed(unready.why()))?;
    let chosen = subject.ready.wire;
    subject.clear().await;
    match chosen {
        Wire::Ndjson => Ok("ndjson where binary is not offered".to_owned()),
        Wire::Binary => Err(Fault::failed("binary, though only ndjson was offered")),
    }
}

/// Whatever else may be wrong with a first call, other checks tell.
pub(super) async fn stream_clean(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let subject = bench.subject().await?;
    let query = query(plan, subject, &plan.call);
    let called = subject.call(query).await;
    let printed = subject.printed();
    match called {
        Err(broken @ Trouble::Broken(_)) => return Err(broken.into()),
        Err(_) => bench.clear().await,
        Ok(_) => {}
    }
    Ok(format!("{printed} lines printed elsewhere"))
}
