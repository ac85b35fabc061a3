//! A connection to a server, before it is the reactor's.

use crate::reactor::listener::set_keepalive;
use settings::pooler::Keepalive;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// TCP or Unix socket.
#[derive(Debug)]
pub(crate) enum ServerStream {
    /// TCP.
    Tcp(TcpStream),
    /// Unix socket.
    Unix(UnixStream),
}

impl ServerStream {
    /// Sets what every server connection has.
    pub(super) fn prepare(&self, keepalive: Keepalive) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                set_keepalive(stream.as_fd(), keepalive)
            }
            Self::Unix(_) => Ok(()),
        }
    }

    /// The server's end; none for a Unix socket.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    pub(super) const fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).await,
            Self::Unix(stream) => stream.write_all(bytes).await,
        }
    }

    /// Zero bytes are the end of the stream.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer).await,
            Self::Unix(stream) => stream.read(buffer).await,
        }
    }

    /// Takes the socket away from this runtime.
    pub(super) fn into_descriptor(self) -> io::Result<OwnedFd> {
        Ok(match self {
            Self::Tcp(stream) => stream.into_std()?.into(),
            Self::Unix(stream) => stream.into_std()?.into(),
        })
    }
}
