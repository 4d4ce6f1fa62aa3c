//! Signs of life.

use ostler_proto::{FromWorker, ToWorker, Wire};

use super::super::bench::Bench;
use super::super::finding::{Fault, Judged};

/// Longer than a double holds, as a server's may become.
const NONCE: u64 = 9_007_199_254_740_995;

pub(super) async fn health_check(bench: &mut Bench<'_>) -> Judged {
    let subject = bench.subject().await?;
    subject.send(ToWorker::HealthCheck).await;
    let answer = subject.await_message(|message| match message {
        FromWorker::HealthOk(report) => Some(match (report.uptime, report.queries_processed) {
            (Some(uptime), Some(queries)) => format!("health_ok, {uptime:.3} s, {queries} queries"),
            _ => "health_ok".to_owned(),
        }),
        FromWorker::HealthFailed { reason } => Some(format!("health_failed: {reason}")),
        _ => None,
    });
    Ok(answer.await?)
}

pub(super) async fn ping(bench: &mut Bench<'_>) -> Judged {
    let subject = bench.subject().await?;
    if subject.wire() == Wire::Ndjson && !subject.has_control() {
        return Err(Fault::skipped("one stream of lines is asked by health_check"));
    }
    subject.send_urgently(ToWorker::Ping { nonce: NONCE }).await;
    let pong = subject.await_message(|message| match message {
        FromWorker::Pong { nonce } => Some(*nonce),
        _ => None,
    });
    match pong.await? {
        NONCE => Ok("pong with its nonce".to_owned()),
        other => Err(Fault::failed(format!("pong with nonce {other} for {NONCE}"))),
    }
}
