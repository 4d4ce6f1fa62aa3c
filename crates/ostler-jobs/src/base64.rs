//! Bytes that a JSON text holds.

/// With its padding, as RFC 4648 has it. None: it is none.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let last = text.len().saturating_sub(4);
    for (at, group) in text.chunks_exact(4).enumerate() {
        let padding = group.iter().rev().take_while(|digit| **digit == b'=').count();
        if padding > 2 || (padding > 0 && at * 4 != last) {
            return None;
        }
        let mut bits = 0u32;
        for digit in &group[..4 - padding] {
            bits = bits << 6 | u32::from(value(*digit)?);
        }
        bits <<= 6 * padding;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        let examples = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in examples.into_iter().enumerate() {
            assert_eq!(decode(text).as_deref(), Some(&b"foobar"[..length]), "{text}");
        }
        assert_eq!(decode("+/+/"), Some(vec![0xfb, 0xff, 0xbf]));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["Z", "Zg=", "Zg===", "Z===", "Zg==Zm9v", "Zm 9", "Zm9\u{e9}", "===="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
