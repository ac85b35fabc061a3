//! TCP and Unix sockets as one.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

/// Where a server or pooler listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// Path of a Unix socket (`…/.s.PGSQL.PORT`).
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => path.display().fmt(formatter),
        }
    }
}

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Connects. `receive_buffer_bytes`, if given, is set before the connection is made, so that the window is small
    /// from the start (for clients that stop reading).
    ///
    /// # Errors
    /// As `connect(2)`.
    pub async fn connect(address: &Address, receive_buffer_bytes: Option<u32>) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
                if let Some(size) = receive_buffer_bytes {
                    socket.set_recv_buffer_size(size)?;
                }
                let stream = socket.connect(*address).await?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await?;
                if let Some(size) = receive_buffer_bytes {
                    sockopt::set_socket_recv_buffer_size(
                        &stream,
                        usize::try_from(size).unwrap_or(usize::MAX),
                    )?;
                }
                Ok(Self::Unix(stream))
            }
        }
    }

    /// Makes closing a reset (RST) instead of an orderly end (FIN): `SO_LINGER` of zero. On a Unix socket, where there
    /// is no reset, it changes nothing.
    ///
    /// # Errors
    /// As `setsockopt(2)`.
    pub fn reset_on_close(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => Ok(sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO))?),
            Self::Unix(_) => Ok(()),
        }
    }

    /// The local TCP port, which a pooler shows as the client's.
    #[must_use]
    pub fn local_port(&self) -> Option<u16> {
        match self {
            Self::Tcp(stream) => stream.local_addr().ok().map(|address| address.port()),
            Self::Unix(_) => None,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
