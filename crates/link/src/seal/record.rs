//! The messages behind the handshake (§5, §6).

use super::crypto::nonce;
use crate::frame::MAX_PAYLOAD_BYTES;
use aws_lc_rs::aead::{Aad, LessSafeKey};
use std::fmt;

/// Bytes that sealing adds to a message.
pub const TAG_BYTES: usize = 16;
/// Plain bytes of one message.
pub const MAX_PLAIN_BYTES: usize = MAX_PAYLOAD_BYTES - TAG_BYTES;
/// No key is used for more messages.
const MAX_MESSAGES: u64 = 1 << 32;

/// The key is used up, or a message is longer than any may be: the stream is to be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message cannot be sealed")]
pub struct CannotSeal;

/// A message does not open: it was changed, left out, repeated, or comes from elsewhere. The stream is to be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message does not open")]
pub struct CannotOpen;

/// Seals what one end sends.
pub struct Sealer {
    key: LessSafeKey,
    count: u64,
}

impl Sealer {
    pub(super) const fn new(key: LessSafeKey) -> Self {
        Self { key, count: 0 }
    }

    /// Adds `plain`, sealed, to `out`. No bytes are the end of the stream.
    ///
    /// # Errors
    /// `plain` is longer than [`MAX_PLAIN_BYTES`], or the key is used up.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), CannotSeal> {
        if plain.len() > MAX_PLAIN_BYTES || self.count >= MAX_MESSAGES {
            return Err(CannotSeal);
        }
        let start = out.len();
        out.extend_from_slice(plain);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(self.count), Aad::empty(), &mut out[start..])
            .map_err(|_| CannotSeal)?;
        out.extend_from_slice(tag.as_ref());
        self.count += 1;
        Ok(())
    }
}

/// Opens what the other end has sealed, in the order in which it was.
pub struct Unsealer {
    key: LessSafeKey,
    count: u64,
}

impl Unsealer {
    pub(super) const fn new(key: LessSafeKey) -> Self {
        Self { key, count: 0 }
    }

    /// Opens the payload of a DATA in place; what it holds. Nothing is the end of the stream.
    ///
    /// # Errors
    /// It does not open.
    pub fn open<'a>(&mut self, sealed: &'a mut [u8]) -> Result<&'a [u8], CannotOpen> {
        if self.count >= MAX_MESSAGES {
            return Err(CannotOpen);
        }
        let plain =
            self.key.open_in_place(nonce(self.count), Aad::empty(), sealed).map_err(|_| CannotOpen)?;
        self.count += 1;
        Ok(plain)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sealer").field("count", &self.count).finish_non_exhaustive()
    }
}

impl fmt::Debug for Unsealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Unsealer").field("count", &self.count).finish_non_exhaustive()
    }
}
