//! What a stream may bring that no simple test brings.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ostler_proto::{Body, Query, ToWorker, Wire};

use super::super::LIMITS;
use super::super::bench::{Bench, query};
use super::super::finding::{Fault, Judged};
use super::super::odd;

/// Bytes that are sent one by one; the rest follows as one piece, but for the last byte.
const SINGLE: usize = 40;
/// Between two pieces, so that the worker has a chance to see them apart.
const PAUSE: Duration = Duration::from_millis(1);
/// How far below the limit a large message stays, for what stands around the payload.
const MARGIN: usize = 4 << 10;

/// The ordinary call, to be sent by other means.
async fn ordinary(bench: &mut Bench<'_>) -> Result<Query, Fault> {
    let plan = bench.plan;
    Ok(query(plan, bench.caller().await?, &plan.call))
}

pub(super) async fn unknown_type(bench: &mut Bench<'_>) -> Judged {
    let subject = bench.caller().await?;
    let message = odd::unknown_type(subject.wire());
    subject.send_bytes(message).await;
    bench.fence().await?;
    Ok("calls go on".to_owned())
}

pub(super) async fn unknown_keys(bench: &mut Bench<'_>) -> Judged {
    let query = ordinary(bench).await?;
    let id = query.id;
    let subject = bench.caller().await?;
    let message = odd::with_unknown_keys(subject.wire(), &subject.encoded(query));
    subject.send_bytes(message).await;
    let terminal = subject.answer(id).await?;
    bench.fence().await?;
    Ok(terminal.to_string())
}

pub(super) async fn split_message(bench: &mut Bench<'_>) -> Judged {
    let query = ordinary(bench).await?;
    let id = query.id;
    let subject = bench.caller().await?;
    let mut bytes = subject.encoded(query);
    let mut pieces: Vec<Bytes> =
        (0..SINGLE.min(bytes.len() - 2)).map(|_| bytes.split_to(1)).collect();
    pieces.push(bytes.split_to(bytes.len() - 1));
    pieces.push(bytes);
    let count = pieces.len();
    for piece in pieces {
        subject.send_bytes(piece).await;
        tokio::time::sleep(PAUSE).await;
    }
    subject.answer(id).await?;
    bench.fence().await?;
    Ok(format!("answered after {count} pieces"))
}

pub(super) async fn joined_messages(bench: &mut Bench<'_>) -> Judged {
    let query = ordinary(bench).await?;
    let id = query.id;
    let subject = bench.caller().await?;
    let mut bytes = BytesMut::from(&subject.encoded(ToWorker::HealthCheck)[..]);
    bytes.extend_from_slice(&subject.encoded(query));
    subject.send_bytes(bytes.freeze()).await;
    subject.answer(id).await?;
    bench.fence().await?;
    Ok("a call behind a health_check was answered".to_owned())
}

pub(super) async fn resemblance(bench: &mut Bench<'_>) -> Judged {
    let mut query = ordinary(bench).await?;
    query.body = Body::json(r#"{"type":"shutdown","requestId":"0","graceful":false}"#);
    let subject = bench.caller().await?;
    let terminal = subject.call(query).await?;
    bench.fence().await?;
    Ok(terminal.to_string())
}

pub(super) async fn large_message(bench: &mut Bench<'_>) -> Judged {
    let small = ordinary(bench).await?;
    let mut large = ordinary(bench).await?;
    large.body = padded(&small.body, bench.caller().await?.wire());
    let size = large.body.len();
    let subject = bench.caller().await?;
    let expected = subject.call(small).await?;
    let terminal = subject.call(large).await?;
    match terminal.kind() == expected.kind() {
        true => Ok(format!("{} with a payload of {size} bytes", terminal.kind())),
        false => Err(Fault::failed(format!("{terminal}; a small one had {expected}"))),
    }
}

/// The same value, with blanks before it: JSON does not count them.
fn padded(body: &Body, wire: Wire) -> Body {
    let limit = match wire {
        Wire::Ndjson => LIMITS.max_line,
        Wire::Binary => LIMITS.max_frame,
    };
    // No arguments are an empty list of them.
    let value: &[u8] = if body.is_empty() { b"[]" } else { &body.bytes };
    let blanks = (limit as usize).saturating_sub(MARGIN + value.len());
    let mut text = BytesMut::with_capacity(blanks + value.len());
    text.resize(blanks, b' ');
    text.extend_from_slice(value);
    Body::json(text.freeze())
}
