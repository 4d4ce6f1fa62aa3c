//! Messages that no server of this version writes but a later one might: unknown types, unknown
//! keys, unknown flags. The encoder of `ostler-proto` refuses them, so they are made here by hand.

use bytes::Bytes;
use ostler_proto::Wire;

/// First in the object and in the shape of a message, to catch readers that look for words.
const KEYS: &str = r#""xConform":{"type":"shutdown","requestId":"0"},"xList":[null,"}"]"#;
/// A kind that is not in the table, from the side of the server.
const KIND: u8 = 0x7E;
/// A flag that no kind defines.
const FLAG: u8 = 0x40;
/// The header of a frame.
const HEADER: usize = 24;

/// A whole message of a type that nobody knows.
pub(super) fn unknown_type(wire: Wire) -> Bytes {
    match wire {
        Wire::Ndjson => {
            Bytes::from_static(b"{\"type\":\"x_conform\",\"requestId\":7,\"payload\":[1,{}]}\n")
        }
        Wire::Binary => {
            let (meta, body) = (br#"{"x":1}"#, b"\xff\x00?");
            let mut frame = vec![0; HEADER];
            frame[4] = KIND;
            frame[8] = 7;
            set(&mut frame, 16, meta.len());
            frame.extend_from_slice(meta);
            frame.extend_from_slice(body);
            set_length(frame)
        }
    }
}

/// The same message with keys, and on the binary wire a flag, that nobody knows.
pub(super) fn with_unknown_keys(wire: Wire, message: &[u8]) -> Bytes {
    match wire {
        Wire::Ndjson => [b"{", KEYS.as_bytes(), b",", &message[1..]].concat().into(),
        Wire::Binary => {
            let (head, rest) = message.split_at(HEADER);
            let length = u32::from_le_bytes([head[16], head[17], head[18], head[19]]);
            let (meta, body) = rest.split_at(length as usize);
            let meta = match meta {
                [] => format!("{{{KEYS}}}").into_bytes(),
                meta => [b"{", KEYS.as_bytes(), b",", &meta[1..]].concat(),
            };
            let mut head = head.to_vec();
            head[5] |= FLAG;
            set(&mut head, 16, meta.len());
            set_length([head, meta, body.to_vec()].concat())
        }
    }
}

fn set(frame: &mut [u8], at: usize, number: usize) {
    frame[at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
}

fn set_length(mut frame: Vec<u8>) -> Bytes {
    let length = frame.len() - 4;
    set(&mut frame, 0, length);
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use ostler_proto::{Body, Decoder, Encoder, Function, Limits, Query, ToWorker};

    const WIRES: [Wire; 2] = [Wire::Ndjson, Wire::Binary];

    fn read(wire: Wire, bytes: &[u8]) -> ToWorker {
        let mut decoder = Decoder::<ToWorker>::new(wire, Limits::default());
        decoder.push(bytes);
        let message = decoder.next().expect("well formed").expect("whole");
        assert_eq!(decoder.pending(), 0);
        message
    }

    #[test]
    fn an_unknown_type_is_one_whole_message() {
        for wire in WIRES {
            assert!(matches!(read(wire, &unknown_type(wire)), ToWorker::Unknown { .. }), "{wire}");
        }
    }

    #[test]
    fn unknown_keys_do_not_change_the_message() {
        for wire in WIRES {
            for function in [Function::Unnamed, Function::Named("f".into())] {
                let query = ToWorker::Query(Query::new(3, function, Body::json("[1]")));
                let mut bytes = BytesMut::new();
                Encoder::new(wire, Limits::default()).encode(&query, &mut bytes).expect("fits");
                let odd = with_unknown_keys(wire, &bytes);
                assert!(odd.len() > bytes.len());
                assert_eq!(read(wire, &odd), query, "{wire}");
            }
        }
    }
}
