//! Bytes that have come but could not be judged yet.

/// What was held and what has come now, as one run of bytes; copied only if something was held.
#[inline]
pub(crate) fn join<'a>(held: &'a mut Vec<u8>, chunk: &'a [u8]) -> &'a [u8] {
    if held.is_empty() {
        chunk
    } else {
        held.extend_from_slice(chunk);
        held
    }
}

/// What of such a run is to be held on, from `at`. One that has only grown is not copied: a long message may come in many
/// small pieces.
#[inline]
pub(crate) fn keep(held: Vec<u8>, chunk: &[u8], at: usize) -> Vec<u8> {
    if held.is_empty() {
        chunk[at..].to_vec()
    } else if at == 0 {
        held
    } else {
        held[at..].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_the_rest_of_what_was_joined() {
        for (before, chunk) in [(&b""[..], &b"abc"[..]), (b"ab", b"c"), (b"abc", b"")] {
            for at in 0..=3 {
                let mut held = before.to_vec();
                assert_eq!(join(&mut held, chunk), b"abc");
                assert_eq!(keep(held, chunk, at), &b"abc"[at..]);
            }
        }
    }
}
