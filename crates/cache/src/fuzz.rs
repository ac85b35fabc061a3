//! Entry points for `fuzz/`; the ordinary tests run them too.

use crate::frame::{MAX_FRAME_BYTES, decode};

/// What a server may send to a connection that listens.
///
/// # Panics
/// A frame is longer than what is there, or reads differently when more follows, or when less is there.
#[expect(clippy::panic, reason = "that is how a finding is told")]
pub fn frames(data: &[u8]) {
    let Ok(Some((frame, length))) = decode(data) else { return };
    assert!(length > 0 && length <= data.len() && length <= MAX_FRAME_BYTES, "{length} of {}", data.len());
    let Ok(Some(again)) = decode(&data[..length]) else { panic!("needs what follows") };
    assert!(again == (frame, length), "what follows changes it");
    assert!(decode(&data[..length - 1]) == Ok(None), "a part of it is enough");
}
