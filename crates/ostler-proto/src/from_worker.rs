//! Messages from a worker to the server.

use std::{borrow::Cow, num::NonZeroU32};

use serde::Deserialize;

use crate::{
    Body, EncodeError, HealthReport, Log, Metric, Ready, Violation, Wire, WorkerError,
    json::lossy,
    kind::{Kind, NOT_STARTED},
    meta::{
        CallMeta, ControlMeta, Meta, ReasonMeta, ReasonText, SessionMeta, TextMeta, TextRead,
        content_type_for,
    },
    parts::{Codec, Content, Draft, Message, Parts},
};

/// `chunks` and `seq` are always there on the binary wire and optional in JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum FromWorker {
    /// The first message of a data stream.
    Ready(Box<Ready>),
    /// The first line of a control stream that the worker opened by itself.
    Control {
        token: Option<String>,
    },
    /// The request was accepted, under a session of the worker's own.
    Session {
        id: u64,
        session_id: String,
    },
    /// One chunk.
    Message {
        id: u64,
        seq: Option<u32>,
        body: Body,
    },
    Complete {
        id: u64,
        chunks: Option<u32>,
        body: Body,
    },
    Error {
        id: u64,
        chunks: Option<u32>,
        error: Box<WorkerError>,
    },
    Cancelled {
        id: u64,
        chunks: Option<u32>,
        started: bool,
        reason: Option<String>,
    },
    ShutdownAck,
    HealthOk(HealthReport),
    HealthFailed {
        reason: String,
    },
    Pong {
        nonce: u64,
    },
    Progress {
        id: u64,
        body: Body,
    },
    Log(Box<Log>),
    Metric(Box<Metric>),
    /// Replace me; what I have not started goes elsewhere.
    Retire {
        reason: String,
        /// My memory or my device is in doubt.
        tainted: bool,
    },
    Call(Box<Call>),
    TraceResult {
        nonce: u64,
        text: String,
    },
    /// A kind that this version does not know: count it and go on.
    Unknown {
        kind: String,
    },
}

/// The worker calls a function of a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The worker's own number for this call.
    pub call_id: u64,
    /// The request that makes it, whose deadline and cancel it inherits.
    pub request: Option<u64>,
    pub pool: String,
    pub function: String,
    pub deadline_ms: Option<NonZeroU32>,
    /// The thread that waits does not read the data stream.
    pub answer_on_control: bool,
    pub body: Body,
}

impl Message for FromWorker {}

#[allow(private_interfaces)]
impl Codec for FromWorker {
    fn from_parts(parts: Parts<'_>) -> Result<Self, Violation> {
        let (id, chunks) = (parts.id, parts.b);
        Ok(match parts.kind {
            Kind::Ready => FromWorker::Ready(Box::new(Ready::from_parts(&parts)?)),
            Kind::Control => FromWorker::Control {
                token: parts.meta::<ControlMeta>()?.token.map(Cow::into_owned),
            },
            Kind::Session => FromWorker::Session {
                id,
                session_id: parts.required_meta::<SessionMeta>()?.session_id.into_owned(),
            },
            Kind::Message => FromWorker::Message { id, seq: parts.b, body: parts.body()? },
            Kind::Complete => FromWorker::Complete { id, chunks, body: parts.body()? },
            Kind::Error => FromWorker::Error { id, chunks, error: Box::new(error_from(&parts)?) },
            Kind::Cancelled => FromWorker::Cancelled {
                id,
                chunks,
                started: !parts.has(NOT_STARTED),
                reason: parts.meta::<ReasonText>()?.reason,
            },
            Kind::ShutdownAck => FromWorker::ShutdownAck,
            Kind::HealthOk => FromWorker::HealthOk(parts.meta()?),
            Kind::HealthFailed => FromWorker::HealthFailed { reason: reason_from(&parts)? },
            Kind::Pong => FromWorker::Pong { nonce: id },
            Kind::Progress => FromWorker::Progress { id, body: parts.body()? },
            Kind::Log => FromWorker::Log(Box::new(log_from(&parts)?)),
            Kind::Metric => FromWorker::Metric(Box::new(parts.required_meta()?)),
            Kind::Retire => retire_from(&parts)?,
            Kind::Call => FromWorker::Call(Box::new(call_from(parts)?)),
            Kind::TraceResult => FromWorker::TraceResult { nonce: id, text: text_from(&parts)? },
            other => Self::unknown(other.name().to_owned()),
        })
    }

    fn unknown(kind: String) -> Self {
        FromWorker::Unknown { kind }
    }

    fn draft(&self, wire: Wire) -> Result<Draft<'_>, EncodeError> {
        Ok(match self {
            FromWorker::Ready(ready) => Draft::new(Kind::Ready).meta(Meta::Ready(ready)),
            FromWorker::Control { token } => {
                let token = token.as_deref().map(Cow::Borrowed);
                Draft::new(Kind::Control).meta(Meta::Control(ControlMeta { token }))
            }
            FromWorker::Session { id, session_id } => {
                let session_id = Cow::Borrowed(session_id.as_str());
                let meta = Meta::Session(SessionMeta { session_id });
                Draft::new(Kind::Session).id(*id).meta(meta)
            }
            FromWorker::Message { id, seq, body } => {
                let draft = Draft::new(Kind::Message).id(*id).number(*seq);
                draft.body_with_type(body, wire)
            }
            FromWorker::Complete { id, chunks, body } => {
                let draft = Draft::new(Kind::Complete).id(*id).number(*chunks);
                draft.body_with_type(body, wire)
            }
            FromWorker::Error { id, chunks, error } => {
                let draft = Draft::new(Kind::Error).id(*id).number(*chunks);
                draft.meta(Meta::Error(error))
            }
            FromWorker::Cancelled { id, chunks, started, reason } => {
                let draft = Draft::new(Kind::Cancelled).id(*id).number(*chunks);
                let draft = draft.flag(NOT_STARTED, !started);
                match reason {
                    Some(reason) => draft.meta(reason_meta(reason)),
                    None => draft,
                }
            }
            FromWorker::ShutdownAck => Draft::new(Kind::ShutdownAck),
            FromWorker::HealthOk(report) => Draft::new(Kind::HealthOk).meta(Meta::Health(report)),
            FromWorker::HealthFailed { reason } => {
                Draft::new(Kind::HealthFailed).meta(reason_meta(reason))
            }
            FromWorker::Pong { nonce } => Draft::new(Kind::Pong).id(*nonce),
            FromWorker::Progress { id, body } => Draft::new(Kind::Progress).id(*id).body(body),
            FromWorker::Log(log) => {
                let draft = Draft::new(Kind::Log).id(log.id.unwrap_or(0));
                draft.meta(Meta::Log(log))
            }
            FromWorker::Metric(metric) => Draft::new(Kind::Metric).meta(Meta::Metric(metric)),
            FromWorker::Retire { reason, tainted } => {
                let reason = Some(Cow::Borrowed(reason.as_str()));
                let meta = Meta::Reason(ReasonMeta { reason, tainted: *tainted });
                Draft::new(Kind::Retire).meta(meta)
            }
            FromWorker::Call(call) => call_draft(call, wire),
            FromWorker::TraceResult { nonce, text } => {
                let text = Cow::Borrowed(text.as_str());
                let draft = Draft::new(Kind::TraceResult).id(*nonce);
                draft.meta(Meta::Text(TextMeta { text }))
            }
            FromWorker::Unknown { kind } => {
                return Err(EncodeError::UnknownKind { kind: kind.clone() });
            }
        })
    }

    fn wire_after(&self) -> Option<Wire> {
        match self {
            FromWorker::Ready(ready) => Some(ready.wire),
            _ => None,
        }
    }
}

/// An error is an object, or in JSON lines a mere string.
fn error_from(parts: &Parts<'_>) -> Result<WorkerError, Violation> {
    #[derive(Deserialize)]
    struct Message(#[serde(deserialize_with = "lossy")] String);

    match parts.meta {
        Some(text) if parts.wire == Wire::Ndjson && text.first() == Some(&b'"') => {
            let message = serde_json::from_slice::<Message>(text)
                .map_err(|e| Violation::from_json("error", &e))?;
            Ok(WorkerError { message: message.0, ..WorkerError::default() })
        }
        Some(_) => parts.meta(),
        None => Err(Violation::missing("error", "error", parts.wire)),
    }
}

fn reason_from(parts: &Parts<'_>) -> Result<String, Violation> {
    Ok(parts.meta::<ReasonText>()?.reason.unwrap_or_default())
}

fn retire_from(parts: &Parts<'_>) -> Result<FromWorker, Violation> {
    let ReasonText { reason, tainted } = parts.meta()?;
    Ok(FromWorker::Retire { reason: reason.unwrap_or_default(), tainted })
}

fn reason_meta(reason: &str) -> Meta<'_> {
    Meta::Reason(ReasonMeta { reason: Some(Cow::Borrowed(reason)), tainted: false })
}

fn log_from(parts: &Parts<'_>) -> Result<Log, Violation> {
    let log: Log = parts.required_meta()?;
    Ok(Log { id: (parts.id != 0).then_some(parts.id), ..log })
}

fn text_from(parts: &Parts<'_>) -> Result<String, Violation> {
    match (parts.wire, &parts.content) {
        (Wire::Binary, Content::Inside(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
        (Wire::Binary, _) => Ok(String::new()),
        (Wire::Ndjson, _) => Ok(parts.meta::<TextRead>()?.text.unwrap_or_default()),
    }
}

fn call_from(parts: Parts<'_>) -> Result<Call, Violation> {
    let meta: CallMeta<'static> = parts.required_meta()?;
    Ok(Call {
        call_id: parts.id,
        request: meta.request_id,
        pool: meta.pool.into_owned(),
        function: meta.function.into_owned(),
        deadline_ms: meta.deadline_ms.and_then(NonZeroU32::new),
        answer_on_control: meta.answer_on.as_deref() == Some("control"),
        body: parts.body_typed(meta.content_type),
    })
}

fn call_draft(call: &Call, wire: Wire) -> Draft<'_> {
    let meta = CallMeta {
        request_id: call.request,
        pool: Cow::Borrowed(&call.pool),
        function: Cow::Borrowed(&call.function),
        deadline_ms: call.deadline_ms.map(NonZeroU32::get),
        answer_on: call.answer_on_control.then_some(Cow::Borrowed("control")),
        content_type: content_type_for(&call.body, wire),
    };
    let draft = Draft::new(Kind::Call).id(call.call_id).body(&call.body);
    draft.meta(Meta::Call(Box::new(meta)))
}
