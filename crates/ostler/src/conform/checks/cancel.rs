//! Taking back what was asked.

use ostler_proto::{Query, ToWorker};

use super::super::Target;
use super::super::bench::{Bench, query};
use super::super::finding::{Fault, Judged};
use super::super::ledger::Terminal;
use super::streams::{first_chunk, stream_query, watch, with_one_credit};

pub(super) async fn running(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let at_once = cancelled(bench, plan.slow.as_ref().unwrap_or(&plan.call), false).await?;
    let Some(slow) = &plan.slow else {
        return Ok(format!("{at_once}; --slow-function would show more"));
    };
    let begun = cancelled(bench, slow, true).await?;
    Ok(format!("{at_once}; when it ran: {begun}"))
}

/// The end of a call that is cancelled: behind its query, or when it has had time to begin.
async fn cancelled(bench: &mut Bench<'_>, target: &Target, begun: bool) -> Result<Terminal, Fault> {
    let plan = bench.plan;
    let subject = bench.caller().await?;
    let query = query(plan, subject, target);
    let id = query.id;
    subject.send(query).await;
    if begun {
        watch(subject, id).await?;
    }
    subject.cancel(id).await;
    let terminal = subject.answer(id).await?;
    bench.fence().await?;
    Ok(terminal)
}

pub(super) async fn stream(bench: &mut Bench<'_>) -> Judged {
    let query = stream_query(bench).await?;
    let id = query.id;
    let subject = bench.caller().await?;
    subject.send(query).await;
    first_chunk(subject, id).await?;
    subject.cancel(id).await;
    let terminal = subject.answer(id).await?;
    let chunks = subject.ledger.chunks(id);
    bench.fence().await?;
    Ok(format!("{terminal} after {chunks} chunks"))
}

pub(super) async fn unknown(bench: &mut Bench<'_>) -> Judged {
    let plan = bench.plan;
    let subject = bench.caller().await?;
    let query = query(plan, subject, &plan.call);
    let finished = query.id;
    subject.call(query).await?;
    subject.cancel(finished).await;
    bench.fence().await?;
    // The last of this process: a worker may keep a cancel of a later id.
    let mut subject = bench.take_subject().await?;
    let never_sent = subject.ledger.open_unsent();
    subject.cancel(never_sent).await;
    let query = self::query(plan, &mut subject, &plan.call);
    let answered = subject.call(query).await;
    let offence = subject.ledger.take_offence();
    subject.clear().await;
    match (answered, offence) {
        (Err(trouble), _) => Err(trouble.into()),
        (Ok(_), Some(offence)) => Err(offence),
        (Ok(_), None) => Ok("calls go on".to_owned()),
    }
}

pub(super) async fn withdraw(bench: &mut Bench<'_>) -> Judged {
    let subject = bench.caller().await?;
    if !subject.ready.withdraw || !subject.has_control() {
        return Err(Fault::skipped("it does not announce withdraw with a control stream"));
    }
    let places = subject.ready.capacity;
    let mut busy = Vec::new();
    for _ in 0..places {
        busy.push(occupy(bench).await?);
    }
    let plan = bench.plan;
    let subject = bench.caller().await?;
    let waiting = query(plan, subject, &plan.call);
    let id = waiting.id;
    subject.send(waiting).await;
    subject.send_urgently(ToWorker::Withdraw { id }).await;
    let terminal = subject.answer(id).await?;
    for id in busy {
        subject.cancel(id).await;
        subject.answer(id).await?;
    }
    bench.fence().await?;
    match terminal {
        Terminal::Cancelled { started: false } => Ok(terminal.to_string()),
        other => Err(Fault::failed(other.to_string())),
    }
}

/// A call that holds its place: a slow one, or a stream that waits for credit.
async fn occupy(bench: &mut Bench<'_>) -> Result<u64, Fault> {
    let plan = bench.plan;
    if let Some(slow) = &plan.slow {
        let subject = bench.caller().await?;
        let query = query(plan, subject, slow);
        let id = query.id;
        subject.send(query).await;
        return Ok(id);
    }
    let query: Query = match bench.caller().await?.ready.honours_credit() {
        true => with_one_credit(stream_query(bench).await?),
        false => return Err(Fault::skipped("no slow call to see it with: --slow-function")),
    };
    let id = query.id;
    let subject = bench.caller().await?;
    subject.send(query).await;
    match first_chunk(subject, id).await {
        Ok(true) if subject.ledger.terminal(id).is_none() => Ok(id),
        Ok(_) => Err(Fault::skipped("the stream is too short; give --slow-function")),
        Err(fault) => Err(fault),
    }
}
