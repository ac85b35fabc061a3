//! Preparing a password (RFC 4013), with PostgreSQL's way out.

use std::borrow::Cow;

/// The password as it enters the computation. PostgreSQL takes the bytes as they are where SASLprep does
/// not apply (not UTF-8), forbids (control characters, unassigned code points) or leaves nothing over.
#[must_use]
pub fn prepare(password: &[u8]) -> Cow<'_, [u8]> {
    let prepared = std::str::from_utf8(password).ok().and_then(|text| stringprep::saslprep(text).ok());
    match prepared {
        Some(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        Some(Cow::Owned(text)) if !text.is_empty() => Cow::Owned(text.into_bytes()),
        _ => Cow::Borrowed(password),
    }
}
