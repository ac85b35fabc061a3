//! The first packet of a connection, which has a length but no tag.
//!
//! See "Start-up" and "Message Formats" in the PostgreSQL manual's protocol chapter.

mod error;
mod options;
mod packet;
mod request;
#[cfg(test)]
mod tests;

pub use error::StartupError;
pub use options::{OptionsError, options};
pub use request::{cancel_request, gss_encryption_request, ssl_request, startup_message};

use crate::secret::{CancelKey, MAX_SECRET_KEY_BYTES, SecretKey};

/// Longest packet accepted, in bytes without its length field (`MAX_STARTUP_PACKET_LENGTH` of PostgreSQL).
pub const MAX_STARTUP_PACKET: usize = 10_000;
/// Most parameters accepted in one start-up packet.
pub const MAX_STARTUP_PARAMETERS: usize = 256;
/// The major version spoken.
pub const PROTOCOL_MAJOR: u16 = 3;
/// The newest minor version spoken; a client that asks for more is told so.
pub const NEWEST_PROTOCOL_MINOR: u16 = 2;

/// Codes that stand where the protocol version of a start-up packet would.
const CANCEL_REQUEST_CODE: u32 = 80_877_102;
const SSL_REQUEST_CODE: u32 = 80_877_103;
const GSS_ENCRYPTION_REQUEST_CODE: u32 = 80_877_104;
/// The first byte of a TLS handshake record, sent by clients with `sslnegotiation=direct`.
const TLS_HANDSHAKE: u8 = 0x16;
/// Bytes of the length field, of the code after it, and of the process id of a cancel request.
const WORD_BYTES: usize = 4;

/// What a client may say first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstPacket {
    /// Asks for TLS; to be answered by one byte, after which another first packet follows.
    SslRequest,
    /// Asks for GSSAPI encryption; to be answered like `SslRequest`.
    GssEncryptionRequest,
    /// Asks to cancel what another connection runs; nothing is answered.
    Cancel(CancelKey),
    /// Opens a session.
    Startup(Startup),
}

/// A request to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup {
    /// Always [`PROTOCOL_MAJOR`].
    pub protocol_major: u16,
    /// The minor version asked for, which may be newer than ours.
    pub protocol_minor: u16,
    /// Never empty.
    pub user: String,
    /// The user's name when the client named none.
    pub database: String,
    /// What kind of session it is to be.
    pub replication: Replication,
    /// All others in the client's order, `options` included; of a repeated name the last value.
    pub parameters: Vec<(String, String)>,
    /// Names of the protocol options (`_pq_.…`) asked for; none is known to us.
    pub unknown_options: Vec<String>,
}

impl Startup {
    /// True when the client must be sent NegotiateProtocolVersion before anything else.
    #[must_use]
    pub fn must_negotiate(&self) -> bool {
        self.protocol_minor > NEWEST_PROTOCOL_MINOR || !self.unknown_options.is_empty()
    }

    /// The minor version both sides go on with.
    #[must_use]
    pub fn negotiated_minor(&self) -> u16 {
        self.protocol_minor.min(NEWEST_PROTOCOL_MINOR)
    }

    /// The value of a parameter other than user, database and replication.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The `replication` parameter of a start-up packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replication {
    /// An ordinary session.
    #[default]
    No,
    /// A walsender for physical replication.
    Physical,
    /// A walsender connected to a database (`replication=database`).
    Logical,
}

/// Reads the first packet at the start of `bytes`; `None` until all of it has come.
///
/// With the packet comes how many bytes it took; the rest belongs to what follows.
/// At most [`MAX_STARTUP_PACKET`] + 4 bytes need to be kept to get an answer.
///
/// # Errors
/// The packet breaks the protocol or asks for a version that is not spoken. It is the client's fault;
/// the same packet fails again. A wrong length is told as soon as the length has come.
pub fn first_packet(bytes: &[u8]) -> Result<Option<(FirstPacket, usize)>, StartupError> {
    if is_tls_handshake(bytes) {
        return Err(StartupError::DirectTls);
    }
    let Some((length, rest)) = bytes.split_first_chunk::<WORD_BYTES>() else { return Ok(None) };
    let total = u32::from_be_bytes(*length) as usize;
    if !(2 * WORD_BYTES..=MAX_STARTUP_PACKET + WORD_BYTES).contains(&total) {
        return Err(StartupError::Length { length: total });
    }
    let Some(packet) = rest.get(..total - WORD_BYTES) else { return Ok(None) };
    let Some((code, body)) = packet.split_first_chunk::<WORD_BYTES>() else { return Ok(None) };
    let packet = match u32::from_be_bytes(*code) {
        SSL_REQUEST_CODE if body.is_empty() => FirstPacket::SslRequest,
        GSS_ENCRYPTION_REQUEST_CODE if body.is_empty() => FirstPacket::GssEncryptionRequest,
        SSL_REQUEST_CODE | GSS_ENCRYPTION_REQUEST_CODE => return Err(StartupError::Length { length: total }),
        CANCEL_REQUEST_CODE => FirstPacket::Cancel(cancel(body)?),
        version => FirstPacket::Startup(packet::startup(version, body)?),
    };
    Ok(Some((packet, total)))
}

/// Whether a connection begins with a TLS handshake, without a request before it (`sslnegotiation=direct`).
#[must_use]
pub fn is_tls_handshake(bytes: &[u8]) -> bool {
    bytes.first() == Some(&TLS_HANDSHAKE)
}

fn cancel(body: &[u8]) -> Result<CancelKey, StartupError> {
    let wrong = StartupError::CancelKeyLength { most: MAX_SECRET_KEY_BYTES };
    let Some((process_id, secret)) = body.split_first_chunk::<WORD_BYTES>() else { return Err(wrong) };
    let Some(secret) = SecretKey::new(secret) else { return Err(wrong) };
    Ok(CancelKey { process_id: i32::from_be_bytes(*process_id), secret })
}
