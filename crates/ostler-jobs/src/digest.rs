//! A number that stands for a JSON value: the same for the same value in any process and any year,
//! whatever the order of its keys.

use serde_json::Value;

/// FNV-1a of 128 bits.
#[derive(Debug)]
pub(crate) struct Digest(u128);

const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Default for Digest {
    fn default() -> Self {
        Digest(BASIS)
    }
}

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// With its length, so that two texts are not one.
    pub fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(flag) => self.bytes(if *flag { b"t" } else { b"f" }),
            Value::Number(number) => {
                self.bytes(b"#");
                self.text(&number.to_string());
            }
            Value::String(text) => {
                self.bytes(b"s");
                self.text(text);
            }
            Value::Array(items) => {
                self.bytes(b"[");
                items.iter().for_each(|item| self.value(item));
                self.bytes(b"]");
            }
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_by_key(|(name, _)| *name);
                self.bytes(b"{");
                for (name, value) in sorted {
                    self.text(name);
                    self.value(value);
                }
                self.bytes(b"}");
            }
        }
    }

    pub fn finish(self) -> String {
        format!("{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: &Value) -> String {
        let mut digest = Digest::default();
        digest.value(value);
        digest.finish()
    }

    #[test]
    fn it_is_the_same_in_every_process() {
        let mut digest = Digest::default();
        digest.bytes(b"foobar");
        assert_eq!(digest.finish(), "343e1662793c64bf6f0d3597ba446f18");
    }

    #[test]
    fn the_order_of_keys_does_not_count_and_everything_else_does() {
        let parsed = |text| of(&serde_json::from_str(text).expect("JSON"));
        assert_eq!(parsed(r#"{"a":1,"b":[2]}"#), parsed(r#"{"b":[2],"a":1}"#));
        let others = [
            json!({ "a": 1, "b": [3] }),
            json!({ "a": "1", "b": [2] }),
            json!({ "a": 1, "b": [[2]] }),
            json!({ "a": 1, "b": [2], "c": null }),
            json!([1, 2]),
            json!(["1", "2"]),
            json!(["12"]),
            json!(null),
            json!(false),
        ];
        for (at, one) in others.iter().enumerate() {
            for other in &others[at + 1..] {
                assert_ne!(of(one), of(other), "{one} and {other}");
            }
        }
    }
}
