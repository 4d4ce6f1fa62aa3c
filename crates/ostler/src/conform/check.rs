//! The catalogue of checks: their names, in the order in which they are made, and what each of
//! them expects of a worker.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    Opening,
    Calls,
    Streams,
    Cancel,
    Health,
    Shutdown,
    Robustness,
}

impl Group {
    pub fn name(self) -> &'static str {
        match self {
            Group::Opening => "opening",
            Group::Calls => "calls",
            Group::Streams => "streams",
            Group::Cancel => "cancel",
            Group::Health => "health",
            Group::Shutdown => "shutdown",
            Group::Robustness => "robustness",
        }
    }
}

macro_rules! checks {
    ($($variant:ident $group:ident $name:literal $expected:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Check { $($variant,)* }

        impl Check {
            pub const ALL: [Check; [$($name),*].len()] = [$(Check::$variant),*];

            pub fn group(self) -> Group {
                match self { $(Check::$variant => Group::$group,)* }
            }

            pub fn name(self) -> &'static str {
                match self { $(Check::$variant => $name,)* }
            }

            pub fn expected(self) -> &'static str {
                match self { $(Check::$variant => $expected,)* }
            }
        }
    };
}

checks! {
    ReadyFirst Opening "ready-first" "ready is the first message and comes in time",
    ReadyValid Opening "ready-valid" "every key of ready makes sense",
    Token Opening "token" "each connection presents OSTLER_TOKEN",
    WireOffered Opening "wire-offered" "a wire of OSTLER_WIRES is chosen",
    StreamClean Opening "stream-clean" "only messages on the stream, whatever is printed",

    AnsweredOnce Calls "answered-once" "one terminal message with the id of the call",
    InSequence Calls "in-sequence" "five calls in a row, each answered",
    IdsEchoed Calls "ids-echoed" "an id above 2^53 comes back digit by digit",
    Capacity Calls "capacity" "as many calls at a time as announced, each answered",
    Overlap Calls "overlap" "a short call is answered while a slow one runs",
    UnknownFunction Calls "unknown-function" "an error, function_not_found where functions are announced",
    BadPayload Calls "bad-payload" "odd payloads are answered, those that do not fit with an error",

    Chunks Streams "chunks" "chunks in order, a terminal message, nothing after it",
    Credit Streams "credit" "chunks stop when the credit is used up and go on with more",

    CancelRunning Cancel "cancel-running" "one terminal message, and the next call is answered",
    CancelStream Cancel "cancel-stream" "a stream ends with one terminal message",
    CancelUnknown Cancel "cancel-unknown" "a cancel of what it does not hold changes nothing",
    Withdraw Cancel "withdraw" "a call that has not begun comes back as not started",

    Health Health "health-check" "health_ok or health_failed",
    Ping Health "ping" "pong with the same nonce",

    Graceful Shutdown "graceful" "shutdown_ack, then exit code 0",
    Finishes Shutdown "finishes" "the running call is answered before shutdown_ack",
    Immediate Shutdown "immediate" "the process ends, whatever it does",
    EndOfStream Shutdown "end-of-stream" "the process ends when its stream does",
    EndOfControl Shutdown "end-of-control" "the process ends when its control stream does",

    UnknownType Robustness "unknown-type" "a message of an unknown type is ignored",
    UnknownKeys Robustness "unknown-keys" "unknown keys are ignored, the call is answered",
    SplitMessage Robustness "split-message" "a message in pieces of a byte is read whole",
    JoinedMessages Robustness "joined-messages" "two messages in one write are both read",
    Resemblance Robustness "resemblance" "a payload that looks like a message is a payload",
    LargeMessage Robustness "large-message" "a message just below the limit is answered like a small one",
}
