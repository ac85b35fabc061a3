//! `name=value` attributes parted by commas.

use super::{MAX_MESSAGE_BYTES, ScramError};

/// A message cut into its attributes, front to back.
pub(super) struct Attributes<'a> {
    message: &'a str,
    /// Where the next attribute begins; beyond the end when there is none.
    next: usize,
}

impl<'a> Attributes<'a> {
    /// Refuses what is too long or not text before anything is looked at.
    pub(super) fn new(message: &'a [u8]) -> Result<Self, ScramError> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(ScramError::TooLong);
        }
        let message = std::str::from_utf8(message).map_err(|_| ScramError::Malformed("not UTF-8"))?;
        if message.contains('\0') {
            return Err(ScramError::Malformed("zero byte"));
        }
        Ok(Self { message, next: 0 })
    }

    /// The bytes before the next attribute's separator.
    pub(super) fn consumed(&self) -> &'a str {
        self.message.get(..self.next.saturating_sub(1)).unwrap_or(self.message)
    }

    /// What is left, separators included.
    pub(super) fn rest(&self) -> &'a str {
        self.message.get(self.next..).unwrap_or_default()
    }

    /// The text up to the next comma or the end; `None` behind the end.
    pub(super) fn next_part(&mut self) -> Option<&'a str> {
        let rest = self.message.get(self.next..)?;
        let part = rest.split(',').next()?;
        self.next += part.len() + 1;
        Some(part)
    }

    /// The value of the next attribute, which must have this name.
    pub(super) fn expect(&mut self, name: char, otherwise: &'static str) -> Result<&'a str, ScramError> {
        let part = self.next_part().ok_or(ScramError::Malformed(otherwise))?;
        if name != 'm' && part.starts_with("m=") {
            return Err(ScramError::Extension);
        }
        let value = part.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
        value.ok_or(ScramError::Malformed(otherwise))
    }
}

/// A nonce is printable ASCII without comma; the comma has been cut away already.
pub(super) fn nonce_is_valid(nonce: &str) -> bool {
    !nonce.is_empty() && nonce.bytes().all(|byte| matches!(byte, 0x21..=0x7e))
}
