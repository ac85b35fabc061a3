//! TLS over a stream of tokio's: servers that log in, and sessions of the console.

use super::session::TlsSession;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;
/// Plain bytes that one write takes at most.
const WRITE_BYTES: usize = 16 * 1024;

/// A stream with TLS on it. Between two calls it holds what the caller has not read or the peer has not taken.
#[derive(Debug)]
pub struct TlsStream<S> {
    stream: S,
    session: TlsSession,
    plain: Vec<u8>,
    plain_read: usize,
    out: Vec<u8>,
    out_sent: usize,
    ended: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// `session` as it stands, be it new or handed over.
    pub const fn new(stream: S, session: TlsSession) -> Self {
        Self { stream, session, plain: Vec::new(), plain_read: 0, out: Vec::new(), out_sent: 0, ended: false }
    }

    /// Runs the handshake to its end.
    ///
    /// # Errors
    /// It fails, or the stream does; of kind `InvalidData` if it is the handshake.
    pub async fn handshake(&mut self) -> io::Result<()> {
        let mut received = self.process(&mut []).map(|()| 1);
        loop {
            // Whatever came of it: after an error it is the alert.
            let flushed = self.flush().await;
            let count = received?;
            flushed?;
            if !self.session.is_handshaking() {
                return Ok(());
            }
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            received = std::future::poll_fn(|context| self.poll_receive(context)).await;
        }
    }

    /// The stream, the session, and what has been decrypted but not read. Everything must have been flushed.
    pub fn into_parts(mut self) -> (S, TlsSession, Vec<u8>) {
        let plain = self.plain.split_off(self.plain_read);
        (self.stream, self.session, plain)
    }

    /// The stream below.
    pub const fn stream(&self) -> &S {
        &self.stream
    }

    /// Receives once, and decrypts. How many bytes came; none at the end.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = self.session.pending();
        let pending = buffer.len();
        buffer.resize(pending + READ_BYTES, 0);
        let mut room = ReadBuf::new(&mut buffer[pending..]);
        let received = Pin::new(&mut self.stream).poll_read(context, &mut room);
        let count = room.filled().len();
        if !matches!(received, Poll::Ready(Ok(()))) || count == 0 {
            buffer.truncate(pending);
            self.session.set_pending(buffer);
            return received.map_ok(|()| 0);
        }
        self.process(&mut buffer[..pending + count])?;
        Poll::Ready(Ok(count))
    }

    fn process(&mut self, incoming: &mut [u8]) -> io::Result<()> {
        self.session.process(incoming, &mut self.plain, &mut self.out).map_err(invalid)
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.out_sent < self.out.len() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.out[self.out_sent..]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out_sent += sent;
        }
        self.out = Vec::new();
        self.out_sent = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let plain = &this.plain[this.plain_read..];
            if !plain.is_empty() {
                let count = plain.len().min(buffer.remaining());
                buffer.put_slice(&plain[..count]);
                this.plain_read += count;
                if this.plain_read == this.plain.len() {
                    this.plain = Vec::new();
                    this.plain_read = 0;
                }
                return Poll::Ready(Ok(()));
            }
            if this.ended || this.session.peer_closed() {
                return Poll::Ready(Ok(()));
            }
            // Without a close_notify it is the end all the same: every message says how long it is.
            this.ended = ready!(this.poll_receive(context))? == 0;
            // What the peer is owed for it (a key update) goes now or with the next write.
            if let Poll::Ready(Err(error)) = this.poll_send(context) {
                return Poll::Ready(Err(error));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        let count = bytes.len().min(WRITE_BYTES);
        this.session.encrypt(&bytes[..count], &mut this.out).map_err(invalid)?;
        if let Poll::Ready(Err(error)) = this.poll_send(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.out.is_empty() && !this.session.is_handshaking() {
            this.session.close_notify(&mut this.out).map_err(invalid)?;
        }
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests;
