//! One TLS connection without I/O.

use crate::exporter::{self, EXPORT_BYTES, Exporter};
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus};
use rustls::{CipherSuite, ClientConfig, CommonState, NamedGroup, ProtocolVersion, ServerConfig};
use std::fmt;
use std::sync::Arc;

/// Unread ciphertext that one connection may hold: a record (16 kB and a little), or the parts of a handshake message.
pub const MAX_PENDING_BYTES: usize = 48 * 1024;
/// More than any record of TLS 1.2 or 1.3 adds to what is in it: header, nonce, tag, type.
const RECORD_OVERHEAD: usize = 64;
/// Plain bytes of one record.
pub const RECORD_BYTES: usize = 16 * 1024;

/// A TLS connection that cannot go on. The texts hold nothing that was sent.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The peer breaks the protocol, shows a bad certificate, or has nothing in common with us.
    #[error("{0}")]
    Rustls(#[from] rustls::Error),
    /// A handshake message longer than any honest one.
    #[error("handshake message longer than {MAX_PENDING_BYTES} bytes")]
    TooLong,
    /// The peer had to name the application's protocol, and did not.
    #[error("TLS without ALPN: the protocol that is spoken here was not asked for")]
    NoAlpn,
    /// A bug of ours or of rustls.
    #[error("TLS state is out of order: {0}")]
    OutOfOrder(&'static str),
}

/// A connection, ours being either end. It owns no buffer but for a record that is half there.
pub struct TlsSession {
    end: Box<End>,
    pending: Vec<u8>,
    peer_closed: bool,
    /// Nothing may be sent after an error.
    failed: bool,
    requires_alpn: bool,
    exporter: Option<Box<Exporter>>,
}

enum End {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

impl TlsSession {
    /// The server's end, towards a client. `requires_alpn`: it must name one of the protocols of
    /// `config`.
    ///
    /// # Errors
    /// `config` is not usable.
    pub fn accept(config: Arc<ServerConfig>, requires_alpn: bool) -> Result<Self, TlsError> {
        Ok(Self::new(End::Server(UnbufferedServerConnection::new(config)?), requires_alpn))
    }

    /// The client's end, towards a server; [`Self::process`] gives the first bytes.
    ///
    /// # Errors
    /// `config` is not usable.
    pub fn connect(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, TlsError> {
        Ok(Self::new(End::Client(UnbufferedClientConnection::new(config, name)?), false))
    }

    fn new(end: End, requires_alpn: bool) -> Self {
        Self {
            end: Box::new(end),
            pending: Vec::new(),
            peer_closed: false,
            failed: false,
            requires_alpn,
            exporter: None,
        }
    }

    /// Application data can not be sent and received yet.
    pub fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// The dear part of the handshake, key exchange and signature, is still to come.
    pub fn is_dear(&self) -> bool {
        self.is_handshaking() && self.common().negotiated_key_exchange_group().is_none()
    }

    /// The peer has ended the stream in good order; nothing more comes.
    pub const fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Ciphertext that is to be processed later, with more.
    pub fn set_pending(&mut self, bytes: Vec<u8>) {
        self.pending = bytes;
    }

    /// The ciphertext that waits for its rest, to be given back with it.
    pub fn pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Moves the ciphertext that waits for its rest to the front of `buffer`, which must have room for
    /// [`MAX_PENDING_BYTES`]; gives its length.
    pub fn take_pending(&mut self, buffer: &mut [u8]) -> usize {
        let pending = std::mem::take(&mut self.pending);
        buffer[..pending.len()].copy_from_slice(&pending);
        pending.len()
    }

    /// Decrypts all whole records of `incoming` (what [`Self::take_pending`] gave and what came behind it), in place, and
    /// keeps the rest. What the records held is added to `plain`, what the peer is to be sent to `out`, also on an error:
    /// then it is the alert that says why.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn process(
        &mut self,
        incoming: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let was_handshaking = self.requires_alpn && self.is_handshaking();
        let handshakes = self.exporter.is_none() && self.is_handshaking();
        let mut progress = Progress::default();
        let result = match &mut *self.end {
            End::Client(connection) => drive(connection, incoming, plain, out, &mut progress),
            End::Server(connection) => drive(connection, incoming, plain, out, &mut progress),
        };
        if handshakes {
            self.exporter = exporter::take();
        }
        self.peer_closed |= progress.peer_closed;
        self.failed |= result.is_err();
        result?;
        let rest = &incoming[progress.consumed..];
        if rest.len() > MAX_PENDING_BYTES {
            return Err(TlsError::TooLong);
        }
        self.pending = rest.to_vec();
        if was_handshaking && !self.is_handshaking() && self.common().alpn_protocol().is_none() {
            plain.clear();
            return Err(TlsError::NoAlpn);
        }
        Ok(())
    }

    /// Nothing more is to be asked of it.
    pub const fn give_up(&mut self) {
        self.failed = true;
    }

    /// Adds `plain`, encrypted, to `out`: as one record if it fits into one.
    ///
    /// # Errors
    /// Nothing can be sent: the handshake is not done, or the connection has failed.
    pub fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.send(Some(plain), out)
    }

    /// Adds the announcement that nothing more will be sent.
    ///
    /// # Errors
    /// As for [`Self::encrypt`].
    pub fn close_notify(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.send(None, out)
    }

    fn send(&mut self, plain: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), TlsError> {
        if self.failed {
            return Err(TlsError::OutOfOrder("it has failed before"));
        }
        match &mut *self.end {
            End::Client(connection) => encrypt(connection, plain, out),
            End::Server(connection) => encrypt(connection, plain, out),
        }
    }

    /// Version, suite and group of the key exchange (none if a ticket did without); `None` before they are known.
    pub fn agreed(&self) -> Option<(ProtocolVersion, CipherSuite, Option<NamedGroup>)> {
        let common = self.common();
        let (version, suite) = (common.protocol_version()?, common.negotiated_cipher_suite()?);
        Some((version, suite.suite(), common.negotiated_key_exchange_group().map(|group| group.name())))
    }

    /// The application's protocol that was agreed on (RFC 7301).
    pub fn alpn(&self) -> Option<&[u8]> {
        self.common().alpn_protocol()
    }

    /// Keying material for which nothing but this connection has the secret (RFC 8446 §7.5), with an empty context. The
    /// configuration must have been [`crate::exporting`]; `None` otherwise, before the handshake is done, and before TLS 1.3.
    pub fn export(&self, label: &[u8]) -> Option<[u8; EXPORT_BYTES]> {
        if self.is_handshaking() {
            return None;
        }
        self.exporter.as_ref()?.derive(label)
    }

    fn common(&self) -> &CommonState {
        match &*self.end {
            End::Client(connection) => connection,
            End::Server(connection) => connection,
        }
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsSession").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

/// What both ends have in common but rustls has no name for.
trait Side {
    type Data;
    fn common(&self) -> &CommonState;
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;
    fn common(&self) -> &CommonState {
        self
    }
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;
    fn common(&self) -> &CommonState {
        self
    }
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

#[derive(Default)]
struct Progress {
    consumed: usize,
    peer_closed: bool,
}

/// Each turn consumes bytes or brings the connection on to another state, so that it ends.
fn drive<S: Side>(
    side: &mut S,
    incoming: &mut [u8],
    plain: &mut Vec<u8>,
    out: &mut Vec<u8>,
    progress: &mut Progress,
) -> Result<(), TlsError> {
    loop {
        let UnbufferedStatus { mut discard, state } = side.process(&mut incoming[progress.consumed..]);
        let goes_on = match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    discard += record.discard;
                    plain.extend_from_slice(record.payload);
                }
                true
            }
            Ok(ConnectionState::EncodeTlsData(data)) => {
                encode(data, out)?;
                true
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                true
            }
            Ok(ConnectionState::PeerClosed) => {
                progress.peer_closed = true;
                true
            }
            Ok(_) => false,
            Err(error) => {
                alert(side, out);
                return Err(error.into());
            }
        };
        progress.consumed += discard;
        if !goes_on {
            return Ok(());
        }
    }
}

/// After an error, the alert that tells the peer of it waits to be sent, perhaps behind what was said before. No more is asked
/// for than waits: rustls would go on to read, and after an error it panics over that.
fn alert<S: Side>(side: &mut S, out: &mut Vec<u8>) {
    while side.common().wants_write() {
        match side.process(&mut []).state {
            // Without it, the peer only sees the end.
            Ok(ConnectionState::EncodeTlsData(data)) => {
                if encode(data, out).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

fn encode<D>(mut data: EncodeTlsData<'_, D>, out: &mut Vec<u8>) -> Result<(), TlsError> {
    append(out, 0, |room| match data.encode(room) {
        Ok(written) => Ok(written),
        Err(EncodeError::InsufficientSize(needed)) => Err(Some(needed.required_size)),
        Err(EncodeError::AlreadyEncoded) => Err(None),
    })
}

/// Encrypts bytes, or the end of the stream.
fn encrypt<S: Side>(side: &mut S, plain: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), TlsError> {
    let UnbufferedStatus { state, .. } = side.process(&mut []);
    let ConnectionState::WriteTraffic(mut traffic) = state? else {
        return Err(TlsError::OutOfOrder("cannot send now"));
    };
    let length = plain.map_or(0, <[u8]>::len);
    let room = length + (length / RECORD_BYTES + 1) * RECORD_OVERHEAD;
    append(out, room, |room| {
        let written = match plain {
            Some(plain) => traffic.encrypt(plain, room),
            None => traffic.queue_close_notify(room),
        };
        written.map_err(|error| match error {
            EncryptError::InsufficientSize(needed) => Some(needed.required_size),
            EncryptError::EncryptExhausted => None,
        })
    })
}

/// Lets `write` add to `out`, with more room if it asks for it.
fn append(
    out: &mut Vec<u8>,
    room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), TlsError> {
    let start = out.len();
    out.resize(start + room, 0);
    let mut written = write(&mut out[start..]);
    if let Err(Some(needed)) = written {
        out.resize(start + needed, 0);
        written = write(&mut out[start..]);
    }
    out.truncate(start + *written.as_ref().unwrap_or(&0));
    written.map(drop).map_err(|_| TlsError::OutOfOrder("nothing can be written"))
}

#[cfg(test)]
mod tests;
