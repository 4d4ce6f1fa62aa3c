//! A number for a function and its payload: the same request has the same, and two different ones
//! as good as never. Every call pays for it, so it is fast; it starts from a secret of this
//! process, so that nobody can make another's request look like a deadly one.

use std::sync::LazyLock;

/// Of this process only.
static SECRET: LazyLock<u64> = LazyLock::new(|| uuid::Uuid::now_v7().as_u128() as u64 | 1);

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) fn of(function: &str, payload: &[u8]) -> u64 {
    // 0 means none.
    fold(fold(*SECRET, function.as_bytes()), payload).max(1)
}

fn fold(seed: u64, bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut state = multiply(seed ^ bytes.len() as u64, MIX);
    for word in &mut words {
        state = multiply(state ^ u64::from_le_bytes(word.try_into().expect("8 bytes")), MIX);
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    multiply(state ^ u64::from_le_bytes(last), MIX)
}

/// Both halves of the product: no bit of the input is lost.
fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_request_has_the_same_fingerprint_and_others_have_others() {
        assert_eq!(of("f", b"payload"), of("f", b"payload"));
        let others = [
            of("f", b"payloae"),
            of("g", b"payload"),
            of("f", b""),
            of("f", b"\0"),
            of("fp", b"ayload"),
        ];
        for other in others {
            assert_ne!(other, of("f", b"payload"));
        }
        assert_ne!(of("f", b""), of("f", b"\0"), "the length counts");
    }

    #[test]
    fn every_bit_of_a_payload_counts() {
        let payload = [7_u8; 40];
        let mut seen = std::collections::HashSet::from([of("f", &payload)]);
        for bit in 0..payload.len() * 8 {
            let mut changed = payload;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(of("f", &changed)), "bit {bit}");
        }
    }
}
