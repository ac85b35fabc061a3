//! Keying material exported from a connection (RFC 8446 §7.5).
//!
//! rustls exports from its buffered connections alone. Its key log gets the exporter's secret, during the very call
//! that derives it; so it is taken there, and the rest of §7.5 is done here.

use aws_lc_rs::{digest, hkdf};
use rustls::KeyLog;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Bytes of what [`crate::TlsSession::export`] gives.
pub const EXPORT_BYTES: usize = 32;

/// The label under which rustls logs it (the NSS key log format).
const SECRET: &str = "EXPORTER_SECRET";

thread_local! {
    /// The secret that the handshake step under way on this thread has derived.
    static DERIVED: RefCell<Option<Box<Exporter>>> = const { RefCell::new(None) };
}

/// What a configuration's `key_log` must be for its connections to export.
#[must_use]
pub fn exporting() -> Arc<dyn KeyLog> {
    Arc::new(Capture)
}

/// The secret of one connection.
pub(crate) struct Exporter {
    algorithm: hkdf::Algorithm,
    hash: &'static digest::Algorithm,
    secret: hkdf::Prk,
}

impl Exporter {
    fn new(secret: &[u8]) -> Option<Self> {
        let (algorithm, hash) = match secret.len() {
            32 => (hkdf::HKDF_SHA256, &digest::SHA256),
            48 => (hkdf::HKDF_SHA384, &digest::SHA384),
            _ => return None,
        };
        Some(Self { algorithm, hash, secret: hkdf::Prk::new_less_safe(algorithm, secret) })
    }

    /// `HKDF-Expand-Label(Derive-Secret(secret, label, ""), "exporter", Hash(""), 32)`
    pub(crate) fn derive(&self, label: &[u8]) -> Option<[u8; EXPORT_BYTES]> {
        let nothing = digest::digest(self.hash, b"");
        let mut derived = vec![0; nothing.as_ref().len()];
        expand(&self.secret, label, nothing.as_ref(), &mut derived)?;
        let mut exported = [0; EXPORT_BYTES];
        expand(
            &hkdf::Prk::new_less_safe(self.algorithm, &derived),
            b"exporter",
            nothing.as_ref(),
            &mut exported,
        )?;
        Some(exported)
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Exporter")
    }
}

/// What the step that just ended on this thread has derived.
pub(crate) fn take() -> Option<Box<Exporter>> {
    DERIVED.take()
}

/// `HKDF-Expand-Label` of RFC 8446 §7.1. `None` for a label that is too long.
fn expand(secret: &hkdf::Prk, label: &[u8], context: &[u8], out: &mut [u8]) -> Option<()> {
    let length = u16::try_from(out.len()).ok()?.to_be_bytes();
    let label_length = [u8::try_from(label.len() + PREFIX.len()).ok()?];
    let context_length = [u8::try_from(context.len()).ok()?];
    let info = [&length[..], &label_length, PREFIX, label, &context_length, context];
    secret.expand(&info, Length(out.len())).ok()?.fill(out).ok()
}

const PREFIX: &[u8] = b"tls13 ";

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[derive(Debug)]
struct Capture;

impl KeyLog for Capture {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if label == SECRET {
            DERIVED.set(Exporter::new(secret).map(Box::new));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == SECRET
    }
}

#[cfg(test)]
mod tests;
