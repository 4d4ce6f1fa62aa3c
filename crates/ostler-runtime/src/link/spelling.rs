//! Requests and other messages in the words of the wire.

use std::num::NonZeroU32;
use std::time::Duration;

use ostler_core::Continuity;
use ostler_proto::{Body, Context, Encoder, Function, JobPart, Query, ToWorker, Wire};

use super::Link;
use crate::chronicle::continuity_name;
use crate::exchange::Exchange;
use crate::outbox::{Outgoing, Speller};

impl Speller for Link {
    fn encoder(&self) -> Encoder {
        Encoder::new(self.wire().unwrap_or_default(), self.limits)
    }

    fn spell(&self, outgoing: Outgoing) -> ToWorker {
        let (wire_id, exchange, deadline, tries) = match outgoing {
            Outgoing::Message(message) => return message,
            Outgoing::Query { wire_id, exchange, deadline, tries } => {
                (wire_id, exchange, deadline, tries)
            }
        };
        let index = self.opened.get().and_then(|opened| {
            let binary = opened.wire == Wire::Binary;
            opened.functions.get(&*exchange.function).filter(|_| binary).copied()
        });
        let left = deadline.since(self.clock.now()).as_millis();
        ToWorker::Query(Query {
            id: wire_id,
            function: match index {
                Some(index) => Function::Index(index),
                None => Function::Named(exchange.function.to_string()),
            },
            stream: exchange.stream,
            deadline_ms: NonZeroU32::new(u32::try_from(left).unwrap_or(u32::MAX).max(1)),
            body: exchange.body.clone(),
            context: context(&exchange, tries),
        })
    }
}

/// The function that every worker with the hooks has.
const SAVE: &str = "ostler.save_session";

pub(super) fn save(wire_id: u64, session: &str, within: Duration) -> ToWorker {
    let within = u32::try_from(within.as_millis()).unwrap_or(u32::MAX).max(1);
    let context = Context { session_id: Some(session.to_owned()), ..Context::default() };
    ToWorker::Query(Query {
        id: wire_id,
        function: Function::Named(SAVE.to_owned()),
        stream: false,
        deadline_ms: NonZeroU32::new(within),
        body: Body::default(),
        context: Some(Box::new(context)),
    })
}

/// On a lease a session is a guest: it is bound to nobody there.
fn continuity(exchange: &Exchange) -> Option<String> {
    exchange.details.as_ref()?.session.as_ref()?;
    let found = exchange.continuity().unwrap_or(Continuity::Elsewhere);
    Some(continuity_name(found).to_owned())
}

fn context(exchange: &Exchange, tries: u32) -> Option<Box<Context>> {
    if exchange.details.is_none() && tries == 0 {
        return None;
    }
    let details = exchange.details.as_deref().cloned().unwrap_or_default();
    Some(Box::new(Context {
        attempt: tries + 1,
        traceparent: details.traceparent,
        request_id: details.request_id.map(|id| id.to_string()),
        session_id: details.session.map(|session| session.to_string()),
        continuity: continuity(exchange),
        idempotent: details.idempotent,
        job: details.duty.map(|duty| JobPart {
            id: duty.job.to_string(),
            attempt: duty.attempt,
            shard: duty.shard,
            shard_count: duty.shard_count,
            depth: duty.depth,
        }),
        ..Context::default()
    }))
}
