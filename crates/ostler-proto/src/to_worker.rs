//! Messages from the server to a worker.

use std::{borrow::Cow, num::NonZeroU32};

use serde::{Deserialize, Serialize};

use crate::{
    Body, EncodeError, JsonText, Violation, Wire,
    kind::{FAILED, GRACEFUL, Kind, NO_INDEX, STREAM},
    meta::{Meta, QueryMeta, content_type_for},
    parts::{Codec, Draft, Message, Parts},
};

#[derive(Debug, Clone, PartialEq)]
pub enum ToWorker {
    Query(Query),
    Cancel {
        id: u64,
    },
    /// Give the request back if it has not begun; otherwise go on as if nothing was said.
    Withdraw {
        id: u64,
    },
    /// Not graceful: stop at once.
    Shutdown {
        graceful: bool,
    },
    HealthCheck,
    Ping {
        nonce: u64,
    },
    /// More chunks may be sent for a request.
    Credit {
        id: u64,
        credit: Credit,
    },
    /// The answer to a `call`: a result, or a problem as the HTTP API spells it.
    CallResult {
        call_id: u64,
        outcome: Result<Body, JsonText>,
    },
    /// Asks for the stacks of what is running.
    Trace {
        nonce: u64,
    },
    /// A kind that this version does not know: count it and go on.
    Unknown {
        kind: String,
    },
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The wire id: rises per worker in the order of sending, from 1.
    pub id: u64,
    pub function: Function,
    /// The caller wants the chunks as they come.
    pub stream: bool,
    /// Milliseconds left when the query was written.
    pub deadline_ms: Option<NonZeroU32>,
    pub body: Body,
    /// What most requests do not have, boxed to keep the usual ones small.
    pub context: Option<Box<Context>>,
}

impl Query {
    pub fn new(id: u64, function: Function, body: Body) -> Query {
        Query { id, function, stream: false, deadline_ms: None, body, context: None }
    }
}

impl From<Query> for ToWorker {
    fn from(query: Query) -> ToWorker {
        ToWorker::Query(query)
    }
}

/// Which function a query means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Function {
    /// Its place in the `functions` of `ready`; binary wire only.
    Index(u16),
    Named(String),
    /// The worker has one function and needs no name.
    Unnamed,
}

/// The rarer circumstances of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    pub session_id: Option<String>,
    /// What the session finds here: `bound`, `same`, `elsewhere`, `restored` or `restarted`.
    pub continuity: Option<String>,
    /// Of this request: 1 on the first try. A job counts its own.
    pub attempt: u32,
    pub traceparent: Option<String>,
    /// The initial window, where it is not [`Credit::DEFAULT`].
    pub credit: Option<Credit>,
    /// The id that callers know.
    pub request_id: Option<String>,
    pub job: Option<JobPart>,
    pub idempotent: bool,
}

impl Default for Context {
    fn default() -> Self {
        Context {
            session_id: None,
            continuity: None,
            attempt: 1,
            traceparent: None,
            credit: None,
            request_id: None,
            job: None,
            idempotent: false,
        }
    }
}

/// The job that a query is part of: the whole of it, or one of its shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobPart {
    pub id: String,
    /// Of the job, from 1.
    pub attempt: u32,
    /// From 0, below `shard_count`.
    pub shard: u32,
    /// How many workers do it at once, at least 1.
    pub shard_count: u32,
    /// How many jobs are above it.
    pub depth: u32,
}

/// How much a worker may send. A chunk costs one and its bytes; sending is allowed while both
/// counters are above zero, so bytes may fall below it by one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    pub chunks: u32,
    pub bytes: u32,
}

impl Credit {
    /// The window of a query that names none.
    pub const DEFAULT: Credit = Credit { chunks: 256, bytes: 1 << 20 };
}

impl Message for ToWorker {}

#[allow(private_interfaces)]
impl Codec for ToWorker {
    fn from_parts(parts: Parts<'_>) -> Result<Self, Violation> {
        let id = parts.id;
        Ok(match parts.kind {
            Kind::Query => ToWorker::Query(query_from(parts)?),
            Kind::Cancel => ToWorker::Cancel { id },
            Kind::Withdraw => ToWorker::Withdraw { id },
            Kind::Shutdown => ToWorker::Shutdown { graceful: parts.has(GRACEFUL) },
            Kind::HealthCheck => ToWorker::HealthCheck,
            Kind::Ping => ToWorker::Ping { nonce: id },
            Kind::Credit => ToWorker::Credit {
                id,
                credit: Credit { chunks: parts.a, bytes: parts.b.unwrap_or(0) },
            },
            Kind::CallResult if parts.has(FAILED) => {
                ToWorker::CallResult { call_id: id, outcome: Err(parts.required_meta()?) }
            }
            Kind::CallResult => ToWorker::CallResult { call_id: id, outcome: Ok(parts.body()?) },
            Kind::Trace => ToWorker::Trace { nonce: id },
            other => Self::unknown(other.name().to_owned()),
        })
    }

    fn unknown(kind: String) -> Self {
        ToWorker::Unknown { kind }
    }

    fn draft(&self, wire: Wire) -> Result<Draft<'_>, EncodeError> {
        Ok(match self {
            ToWorker::Query(query) => query_draft(query, wire)?,
            ToWorker::Cancel { id } => Draft::new(Kind::Cancel).id(*id),
            ToWorker::Withdraw { id } => Draft::new(Kind::Withdraw).id(*id),
            ToWorker::Shutdown { graceful } => Draft::new(Kind::Shutdown).flag(GRACEFUL, *graceful),
            ToWorker::HealthCheck => Draft::new(Kind::HealthCheck),
            ToWorker::Ping { nonce } => Draft::new(Kind::Ping).id(*nonce),
            ToWorker::Credit { id, credit } => {
                let mut draft = Draft::new(Kind::Credit).id(*id).number(Some(credit.bytes));
                draft.a = credit.chunks;
                draft
            }
            ToWorker::CallResult { call_id, outcome } => {
                let draft = Draft::new(Kind::CallResult).id(*call_id);
                match outcome {
                    Ok(body) => draft.body_with_type(body, wire),
                    Err(problem) => draft.flag(FAILED, true).meta(Meta::Problem(problem)),
                }
            }
            ToWorker::Trace { nonce } => Draft::new(Kind::Trace).id(*nonce),
            ToWorker::Unknown { kind } => {
                return Err(EncodeError::UnknownKind { kind: kind.clone() });
            }
        })
    }

    fn wire_after(&self) -> Option<Wire> {
        None
    }
}

fn query_from(parts: Parts<'_>) -> Result<Query, Violation> {
    let mut meta: QueryMeta<'static> = parts.meta()?;
    let function = match (parts.code, meta.function.take()) {
        (NO_INDEX, Some(name)) => Function::Named(name.into_owned()),
        (NO_INDEX, None) => Function::Unnamed,
        (index, _) => Function::Index(index),
    };
    Ok(Query {
        id: parts.id,
        function,
        stream: parts.has(STREAM),
        deadline_ms: parts.b.and_then(NonZeroU32::new),
        context: context_from(&mut meta, parts.wire).map(Box::new),
        body: parts.body_typed(meta.content_type),
    })
}

fn context_from(meta: &mut QueryMeta<'static>, wire: Wire) -> Option<Context> {
    let request_id = match wire {
        Wire::Binary => meta.request_id.take(),
        Wire::Ndjson => meta.public_id.take(),
    };
    let context = Context {
        session_id: meta.session_id.take().map(Cow::into_owned),
        continuity: meta.continuity.take().map(Cow::into_owned),
        attempt: meta.attempt.unwrap_or(1),
        traceparent: meta.traceparent.take().map(Cow::into_owned),
        credit: meta.credit,
        request_id: request_id.map(Cow::into_owned),
        job: meta.job.take().map(Cow::into_owned),
        idempotent: meta.idempotent,
    };
    (context != Context::default()).then_some(context)
}

fn query_draft(query: &Query, wire: Wire) -> Result<Draft<'_>, EncodeError> {
    let (code, function) = match (&query.function, wire) {
        (Function::Index(NO_INDEX), _) | (Function::Index(_), Wire::Ndjson) => {
            return Err(EncodeError::FunctionNeedsName);
        }
        (Function::Index(index), Wire::Binary) => (*index, None),
        (Function::Named(name), _) => (NO_INDEX, Some(name.as_str())),
        (Function::Unnamed, _) => (NO_INDEX, None),
    };
    let mut draft = Draft::new(Kind::Query)
        .id(query.id)
        .flag(STREAM, query.stream)
        .number(query.deadline_ms.map(NonZeroU32::get))
        .body(&query.body);
    draft.code = code;
    let content_type = content_type_for(&query.body, wire);
    if query.context.is_some() || function.is_some() || content_type.is_some() {
        let mut meta = context_meta(query.context.as_deref(), wire);
        meta.function = function.map(Cow::Borrowed);
        meta.content_type = content_type;
        draft.meta = Meta::Query(Box::new(meta));
    }
    Ok(draft)
}

fn context_meta(context: Option<&Context>, wire: Wire) -> QueryMeta<'_> {
    let Some(context) = context else {
        return QueryMeta::default();
    };
    let id = context.request_id.as_deref().map(Cow::Borrowed);
    let (request_id, public_id) = match wire {
        Wire::Binary => (id, None),
        Wire::Ndjson => (None, id),
    };
    QueryMeta {
        function: None,
        session_id: context.session_id.as_deref().map(Cow::Borrowed),
        continuity: context.continuity.as_deref().map(Cow::Borrowed),
        attempt: (context.attempt != 1).then_some(context.attempt),
        traceparent: context.traceparent.as_deref().map(Cow::Borrowed),
        content_type: None,
        credit: context.credit,
        request_id,
        public_id,
        job: context.job.as_ref().map(Cow::Borrowed),
        idempotent: context.idempotent,
    }
}
