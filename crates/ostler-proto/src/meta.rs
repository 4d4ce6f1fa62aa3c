//! The JSON objects beside the header: the meta of frames, the rarer keys of lines.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    Body, Credit, Encoding, HealthReport, JobPart, JsonText, Log, Metric, Ready, Wire, WorkerError,
    json::{id, lossy_option, write_id},
};

/// Whatever object a message carries.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Meta<'a> {
    None,
    Query(Box<QueryMeta<'a>>),
    Call(Box<CallMeta<'a>>),
    Content(ContentMeta),
    Problem(&'a JsonText),
    Error(&'a WorkerError),
    Session(SessionMeta<'a>),
    Reason(ReasonMeta<'a>),
    Health(&'a HealthReport),
    Log(&'a Log),
    Metric(&'a Metric),
    Text(TextMeta<'a>),
    Ready(&'a Ready),
    Control(ControlMeta<'a>),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct QueryMeta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) function: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) continuity: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credit: Option<Credit>,
    /// The id that callers know, in a frame. A line has the wire id under this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<Cow<'a, str>>,
    /// The id that callers know, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<Cow<'a, JobPart>>,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) idempotent: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallMeta<'a> {
    /// The request that makes the call.
    #[serde(
        default,
        deserialize_with = "id",
        serialize_with = "write_id",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) request_id: Option<u64>,
    pub(crate) pool: Cow<'a, str>,
    pub(crate) function: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer_on: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContentMeta {
    pub(crate) content_type: Option<String>,
}

impl ContentMeta {
    /// On the NDJSON wire the content type stands inside the body.
    pub(crate) fn for_wire(body: &Body, wire: Wire) -> Option<ContentMeta> {
        let content_type = content_type_for(body, wire)?;
        Some(ContentMeta { content_type: Some(content_type) })
    }
}

/// The content type, where the meta has to carry it.
pub(crate) fn content_type_for(body: &Body, wire: Wire) -> Option<String> {
    match (&body.encoding, wire) {
        (Encoding::Raw { content_type }, Wire::Binary) => content_type.clone(),
        _ => None,
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionMeta<'a> {
    pub(crate) session_id: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ReasonMeta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) tainted: bool,
}

/// [`ReasonMeta`] as read: reasons are for people.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ReasonText {
    #[serde(default, deserialize_with = "lossy_option")]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) tainted: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct TextMeta<'a> {
    pub(crate) text: Cow<'a, str>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct TextRead {
    #[serde(default, deserialize_with = "lossy_option")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ControlMeta<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<Cow<'a, str>>,
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}
