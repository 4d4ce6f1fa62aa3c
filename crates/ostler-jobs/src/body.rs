//! Payloads and results on their way between the ledger and the workers: the same bytes, under
//! another name.

use bytes::{BufMut, Bytes, BytesMut};
use ostler_runtime::{Body, Encoding};
use ostler_store::Content;

const JSON: &str = "application/json";

pub(crate) fn to_body(content: &Content) -> Body {
    match &*content.content_type {
        JSON => Body::json(content.bytes.clone()),
        other => Body::raw(content.bytes.clone(), Some(other.to_owned())),
    }
}

pub(crate) fn to_content(body: &Body) -> Content {
    Content::new(body.content_type(), body.value())
}

/// What the shards came to, in their order, as one JSON list.
pub(crate) fn list(bodies: &[Body]) -> Content {
    let mut text = BytesMut::new();
    for body in bodies {
        text.put_u8(if text.is_empty() { b'[' } else { b',' });
        text.extend_from_slice(&body.to_json());
    }
    if text.is_empty() {
        text.put_u8(b'[');
    }
    text.put_u8(b']');
    Content::new(JSON, text.freeze())
}

/// What a generator yields, as a whole: a JSON list, or bytes one after the other.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    bytes: BytesMut,
    raw: Option<Encoding>,
    any: bool,
}

impl Gathered {
    pub fn push(&mut self, chunk: &Body) {
        if chunk.is_raw() {
            self.raw.get_or_insert_with(|| chunk.encoding.clone());
        } else {
            self.bytes.put_u8(if self.any { b',' } else { b'[' });
        }
        self.any = true;
        self.bytes.extend_from_slice(&chunk.value());
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// `yields`: also none at all are a list.
    pub fn finish(mut self, result: Body, yields: bool) -> Body {
        match (self.any, self.raw) {
            (false, _) if yields => Body::json("[]"),
            (false, _) => result,
            (true, Some(encoding)) => Body { bytes: self.bytes.freeze(), encoding },
            (true, None) => {
                self.bytes.put_u8(b']');
                Body::json(Bytes::from(self.bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_reaches_the_worker_as_it_was_given() {
        for body in [
            Body::json(r#"{"a":1}"#),
            Body::raw(&b"\x00\xff"[..], Some("image/png".to_owned())),
            Body::json(""),
        ] {
            let back = to_body(&to_content(&body));
            assert_eq!(back.value(), body.value());
            assert_eq!(back.content_type(), body.content_type());
        }
    }

    #[test]
    fn results_of_shards_are_a_list_in_their_order() {
        let bodies = [Body::json("1"), Body::empty(), Body::raw(&b"hi"[..], None)];
        let list: serde_json::Value = serde_json::from_slice(&list(&bodies).bytes).expect("JSON");
        assert_eq!((&list[0], &list[1]), (&1.into(), &serde_json::Value::Null));
        assert_eq!(list[2]["$bytes"], "aGk=");
        assert_eq!(&super::list(&[]).bytes[..], b"[]");
    }

    #[test]
    fn what_is_yielded_is_a_list_and_a_plain_result_stays_itself() {
        let gather = |chunks: &[&'static str], yields| {
            let mut gathered = Gathered::default();
            for chunk in chunks {
                gathered.push(&Body::json(*chunk));
            }
            gathered.finish(Body::json("7"), yields).bytes
        };
        assert_eq!(&gather(&["1", "\"b\""], true)[..], b"[1,\"b\"]");
        assert_eq!(&gather(&[], true)[..], b"[]");
        assert_eq!(&gather(&[], false)[..], b"7");
    }
}
