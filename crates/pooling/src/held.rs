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
