//! Base64 (RFC 4648, standard alphabet, padded), for raw bytes inside JSON lines. Only the one
//! canonical spelling is accepted, so a value has one form on the wire.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const INVALID: u8 = 0xFF;

const VALUES: [u8; 256] = {
    let mut values = [INVALID; 256];
    let mut i = 0;
    while i < 64 {
        values[ALPHABET[i] as usize] = i as u8;
        i += 1;
    }
    values
};

pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut padded = [0u8; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        let letter = |shift: u32| ALPHABET[(bits >> shift) as usize & 63];
        let third = if group.len() > 1 { letter(6) } else { b'=' };
        let fourth = if group.len() > 2 { letter(0) } else { b'=' };
        out.extend_from_slice(&[letter(18), letter(12), third, fourth]);
    }
    out
}

pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|b| **b == b'=').count();
    let letters = &text[..text.len() - padding];
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for group in letters.chunks(4) {
        let mut bits = 0u32;
        for (place, letter) in group.iter().enumerate() {
            let value = VALUES[usize::from(*letter)];
            if value == INVALID {
                return None;
            }
            bits |= u32::from(value) << (18 - 6 * place);
        }
        let bytes = bits.to_be_bytes();
        let kept = group.len() - 1;
        if bytes[1 + kept..].iter().any(|b| *b != 0) {
            return None;
        }
        out.extend_from_slice(&bytes[1..=kept]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_rfc_4648_hold() {
        let examples = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in examples {
            assert_eq!(encode(plain.as_bytes()), coded.as_bytes());
            assert_eq!(decode(coded.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in ["Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm9 v", "_m9v"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
