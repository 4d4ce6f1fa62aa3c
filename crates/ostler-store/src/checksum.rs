//! A checksum per row. A database does not notice bits that flipped on the disk; a session that came
//! back other than it was is worse than one that is gone, and so is a job. FNV-1a: every single change
//! of a byte changes it, and it is the same in every version of this program.

use crate::content::Content;
use crate::kept::Kept;
use crate::session::Program;
use crate::sql::Sink;

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum(u64);

impl Sum {
    pub fn new() -> Self {
        Sum(BASIS)
    }

    fn of(number: u64) -> Self {
        Sum::new().int(number as i64)
    }

    /// With its length, so that bytes cannot move from one field to the next.
    pub fn bytes(self, bytes: &[u8]) -> Self {
        self.int(bytes.len() as i64).raw(bytes)
    }

    pub fn int(self, value: i64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    fn raw(self, bytes: &[u8]) -> Self {
        Sum(bytes.iter().fold(self.0, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME)))
    }

    /// A database's integers have signs.
    pub fn done(self) -> i64 {
        self.0 as i64
    }
}

impl Sink for Sum {
    fn text(&mut self, value: &str) {
        *self = Sum::bytes(*self, value.as_bytes());
    }

    /// What is missing differs from whatever is there.
    fn maybe_text(&mut self, value: Option<&str>) {
        *self = value.map_or(Sum::int(*self, -1), |value| Sum::bytes(*self, value.as_bytes()));
    }

    fn int(&mut self, value: i64) {
        *self = Sum::int(*self, value);
    }

    fn maybe_int(&mut self, value: Option<i64>) {
        *self = value.map_or(Sum::int(*self, 0), |value| Sum::int(Sum::int(*self, 1), value));
    }

    fn bytes(&mut self, value: &[u8]) {
        *self = Sum::bytes(*self, value);
    }

    fn maybe_bytes(&mut self, value: Option<&[u8]>) {
        *self = value.map_or(Sum::int(*self, -1), |value| Sum::bytes(*self, value));
    }
}

/// With the names and versions of its programs: one that is missing is a change too.
pub(crate) fn session(kept: &Kept) -> i64 {
    let programs = kept.programs.iter();
    let sum = programs.fold(Sum::of(kept.number), |sum, (name, program)| {
        sum.bytes(name.as_bytes()).int(program.version as i64)
    });
    sum.bytes(kept.id.as_bytes())
        .int(kept.version as i64)
        .bytes(kept.metadata.get().as_bytes())
        .int(kept.created)
        .int(kept.ttl)
        .int(kept.expires.unwrap_or(-1))
        .bytes(strict_nodes(kept).as_bytes())
        .done()
}

/// As they are written.
pub(crate) fn strict_nodes(kept: &Kept) -> String {
    let nodes = kept.strict.iter().map(|(pool, node)| (pool.to_string(), node.to_string().into()));
    serde_json::Value::Object(nodes.collect()).to_string()
}

pub(crate) fn program(number: u64, name: &str, program: &Program) -> i64 {
    content(Sum::of(number).bytes(name.as_bytes()).int(program.version as i64), &program.content)
}

pub(crate) fn state(number: u64, pool: &str, saved: &Content) -> i64 {
    content(Sum::of(number).bytes(pool.as_bytes()), saved)
}

fn content(sum: Sum, content: &Content) -> i64 {
    sum.bytes(content.content_type.as_bytes()).bytes(&content.bytes).done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_changes_the_sum() {
        let whole = Content::new("application/json", &b"[1,2,3]"[..]);
        let sum = state(7, "pool", &whole);
        assert_eq!(sum, state(7, "pool", &whole));
        assert_ne!(sum, state(8, "pool", &whole));
        for bit in 0..whole.bytes.len() * 8 {
            let mut bytes = whole.bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(
                sum,
                state(7, "pool", &Content::new("application/json", bytes)),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn bytes_do_not_move_between_fields_unnoticed() {
        assert_ne!(
            state(1, "pool", &Content::new("ab", &b"c"[..])),
            state(1, "pool", &Content::new("a", &b"bc"[..]))
        );
    }
}
