//! Chunks and credit.

use std::time::Duration;

use ostler_proto::{Context, Credit, Query};

use super::super::bench::{Bench, query};
use super::super::finding::{Fault, Judged};
use super::super::subject::{Subject, Trouble};

/// An endless stream is cancelled after so many chunks.
const ENOUGH: u32 = 1_000;
/// How long a worker is watched that should be quiet or should have time to begin.
const WATCHED: Duration = Duration::from_millis(250);
/// One chunk, of any usual size.
pub(super) const ONE: Credit = Credit { chunks: 1, bytes: 1 << 16 };

/// The streaming call, with the chunks wanted as they come.
pub(super) async fn stream_query(bench: &mut Bench<'_>) -> Result<Query, Fault> {
    let plan = bench.plan;
    let ready = bench.caller().await?.ready.clone();
    let target = bench.streaming(&ready)?;
    let query = query(plan, bench.caller().await?, &target);
    Ok(Query { stream: true, ..query })
}

pub(super) async fn chunks(bench: &mut Bench<'_>) -> Judged {
    let query = stream_query(bench).await?;
    let id = query.id;
    let subject = bench.caller().await?;
    subject.send(query).await;
    let (mut granted, mut deadline) = (0, subject.deadline());
    while subject.ledger.terminal(id).is_none() {
        subject.hear_until(deadline).await?;
        let chunks = subject.ledger.chunks(id);
        if chunks > granted && chunks <= ENOUGH {
            (granted, deadline) = (chunks, subject.deadline());
            subject.grant(id, ONE).await;
            if chunks == ENOUGH {
                subject.cancel(id).await;
            }
        }
    }
    let (chunks, terminal) = (subject.ledger.chunks(id), subject.answer(id).await?);
    bench.fence().await?;
    match chunks {
        0 => Err(Fault::skipped(format!("no chunks ({terminal}); give --stream-payload"))),
        _ => Ok(format!("{chunks} chunks, then {terminal}")),
    }
}

pub(super) async fn credit(bench: &mut Bench<'_>) -> Judged {
    if !bench.caller().await?.ready.honours_credit() {
        return Err(Fault::skipped("it does not announce credit"));
    }
    let query = with_one_credit(stream_query(bench).await?);
    let id = query.id;
    let subject = bench.caller().await?;
    subject.send(query).await;
    if !first_chunk(subject, id).await? {
        bench.fence().await?;
        return Err(Fault::skipped("the stream has no chunk; give --stream-payload"));
    }
    let sent = watch(subject, id).await?;
    if sent > 1 {
        let mut subject = bench.take_subject().await?;
        subject.ledger.take_offence();
        subject.clear().await;
        return Err(Fault::failed(format!("{sent} chunks with credit for 1")));
    }
    let ended_early = subject.ledger.terminal(id).is_some();
    subject.grant(id, Credit::DEFAULT).await;
    let goes_on = async {
        let deadline = subject.deadline();
        while subject.ledger.chunks(id) < 2 && subject.ledger.terminal(id).is_none() {
            subject.hear_until(deadline).await?;
        }
        subject.cancel(id).await;
        subject.answer(id).await
    };
    goes_on.await?;
    let chunks = subject.ledger.chunks(id);
    bench.fence().await?;
    match ended_early || chunks < 2 {
        true => Err(Fault::skipped("the stream has one chunk; give --stream-payload")),
        false => Ok("1 chunk with credit for 1, more with more".to_owned()),
    }
}

pub(super) fn with_one_credit(query: Query) -> Query {
    let context = Context { credit: Some(ONE), ..Context::default() };
    Query { context: Some(Box::new(context)), ..query }
}

/// False: it ended without one.
pub(super) async fn first_chunk(subject: &mut Subject, id: u64) -> Result<bool, Fault> {
    let deadline = subject.deadline();
    while subject.ledger.chunks(id) == 0 {
        if subject.ledger.terminal(id).is_some() {
            return Ok(false);
        }
        subject.hear_until(deadline).await?;
    }
    Ok(true)
}

/// Chunks of a request after a while.
pub(super) async fn watch(subject: &mut Subject, id: u64) -> Result<u32, Fault> {
    let until = tokio::time::Instant::now() + WATCHED;
    loop {
        match subject.hear_until(until).await {
            Ok(_) => {}
            Err(Trouble::Silent(_)) => return Ok(subject.ledger.chunks(id)),
            Err(trouble) => return Err(trouble.into()),
        }
    }
}
