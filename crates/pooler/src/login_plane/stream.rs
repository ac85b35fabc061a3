//! A connection to a server, before it is the reactor's.

use super::failure::Failure;
use crate::reactor::listener::set_keepalive;
use crate::tls::ToServers;
use pgwire::startup::ssl_request;
use settings::pooler::Keepalive;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use tls::TlsSession;
use tls::TlsStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// TCP, with or without TLS, or Unix socket.
#[derive(Debug)]
pub(crate) enum ServerStream {
    /// TCP.
    Tcp(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
    /// Unix socket.
    Unix(UnixStream),
}

/// What a connection is made of, for the reactor.
pub(super) struct Parts {
    pub descriptor: OwnedFd,
    pub tls: Option<TlsSession>,
    /// Decrypted bytes that nobody has read.
    pub leftover: Vec<u8>,
}

impl ServerStream {
    /// Sets what every server connection has.
    pub(super) fn prepare(&self, keepalive: Keepalive) -> io::Result<()> {
        match self.tcp() {
            Some(stream) => {
                stream.set_nodelay(true)?;
                set_keepalive(stream.as_fd(), keepalive)
            }
            None => Ok(()),
        }
    }

    /// Asks the server for TLS and starts it. A server that has none is taken as it is, unless TLS is required. Over a
    /// Unix socket there is none.
    pub(super) async fn start_tls(self, tls: &ToServers, host: &str) -> Result<Self, Failure> {
        let Self::Tcp(mut stream) = self else { return Ok(self) };
        stream.write_all(&ssl_request()).await.map_err(Failure::Lost)?;
        // One byte and no more: what stood behind it would not be encrypted.
        match stream.read_u8().await.map_err(ended)? {
            b'S' => {}
            b'N' if !tls.is_required() => return Ok(Self::Tcp(stream)),
            b'N' => return Err(Failure::TlsRefused),
            // An ErrorResponse, from a server older than the request, or one with no process left to serve us.
            b'E' => return Err(Failure::TlsError),
            other => return Err(Failure::TlsNonsense(other)),
        }
        let peer = stream.peer_addr().map_err(Failure::Lost)?;
        let session = tls.connect(host, peer).map_err(|error| Failure::Tls(error.to_string()))?;
        let mut stream = Box::new(TlsStream::new(stream, session));
        stream.handshake().await.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Failure::Tls(error.to_string()),
            io::ErrorKind::UnexpectedEof => Failure::Tls("the server closed the connection".to_owned()),
            _ => Failure::Lost(error),
        })?;
        Ok(Self::Tls(stream))
    }

    /// The server's end; none for a Unix socket.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.tcp().and_then(|stream| stream.peer_addr().ok())
    }

    pub(super) const fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
            Self::Unix(stream) => stream.write_all(bytes).await,
        }
    }

    /// Zero bytes are the end of the stream.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer).await,
            Self::Tls(stream) => stream.read(buffer).await,
            Self::Unix(stream) => stream.read(buffer).await,
        }
    }

    /// Takes the socket away from this runtime.
    pub(super) async fn into_parts(self) -> io::Result<Parts> {
        let (descriptor, tls, leftover) = match self {
            Self::Tcp(stream) => (stream.into_std()?.into(), None, Vec::new()),
            Self::Tls(mut stream) => {
                stream.flush().await?;
                let (stream, session, plain) = stream.into_parts();
                (stream.into_std()?.into(), Some(session), plain)
            }
            Self::Unix(stream) => (stream.into_std()?.into(), None, Vec::new()),
        };
        Ok(Parts { descriptor, tls, leftover })
    }

    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(stream.stream()),
            Self::Unix(_) => None,
        }
    }
}

fn ended(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::UnexpectedEof { Failure::Ended } else { Failure::Lost(error) }
}
