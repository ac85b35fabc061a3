//! What is on its way to a peer: plain bytes, then records, then nothing.

use crate::session::{TlsError, TlsSession};
use std::io;

/// A buffer that is empty keeps no more than this, until [`Outbox::rest`].
const KEPT_BYTES: usize = 512 * 1024;

/// Nothing can be sent any more.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection cannot encrypt.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The socket is gone.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Adds bytes to a buffer, wrapped in another protocol that stands between TLS and the messages.
pub type Wrap = fn(&[u8], &mut Vec<u8>);

/// The bytes of one connection that have not gone out. It has no bound of its own: who fills it watches [`Self::bytes`].
#[derive(Debug, Default)]
pub struct Outbox {
    plain: Vec<u8>,
    sealed: Vec<u8>,
    sent: usize,
    wrap: Option<Wrap>,
}

impl Outbox {
    /// Everything is wrapped before it is encrypted, if there is a `wrap`.
    #[must_use]
    pub fn wrapping(wrap: Option<Wrap>) -> Self {
        Self { wrap, ..Self::default() }
    }

    /// Bytes that have not gone out.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.plain.len() + self.sealed.len() - self.sent
    }

    /// The socket took no more the last time.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.sent < self.sealed.len()
    }

    /// Where plain bytes are added. They are encrypted with the next [`Self::flush`], many messages in one record.
    pub const fn plain(&mut self) -> &mut Vec<u8> {
        &mut self.plain
    }

    /// Where what [`TlsSession::process`] wants to be sent is added.
    pub const fn sealed(&mut self) -> &mut Vec<u8> {
        &mut self.sealed
    }

    /// Encrypts `bytes` behind what waits, at once: for what is large, and stands in a buffer already.
    ///
    /// # Errors
    /// The connection cannot encrypt.
    pub fn seal(&mut self, tls: &mut TlsSession, bytes: &[u8]) -> Result<(), TlsError> {
        self.seal_plain(tls)?;
        encrypt(tls, self.wrap, bytes, &mut self.sealed)
    }

    /// The same, for what belongs to the protocol that wraps.
    ///
    /// # Errors
    /// The connection cannot encrypt.
    pub fn seal_unwrapped(&mut self, tls: &mut TlsSession, bytes: &[u8]) -> Result<(), TlsError> {
        self.seal_plain(tls)?;
        tls.encrypt(bytes, &mut self.sealed)
    }

    /// Encrypts and sends as much as `write` takes; whether anything went out. `WouldBlock` is no error.
    ///
    /// # Errors
    /// The connection is over.
    pub fn flush(
        &mut self,
        tls: &mut TlsSession,
        mut write: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> Result<bool, SendError> {
        let mut moved = false;
        // What is blocked is not made longer: small messages that come meanwhile share a record.
        if !self.is_blocked() {
            self.seal_plain(tls)?;
        }
        while self.is_blocked() {
            match write(&self.sealed[self.sent..]) {
                Ok(0) => return Err(SendError::Io(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    self.sent += count;
                    moved = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(moved),
                Err(error) => return Err(SendError::Io(error)),
            }
            if !self.is_blocked() {
                self.sent = 0;
                empty(&mut self.sealed);
                self.seal_plain(tls)?;
            }
        }
        Ok(moved)
    }

    /// Gives back what an idle connection does not need.
    pub fn rest(&mut self) {
        if self.bytes() == 0 {
            *self = Self::wrapping(self.wrap);
        }
    }

    fn seal_plain(&mut self, tls: &mut TlsSession) -> Result<(), TlsError> {
        if self.plain.is_empty() {
            return Ok(());
        }
        encrypt(tls, self.wrap, &self.plain, &mut self.sealed)?;
        empty(&mut self.plain);
        Ok(())
    }
}

fn encrypt(
    tls: &mut TlsSession,
    wrap: Option<Wrap>,
    bytes: &[u8],
    sealed: &mut Vec<u8>,
) -> Result<(), TlsError> {
    let Some(wrap) = wrap else { return tls.encrypt(bytes, sealed) };
    let mut wrapped = Vec::new();
    wrap(bytes, &mut wrapped);
    tls.encrypt(&wrapped, sealed)
}

/// What is busy keeps its buffer.
fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEPT_BYTES {
        *buffer = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Configs;

    fn ends() -> (TlsSession, TlsSession) {
        let (mut client, mut server) = Configs::new(&rustls::version::TLS13).ends(false);
        let mut plain = Vec::new();
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        client.process(&mut [], &mut plain, &mut to_server).unwrap();
        for _ in 0..3 {
            to_client.clear();
            server.process(&mut to_server, &mut plain, &mut to_client).unwrap();
            to_server.clear();
            client.process(&mut to_client, &mut plain, &mut to_server).unwrap();
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
        (client, server)
    }

    #[test]
    fn what_goes_in_comes_out_in_order_however_little_the_socket_takes() {
        let (mut client, mut server) = ends();
        let mut outbox = Outbox::default();
        let mut wire = Vec::new();
        let mut expected = Vec::new();
        for turn in 0..200_u32 {
            let bytes = vec![turn as u8; (turn * 37 % 9_000) as usize];
            expected.extend_from_slice(&bytes);
            if turn % 3 == 0 {
                outbox.seal(&mut client, &bytes).unwrap();
            } else {
                outbox.plain().extend_from_slice(&bytes);
            }
            let mut room = 5_000;
            outbox
                .flush(&mut client, |bytes| {
                    let count = bytes.len().min(room).min(1_000);
                    if count == 0 {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                    room -= count;
                    wire.extend_from_slice(&bytes[..count]);
                    Ok(count)
                })
                .unwrap();
        }
        while outbox.bytes() > 0 {
            outbox
                .flush(&mut client, |bytes| {
                    wire.extend_from_slice(bytes);
                    Ok(bytes.len())
                })
                .unwrap();
        }
        let mut plain = Vec::new();
        server.process(&mut wire, &mut plain, &mut Vec::new()).unwrap();
        assert!(plain == expected);
        outbox.rest();
        assert_eq!(
            outbox.plain.capacity() + outbox.sealed.capacity(),
            0,
            "an idle connection owns no buffer"
        );
    }

    #[test]
    fn what_is_to_be_wrapped_is_wrapped_in_order_and_again_after_a_rest() {
        let (mut client, mut server) = ends();
        let mut outbox = Outbox::wrapping(Some(|bytes, out| {
            out.push(b'<');
            out.extend_from_slice(bytes);
            out.push(b'>');
        }));
        let mut wire = Vec::new();
        for _ in 0..2 {
            outbox.plain().extend_from_slice(b"a");
            outbox.seal(&mut client, b"b").unwrap();
            outbox.seal_unwrapped(&mut client, b"c").unwrap();
            outbox
                .flush(&mut client, |bytes| {
                    wire.extend_from_slice(bytes);
                    Ok(bytes.len())
                })
                .unwrap();
            outbox.rest();
        }
        let mut plain = Vec::new();
        server.process(&mut wire, &mut plain, &mut Vec::new()).unwrap();
        assert_eq!(plain, b"<a><b>c<a><b>c");
    }

    #[test]
    fn a_socket_that_takes_nothing_is_no_error_and_a_broken_one_is() {
        let (mut client, _) = ends();
        let mut outbox = Outbox::default();
        outbox.plain().extend_from_slice(b"waiting");
        assert!(!outbox.flush(&mut client, |_| Err(io::ErrorKind::WouldBlock.into())).unwrap());
        assert!(outbox.is_blocked());
        assert!(outbox.flush(&mut client, |_| Err(io::ErrorKind::BrokenPipe.into())).is_err());
    }
}
