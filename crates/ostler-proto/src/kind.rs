//! The catalogue of message kinds: number on the binary wire, name in JSON, and which JSON keys
//! stand for the header's fields. Everything that both wires must agree on is in these tables.

macro_rules! kinds {
    ($($variant:ident = $code:literal $name:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Kind { $($variant = $code,)* }

        impl Kind {
            pub(crate) fn from_code(code: u8) -> Option<Kind> {
                match code { $($code => Some(Kind::$variant),)* _ => None }
            }

            pub(crate) fn from_name(name: &str) -> Option<Kind> {
                match name { $($name => Some(Kind::$variant),)* _ => None }
            }

            pub(crate) fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    Query = 0x01 "query",
    Cancel = 0x02 "cancel",
    Shutdown = 0x03 "shutdown",
    HealthCheck = 0x04 "health_check",
    Ping = 0x05 "ping",
    Credit = 0x06 "credit",
    CallResult = 0x07 "call_result",
    Trace = 0x08 "trace",
    Withdraw = 0x09 "withdraw",
    Control = 0x80 "control",
    Ready = 0x81 "ready",
    Session = 0x82 "session",
    Message = 0x83 "message",
    Complete = 0x84 "complete",
    Error = 0x85 "error",
    Cancelled = 0x86 "cancelled",
    ShutdownAck = 0x87 "shutdown_ack",
    HealthOk = 0x88 "health_ok",
    HealthFailed = 0x89 "health_failed",
    Pong = 0x8A "pong",
    Progress = 0x8B "progress",
    Log = 0x8C "log",
    Metric = 0x8D "metric",
    Retire = 0x8E "retire",
    Call = 0x8F "call",
    TraceResult = 0x90 "trace_result",
}

/// Flag of `query`: the caller wants chunks as they come.
pub(crate) const STREAM: u8 = 0x01;
/// Flag of `shutdown`: finish what is running first.
pub(crate) const GRACEFUL: u8 = 0x01;
/// Flag of `cancelled`: the request had not started.
pub(crate) const NOT_STARTED: u8 = 0x01;
/// Flag of `call_result`: the meta is a problem.
pub(crate) const FAILED: u8 = 0x02;
/// Flag of kinds with a body: it is raw bytes, not JSON text.
pub(crate) const RAW: u8 = 0x80;

/// `code` of a query whose function is not given by its index.
pub(crate) const NO_INDEX: u16 = 0xFFFF;

/// What the header's id is called in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdKey {
    Request,
    OptionalRequest,
    Call,
    Nonce,
    None,
}

/// What the header's last field is called in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberKey {
    DeadlineMs,
    Seq,
    Chunks,
    Bytes,
    None,
}

impl Kind {
    pub(crate) fn id_key(self) -> IdKey {
        use Kind::*;
        match self {
            Query | Cancel | Withdraw | Credit | Session | Message | Complete | Error
            | Cancelled | Progress => IdKey::Request,
            Log => IdKey::OptionalRequest,
            Call | CallResult => IdKey::Call,
            Ping | Pong | Trace | TraceResult => IdKey::Nonce,
            Shutdown | HealthCheck | Control | Ready | ShutdownAck | HealthOk | HealthFailed
            | Metric | Retire => IdKey::None,
        }
    }

    pub(crate) fn number_key(self) -> NumberKey {
        match self {
            Kind::Query => NumberKey::DeadlineMs,
            Kind::Message => NumberKey::Seq,
            Kind::Complete | Kind::Error | Kind::Cancelled => NumberKey::Chunks,
            Kind::Credit => NumberKey::Bytes,
            _ => NumberKey::None,
        }
    }

    /// The JSON key of the body, for kinds that have one.
    pub(crate) fn body_key(self) -> Option<&'static str> {
        match self {
            Kind::Query | Kind::Call => Some("payload"),
            Kind::Message | Kind::Progress => Some("content"),
            Kind::Complete | Kind::CallResult => Some("result"),
            _ => None,
        }
    }

    /// Whether the raw flag means something for this kind.
    pub(crate) fn may_be_raw(self) -> bool {
        self.body_key().is_some() && self != Kind::Progress
    }

    /// Only ever spelled as a line, on either wire.
    pub(crate) fn opens_a_stream(self) -> bool {
        matches!(self, Kind::Ready | Kind::Control)
    }
}
