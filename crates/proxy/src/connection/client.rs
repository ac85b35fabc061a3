//! The customer's socket, and what has come from it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Gone;
use crate::http::MAX_HEAD_BYTES;
use crate::limits::Stranger;

/// The most bytes that wait to be read: a head of greatest length, and one reading behind it.
const MAX_BUFFER_BYTES: usize = MAX_HEAD_BYTES + READ_BYTES;

/// Bytes of one reading.
const READ_BYTES: usize = 4 * 1024;

/// How long a customer may take to let an answer of the proxy's own in.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// A connection to a customer.
pub(super) struct Client {
    /// Taken when the socket is spliced.
    socket: Option<TcpStream>,
    peer: SocketAddr,
    received: Vec<u8>,
    /// Until it has logged in.
    stranger: Option<Stranger>,
}

impl Client {
    pub(super) const fn new(socket: TcpStream, peer: SocketAddr, stranger: Stranger) -> Self {
        Self { socket: Some(socket), peer, received: Vec::new(), stranger: Some(stranger) }
    }

    /// It has logged in.
    pub(super) fn admitted(&mut self) {
        self.stranger = None;
    }

    pub(super) fn address(&self) -> IpAddr {
        self.peer.ip()
    }

    /// Bytes that have come and not been taken.
    pub(super) fn received(&self) -> &[u8] {
        &self.received
    }

    /// The first bytes have been understood.
    pub(super) fn take(&mut self, count: usize) {
        self.received.drain(..count.min(self.received.len()));
    }

    pub(super) async fn first_byte(&mut self) -> Result<u8, Gone> {
        loop {
            if let Some(&first) = self.received.first() {
                return Ok(first);
            }
            self.more().await?;
        }
    }

    /// Waits for more bytes; the end of the stream is an error here.
    pub(super) async fn more(&mut self) -> Result<(), Gone> {
        let Self { socket: Some(socket), received, .. } = self else { return Err(Gone) };
        if received.len() >= MAX_BUFFER_BYTES {
            return Err(Gone);
        }
        received.reserve(READ_BYTES);
        match socket.read_buf(received).await {
            Ok(0) | Err(_) => Err(Gone),
            Ok(_) => Ok(()),
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let socket = self.socket.as_mut().ok_or(Gone)?;
        timeout(ANSWER_WAIT, socket.write_all(bytes)).await.map_err(|_| Gone)??;
        Ok(())
    }

    /// An answer behind which the connection ends: what the customer still sends is let in for a moment, because closing over it
    /// would be a reset, and could take the answer away.
    pub(super) async fn write_last(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        const LINGER: Duration = Duration::from_millis(500);
        const MOST_BYTES: usize = 256 * 1024;
        self.write(bytes).await?;
        let socket = self.socket.as_mut().ok_or(Gone)?;
        socket.shutdown().await?;
        let drained = async {
            let mut buffer = [0; 1024];
            let mut seen = 0;
            while seen < MOST_BYTES {
                match socket.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => seen += count,
                }
            }
        };
        // Whoever is still sending then gets the reset.
        let _ = timeout(LINGER, drained).await;
        Ok(())
    }

    /// Waits until the customer has left. One that sends something while it waits is there, and no longer watched but for errors.
    pub(super) async fn left(&self) {
        let Some(socket) = self.socket.as_ref().filter(|_| self.received.is_empty()) else {
            return std::future::pending().await;
        };
        let mut byte = [0];
        match socket.peek(&mut byte).await {
            Ok(0) => {}
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {}
            _ => std::future::pending().await,
        }
    }

    /// The socket, and the bytes that were not taken.
    pub(super) fn take_parts(&mut self) -> Result<(TcpStream, Vec<u8>), Gone> {
        let socket = self.socket.take().ok_or(Gone)?;
        Ok((socket, std::mem::take(&mut self.received)))
    }

    /// The socket itself.
    pub(super) fn socket(&mut self) -> Result<&mut TcpStream, Gone> {
        self.socket.as_mut().ok_or(Gone)
    }
}
