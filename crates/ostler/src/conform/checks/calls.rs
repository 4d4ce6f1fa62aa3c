//! Calls and their answers.

use bytes::Bytes;
use ostler_proto::{Body, Function, WorkerError};

use super::super::bench::{Bench, query, query_of};
use super::super::finding::{Fault, Judged};
use super::super::ledger::Terminal;
use super::super::schema;

/// 2^53 + 1, the first number that a double loses.
const LONG_ID: u64 = 9_007_199_254_740_993;
/// Calls in a row.
const ROW: usize = 5;
/// Calls at a time, however many more the worker takes.
const AT_A_TIME: u32 = 16;
/// A name that no worker has.
const NOBODY: &str = "ostler_conform_no_such_function";
/// Keyword arguments that no function has.
const UNKNOWN_KEYWORD: &str = r#"{"ostler_conform_no_such_argument":1}"#;

pub(super) async fn answered_once(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let subject = bench.caller().await?;
    let query = query(plan, subject, &plan.call);
    let terminal = subject.call(query).await?;
    bench.fence().await?;
    Ok(terminal.to_string())
}

pub(super) async fn in_sequence(bench: &mut Bench<'_>) -> Judged {
    for _ in 0..ROW {
        bench.fence().await?;
    }
    Ok(format!("{ROW} answered"))
}

pub(super) async fn ids_echoed(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let subject = bench.caller().await?;
    let id = subject.ledger.open_at(LONG_ID);
    let query = query_of(plan, &subject.ready, id, &plan.call);
    subject.send(query).await;
    let deadline = subject.deadline();
    while subject.ledger.terminal(id).is_none() {
        subject.hear_until(deadline).await?;
        // An answer to another id is the breach that is looked for.
        if let Some(offence) = subject.ledger.take_offence() {
            bench.clear().await;
            return Err(offence);
        }
    }
    // Later ids would be as long; other checks have their own failures to find.
    bench.clear().await;
    Ok(format!("{id} came back"))
}

pub(super) async fn capacity(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let subject = bench.caller().await?;
    let announced = subject.ready.capacity;
    if announced == 1 {
        return Err(Fault::skipped("it takes one call at a time"));
    }
    let calls: Vec<_> =
        (0..announced.min(AT_A_TIME)).map(|_| query(plan, subject, &plan.call)).collect();
    let ids: Vec<u64> = calls.iter().map(|query| query.id).collect();
    for query in calls {
        subject.send(query).await;
    }
    for id in &ids {
        subject.answer(*id).await?;
    }
    bench.fence().await?;
    Ok(format!("{} at a time, all answered", ids.len()))
}

pub(super) async fn overlap(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    if bench.caller().await?.ready.capacity == 1 {
        return Err(Fault::skipped("it takes one call at a time"));
    }
    let Some(slow) = &plan.slow else {
        return Err(Fault::skipped("no slow call to see it with: --slow-function"));
    };
    let mut subject = bench.take_subject().await?;
    let long = query(plan, &mut subject, slow);
    let long_id = long.id;
    subject.send(long).await;
    let short = query(plan, &mut subject, &plan.call);
    let answered = subject.call(short).await;
    let first = subject.ledger.terminal(long_id).cloned();
    subject.clear().await;
    match (answered, first) {
        (Ok(_), None) => Ok("the short call was answered first".to_owned()),
        (Ok(_), Some(terminal)) => {
            Err(Fault::failed(format!("the slow call was answered first: {terminal}")))
        }
        (Err(trouble), _) => Err(trouble.into()),
    }
}

pub(super) async fn unknown_function(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let subject = bench.caller().await?;
    let mut query = query(plan, subject, &plan.call);
    query.function = Function::Named(NOBODY.to_owned());
    let terminal = subject.call(query).await?;
    let announces = !subject.ready.functions.is_empty();
    bench.fence().await?;
    let knows =
        matches!(&terminal, Terminal::Error(e) if e.code == WorkerError::FUNCTION_NOT_FOUND);
    match announces && !knows {
        true => Err(Fault::failed(terminal.to_string())),
        false => Ok(terminal.to_string()),
    }
}

pub(super) async fn bad_payload(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let payloads = odd_payloads();
    for payload in &payloads {
        let subject = bench.caller().await?;
        let mut query = query(plan, subject, &plan.call);
        query.body = Body::json(payload.clone());
        let terminal = subject.call(query).await?;
        if *payload == UNKNOWN_KEYWORD.as_bytes() {
            refused_if_closed(bench, &terminal).await?;
        }
    }
    bench.fence().await?;
    Ok(format!("{} answered", payloads.len()))
}

/// A schema that names all its parameters has promised to refuse others.
async fn refused_if_closed(bench: &mut Bench<'_>, terminal: &Terminal) -> Result<(), Fault> {
    let wanted = bench.plan.call.function.clone();
    let functions = &bench.caller().await?.ready.functions;
    let called = match wanted {
        Some(name) => functions.iter().find(|function| function.name == name),
        None => functions.first(),
    };
    let parameters = called.and_then(|function| function.parameters.as_ref());
    let closed = parameters.is_some_and(|schema| schema::is_closed(schema.as_str()));
    match terminal {
        Terminal::Complete(_) if closed => {
            Err(Fault::failed(format!("{terminal} with an argument that its schema does not have")))
        }
        _ => Ok(()),
    }
}

/// JSON that is legal and seldom thought of.
fn odd_payloads() -> Vec<Bytes> {
    let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
    let long = "9".repeat(400);
    let mut payloads = vec![Bytes::new(), deep.into(), long.into()];
    let texts = ["null", "[]", "-0.0", "1e999", r#""\ud800""#, r#"{"":{}}"#, r#""\u0000\n""#];
    payloads.extend(texts.map(|text| Bytes::from_static(text.as_bytes())));
    payloads.push(Bytes::from_static(UNKNOWN_KEYWORD.as_bytes()));
    payloads
}
