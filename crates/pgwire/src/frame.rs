//! Framing of messages after start-up: one tag byte, a length that counts itself, a body.
//!
//! A pooler forwards by header and skips bodies by length, so nothing here looks further than five bytes.
//! Source: PostgreSQL documentation, "Message Formats".

use thiserror::Error;

/// Bytes of a header: tag and length.
pub const HEADER_BYTES: usize = 5;

/// The length word counts itself.
const LENGTH_BYTES: u32 = 4;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The message's type.
    pub tag: u8,
    /// Bytes of the whole message, header included.
    pub total: usize,
}

/// A header that no peer of the protocol sends. The connection cannot be understood any more and is to be closed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The length is smaller than its own four bytes.
    #[error("message '{}' claims a length of {length}, below the least of {LENGTH_BYTES}", tag.escape_ascii())]
    TooShort {
        /// The message's type.
        tag: u8,
        /// The length as sent.
        length: u32,
    },
    /// The length is above the limit.
    #[error("message '{}' claims a length of {length}, above the limit of {limit}", tag.escape_ascii())]
    TooLong {
        /// The message's type.
        tag: u8,
        /// The length as sent.
        length: u32,
        /// The greatest length allowed.
        limit: u32,
    },
}

/// Reads the header at the start of `bytes`; `None` while fewer than five bytes are there.
///
/// # Errors
/// A length below four or above `limit`.
#[inline]
pub fn head(bytes: &[u8], limit: u32) -> Result<Option<Head>, FrameError> {
    let Some(&[tag, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]);
    if length < LENGTH_BYTES {
        return Err(FrameError::TooShort { tag, length });
    }
    if length > limit {
        return Err(FrameError::TooLong { tag, length, limit });
    }
    Ok(Some(Head { tag, total: length as usize + 1 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_read_only_when_all_five_bytes_are_there() {
        let message = b"Q\0\0\0\x08abc\0";
        for have in 0..HEADER_BYTES {
            assert_eq!(head(&message[..have], 100), Ok(None));
        }
        assert_eq!(head(message, 100), Ok(Some(Head { tag: b'Q', total: 9 })));
    }

    #[test]
    fn lengths_outside_the_bounds_are_refused_at_the_bound() {
        assert_eq!(head(b"S\0\0\0\x04", 4), Ok(Some(Head { tag: b'S', total: 5 })));
        assert_eq!(head(b"S\0\0\0\x03", 4), Err(FrameError::TooShort { tag: b'S', length: 3 }));
        assert_eq!(head(b"S\0\0\0\x05", 4), Err(FrameError::TooLong { tag: b'S', length: 5, limit: 4 }));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_header_an_error_or_a_wish_for_more(bytes in proptest::collection::vec(any::<u8>(), 0..16), limit in any::<u32>()) {
            match head(&bytes, limit) {
                Ok(None) => prop_assert!(bytes.len() < HEADER_BYTES),
                Ok(Some(found)) => {
                    prop_assert!(found.total >= HEADER_BYTES);
                    prop_assert!(found.total as u64 <= u64::from(limit) + 1);
                }
                Err(_) => prop_assert!(bytes.len() >= HEADER_BYTES),
            }
        }
    }
}
