//! Base32 without padding, in two alphabets: that of RFC 4648 in lower case for names, Crockford's for what people type.

/// The alphabet of RFC 4648 §6, in lower case.
pub(crate) const RFC4648: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Crockford's alphabet: no I, L, O, U.
pub(crate) const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Writes the bytes, most significant bits first.
pub(crate) fn encode(bytes: &[u8], alphabet: &[u8; 32]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut held, mut bits) = (0_u32, 0);
    for &byte in bytes {
        held = (held << 8) | u32::from(byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(alphabet[(held >> bits) as usize & 31]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(alphabet[(held << (5 - bits)) as usize & 31]));
    }
    text
}

/// Reads exactly `N` bytes. `None` for another length, another letter, or bits set behind the last byte.
pub(crate) fn decode<const N: usize>(text: &[u8], value: impl Fn(u8) -> Option<u8>) -> Option<[u8; N]> {
    if text.len() != (N * 8).div_ceil(5) {
        return None;
    }
    let mut bytes = [0; N];
    let (mut held, mut bits, mut at) = (0_u32, 0, 0);
    for &letter in text {
        held = (held << 5) | u32::from(value(letter)?);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            *bytes.get_mut(at)? = (held >> bits) as u8;
            at += 1;
            held &= (1 << bits) - 1;
        }
    }
    (at == N && held == 0).then_some(bytes)
}

/// The value of a letter of RFC 4648's alphabet, lower case only: a name has one spelling.
pub(crate) fn rfc4648(letter: u8) -> Option<u8> {
    match letter {
        b'a'..=b'z' => Some(letter - b'a'),
        b'2'..=b'7' => Some(letter - b'2' + 26),
        _ => None,
    }
}

/// The value of a letter of Crockford's alphabet, as people type it: either case, O for 0, I and L for 1.
pub(crate) fn crockford(letter: u8) -> Option<u8> {
    let letter = match letter.to_ascii_uppercase() {
        b'O' => b'0',
        b'I' | b'L' => b'1',
        other => other,
    };
    CROCKFORD.iter().position(|&known| known == letter).map(|at| at as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_test_vectors_of_rfc_4648_hold() {
        assert_eq!(encode(b"foobar", RFC4648), "mzxw6ytboi");
        assert_eq!(encode(b"fo", RFC4648), "mzxq");
        assert_eq!(decode::<5>(b"mzxw6ytb", rfc4648).unwrap(), *b"fooba");
    }

    #[test]
    fn bits_behind_the_last_byte_are_refused() {
        assert_eq!(decode::<2>(b"mzxq", rfc4648), Some(*b"fo"));
        assert_eq!(decode::<2>(b"mzxr", rfc4648), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes: [u8; 32], short: [u8; 13]) {
            prop_assert_eq!(decode(encode(&bytes, RFC4648).as_bytes(), rfc4648), Some(bytes));
            prop_assert_eq!(decode(encode(&short, CROCKFORD).to_lowercase().as_bytes(), crockford), Some(short));
        }

        #[test]
        fn a_name_has_one_spelling(text in "[a-z2-7]{52}") {
            if let Some(bytes) = decode::<32>(text.as_bytes(), rfc4648) {
                prop_assert_eq!(encode(&bytes, RFC4648), text);
            }
        }
    }
}
