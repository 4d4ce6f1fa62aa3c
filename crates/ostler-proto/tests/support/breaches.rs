//! Streams that break the protocol, and how they are found out.

use ostler_proto::Wire;

use super::frame;

pub struct Breach {
    pub name: &'static str,
    pub to_worker: bool,
    pub wire: Wire,
    /// The stream is fresh: `ready` must come first.
    pub opening: bool,
    pub violation: &'static str,
    /// How many messages are good before it.
    pub good: usize,
    pub bytes: Vec<u8>,
}

/// The limits under which breaches are tried.
pub const MAX_FRAME: u32 = 256;
pub const MAX_LINE: u32 = 128;

pub fn all() -> Vec<Breach> {
    let mut all = line_breaches();
    all.extend(frame_breaches());
    all.extend(breaches_to_worker());
    all
}

fn line_breaches() -> Vec<Breach> {
    let breach = |opening, violation, good, name, text: &str| Breach {
        name,
        to_worker: false,
        wire: Wire::Ndjson,
        opening,
        violation,
        good,
        bytes: text.as_bytes().to_vec(),
    };
    let opened =
        |violation, name, text: &str| breach(false, violation, 0, name, &format!("{text}\n"));
    let fresh =
        |violation, name, text: &str| breach(true, violation, 0, name, &format!("{text}\n"));
    let mut all = vec![
        fresh("ready_expected", "a request before ready", r#"{"type":"complete","requestId":"1"}"#),
        fresh("ready_expected", "an unknown type before ready", r#"{"type":"hello"}"#),
        fresh("bad_json", "output of the program before ready", "Loading model..."),
        fresh(
            "unsupported_protocol",
            "another protocol version",
            r#"{"type":"ready","protocol":2,"wire":"quic"}"#,
        ),
        fresh("bad_message", "an unknown wire", r#"{"type":"ready","wire":"smoke"}"#),
        fresh("bad_message", "a capacity of none", r#"{"type":"ready","capacity":0}"#),
        breach(
            true,
            "opened_twice",
            1,
            "ready twice",
            "{\"type\":\"ready\"}\n{\"type\":\"ready\"}\n",
        ),
        opened("bad_json", "not JSON", "boom"),
        opened("bad_json", "NaN", r#"{"type":"complete","requestId":"1","result":NaN}"#),
        opened("bad_json", "an unfinished object", r#"{"type":"complete","requestId":"1""#),
        opened(
            "bad_json",
            "two values on a line",
            r#"{"type":"shutdown_ack"}{"type":"shutdown_ack"}"#,
        ),
        opened(
            "bad_json",
            "a raw control character in a string",
            "{\"type\":\"log\",\"message\":\"\u{1}\"}",
        ),
        opened("bad_message", "an array", r#"["complete"]"#),
        opened("bad_message", "no type", r#"{"requestId":"1"}"#),
        opened("bad_message", "no id", r#"{"type":"complete"}"#),
        opened("bad_message", "an id that is a number", r#"{"type":"complete","requestId":1}"#),
        opened(
            "bad_message",
            "an id that is not decimal",
            r#"{"type":"complete","requestId":"r_1"}"#,
        ),
        opened(
            "bad_message",
            "an id with a leading zero",
            r#"{"type":"complete","requestId":"01"}"#,
        ),
        opened("bad_message", "an id with a sign", r#"{"type":"complete","requestId":"+1"}"#),
        opened("bad_message", "an empty id", r#"{"type":"complete","requestId":""}"#),
        opened(
            "bad_message",
            "an id beyond 64 bits",
            r#"{"type":"complete","requestId":"18446744073709551616"}"#,
        ),
        opened(
            "bad_message",
            "a key given twice",
            r#"{"type":"complete","requestId":"1","requestId":"2"}"#,
        ),
        opened(
            "bad_message",
            "an error that is a number",
            r#"{"type":"error","requestId":"1","error":5}"#,
        ),
        opened("bad_message", "an error without error", r#"{"type":"error","requestId":"1"}"#),
        opened(
            "bad_message",
            "a call without a function",
            r#"{"type":"call","callId":"1","pool":"db"}"#,
        ),
        breach(
            false,
            "line_too_long",
            0,
            "a line over the limit",
            &format!("{}\n", "x".repeat(129)),
        ),
        breach(
            false,
            "line_too_long",
            1,
            "a line over the limit without an end",
            &format!("{{\"type\":\"shutdown_ack\"}}\n{}", " ".repeat(129)),
        ),
    ];
    all.push(Breach {
        name: "a line that is not UTF-8",
        to_worker: false,
        wire: Wire::Ndjson,
        opening: false,
        violation: "not_utf8",
        good: 0,
        bytes: b"{\"type\":\"log\",\"message\":\"\xE9\"}\n".to_vec(),
    });
    all
}

fn frame_breaches() -> Vec<Breach> {
    let breach = |violation, good, name, bytes: Vec<u8>| Breach {
        name,
        to_worker: false,
        wire: Wire::Binary,
        opening: false,
        violation,
        good,
        bytes,
    };
    let ack = frame(0x87, 0, 0, 0, 0, 0, b"");
    let claim = |length: u32| length.to_le_bytes().to_vec();
    vec![
        breach("frame_too_short", 0, "a length without a header", claim(19)),
        breach(
            "frame_too_short",
            1,
            "a length of nothing behind a good frame",
            [ack, claim(0)].concat(),
        ),
        breach("frame_too_long", 0, "a length over the limit", claim(257)),
        breach("frame_too_long", 0, "the largest length", claim(u32::MAX)),
        breach("meta_too_long", 0, "meta beyond the frame", frame(0x84, 0, 0, 1, 3, 0, b"{}")),
        breach("meta_too_long", 0, "the largest meta", frame(0x8A, 0, 0, 1, u32::MAX, 0, b"{}")),
        breach("bad_json", 0, "meta that is not JSON", frame(0x8C, 0, 0, 0, 2, 0, b"??")),
        breach("bad_message", 0, "meta that is an array", frame(0x82, 0, 0, 1, 5, 0, br#"["s"]"#)),
        breach("bad_message", 0, "a session without its name", frame(0x82, 0, 0, 1, 0, 0, b"")),
        breach("bad_message", 0, "an error without meta", frame(0x85, 0, 0, 1, 0, 0, b"")),
        breach(
            "bad_message",
            0,
            "an error that is a string",
            frame(0x85, 0, 0, 1, 3, 0, br#""x""#),
        ),
        breach("opened_twice", 0, "ready as a frame", frame(0x81, 0, 0, 0, 0, 0, b"")),
    ]
}

fn breaches_to_worker() -> Vec<Breach> {
    let breach = |wire, violation, name, bytes: Vec<u8>| Breach {
        name,
        to_worker: true,
        wire,
        opening: false,
        violation,
        good: 0,
        bytes,
    };
    let frame_breach = |violation, name, bytes| breach(Wire::Binary, violation, name, bytes);
    let line_breach = |violation, name, text: &str| {
        breach(Wire::Ndjson, violation, name, format!("{text}\n").into_bytes())
    };
    vec![
        frame_breach("frame_too_short", "a length without a header", vec![19, 0, 0, 0]),
        frame_breach("frame_too_long", "a length over the limit", vec![1, 1, 0, 0]),
        frame_breach("meta_too_long", "meta beyond the query", frame(0x01, 0, 0, 1, 3, 0, b"{}")),
        frame_breach("bad_json", "a query's meta is not JSON", frame(0x01, 0, 0, 1, 1, 0, b"{")),
        frame_breach(
            "bad_message",
            "a job without its id",
            frame(
                0x01,
                0,
                0,
                1,
                56,
                0,
                br#"{"job":{"attempt":1,"shard":0,"shardCount":1,"depth":0}}"#,
            ),
        ),
        frame_breach("bad_message", "a problem without meta", frame(0x07, 2, 0, 1, 0, 0, b"")),
        line_breach("bad_json", "not JSON", "boom"),
        line_breach(
            "bad_message",
            "a job that is only its id",
            r#"{"type":"query","requestId":"1","job":"j_1"}"#,
        ),
        line_breach("bad_message", "a query without an id", r#"{"type":"query"}"#),
    ]
}
