//! One TLS connection without I/O, and a stream of tokio's with TLS on it.
//!
//! Everything speaks rustls' unbuffered interface from the first byte of the handshake, since a connection may pass from one
//! driver to another, and rustls' two interfaces do not convert. What is decrypted and encrypted stands in buffers of the
//! caller's, so that an idle connection owns none.

mod exporter;
#[cfg(test)]
mod fixtures;
mod outbox;
mod session;
mod stream;

pub use exporter::{EXPORT_BYTES, exporting};
pub use outbox::{Outbox, SendError, Wrap};
pub use session::{MAX_PENDING_BYTES, RECORD_BYTES, TlsError, TlsSession};
pub use stream::TlsStream;
