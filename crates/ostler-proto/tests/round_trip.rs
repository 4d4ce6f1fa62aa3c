//! Any message, written on either wire, is read as it was.

mod support;

use std::num::NonZeroU32;

use ostler_proto::{
    Body, Call, Context, Credit, Decoder, FromWorker, Function, HealthReport, JobPart, JsonText,
    Limits, Log, LogLevel, Metric, Query, ToWorker, Wire, WorkerError,
};
use proptest::{collection, option, prelude::*};
use support::{decoded_one, encoded};

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a string")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(",")))
    })
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::empty()),
        json().prop_map(Body::json),
        (any::<Vec<u8>>(), any::<Option<String>>()).prop_map(|(bytes, of)| Body::raw(bytes, of)),
    ]
}

/// Figures with few digits. The last one of many may change on the way, which no figure minds.
fn exact() -> impl Strategy<Value = f64> {
    any::<i32>().prop_map(|n| f64::from(n) / 8.0)
}

fn deadline() -> impl Strategy<Value = Option<NonZeroU32>> {
    any::<u32>().prop_map(NonZeroU32::new)
}

prop_compose! {
    fn job()(
        id in any::<String>(),
        attempt in any::<u32>(),
        shard in any::<u32>(),
        shard_count in any::<u32>(),
        depth in any::<u32>(),
    ) -> JobPart {
        JobPart { id, attempt, shard, shard_count, depth }
    }
}

prop_compose! {
    fn context()(
        session_id in any::<Option<String>>(),
        continuity in any::<Option<String>>(),
        attempt in any::<u32>(),
        traceparent in any::<Option<String>>(),
        credit in option::of((any::<u32>(), any::<u32>())),
        request_id in any::<Option<String>>(),
        job in option::of(job()),
        idempotent in any::<bool>(),
    ) -> Option<Box<Context>> {
        let context = Context {
            session_id, continuity, attempt, traceparent, request_id, job, idempotent,
            credit: credit.map(|(chunks, bytes)| Credit { chunks, bytes }),
        };
        (context != Context::default()).then(|| Box::new(context))
    }
}

prop_compose! {
    fn query()(
        id in any::<u64>(),
        function in any::<Option<String>>(),
        stream in any::<bool>(),
        deadline_ms in deadline(),
        body in body(),
        context in context(),
    ) -> ToWorker {
        let function = function.map_or(Function::Unnamed, Function::Named);
        Query { id, function, stream, deadline_ms, body, context }.into()
    }
}

fn to_worker() -> impl Strategy<Value = ToWorker> {
    let problem = any::<String>().prop_map(|text| {
        let text = serde_json::json!({ "detail": text }).to_string();
        JsonText::parse(text).expect("valid")
    });
    let outcome = prop_oneof![body().prop_map(Ok), problem.prop_map(Err)];
    prop_oneof![
        query(),
        (any::<u64>(), outcome)
            .prop_map(|(call_id, outcome)| ToWorker::CallResult { call_id, outcome }),
        (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(id, chunks, bytes)| {
            ToWorker::Credit { id, credit: Credit { chunks, bytes } }
        }),
        any::<u64>().prop_map(|nonce| ToWorker::Ping { nonce }),
    ]
}

prop_compose! {
    fn error()(
        code in any::<String>(),
        message in any::<String>(),
        retryable in any::<bool>(),
        kind in any::<Option<String>>(),
        traceback in any::<Option<String>>(),
        started in any::<bool>(),
    ) -> Box<WorkerError> {
        Box::new(WorkerError { code, message, retryable, kind, traceback, started })
    }
}

prop_compose! {
    fn call()(
        call_id in any::<u64>(),
        request in any::<Option<u64>>(),
        pool in any::<String>(),
        function in any::<String>(),
        deadline_ms in deadline(),
        answer_on_control in any::<bool>(),
        body in body(),
    ) -> FromWorker {
        FromWorker::Call(Box::new(Call {
            call_id, request, pool, function, deadline_ms, answer_on_control, body,
        }))
    }
}

fn from_worker() -> impl Strategy<Value = FromWorker> {
    let count = || any::<u32>().prop_map(Some);
    let levels =
        [LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error];
    prop_oneof![
        (any::<u64>(), count(), body()).prop_map(|(id, seq, body)| FromWorker::Message {
            id,
            seq,
            body
        }),
        (any::<u64>(), count(), body()).prop_map(|(id, chunks, body)| FromWorker::Complete {
            id,
            chunks,
            body
        }),
        (any::<u64>(), count(), error()).prop_map(|(id, chunks, error)| FromWorker::Error {
            id,
            chunks,
            error
        }),
        (any::<u64>(), count(), any::<bool>(), any::<Option<String>>()).prop_map(
            |(id, chunks, started, reason)| FromWorker::Cancelled { id, chunks, started, reason }
        ),
        (any::<u64>(), any::<String>())
            .prop_map(|(id, session_id)| FromWorker::Session { id, session_id }),
        (any::<u64>(), json())
            .prop_map(|(id, json)| FromWorker::Progress { id, body: Body::json(json) }),
        (option::of(1..u64::MAX), proptest::sample::select(levels.to_vec()), any::<String>())
            .prop_map(|(id, level, message)| FromWorker::Log(Box::new(Log { id, level, message }))),
        (any::<String>(), exact(), collection::btree_map(any::<String>(), any::<String>(), 0..3))
            .prop_map(|(name, value, labels)| {
                FromWorker::Metric(Box::new(Metric { name, value, labels }))
            }),
        (option::of(exact()), any::<Option<u64>>()).prop_map(|(uptime, queries_processed)| {
            FromWorker::HealthOk(HealthReport { uptime, queries_processed })
        }),
        (any::<u64>(), any::<String>())
            .prop_map(|(nonce, text)| FromWorker::TraceResult { nonce, text }),
        (any::<String>(), any::<bool>())
            .prop_map(|(reason, tainted)| FromWorker::Retire { reason, tainted }),
        call(),
    ]
}

fn wire() -> impl Strategy<Value = Wire> {
    prop_oneof![Just(Wire::Ndjson), Just(Wire::Binary)]
}

proptest! {
    #[test]
    fn what_a_server_writes_a_worker_reads(message in to_worker(), wire in wire()) {
        let decoder = Decoder::<ToWorker>::new(wire, Limits::default());
        prop_assert_eq!(decoded_one(decoder, &encoded(&message, wire)), Ok(message));
    }

    #[test]
    fn what_a_worker_writes_a_server_reads(message in from_worker(), wire in wire()) {
        let decoder = Decoder::<FromWorker>::new(wire, Limits::default());
        prop_assert_eq!(decoded_one(decoder, &encoded(&message, wire)), Ok(message));
    }
}
