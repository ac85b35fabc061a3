//! One connection: address, TLS, login.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, RedisError, cmd};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tls::{TlsSession, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Until a connection stands, its login with it. Nobody waits for that but those who keep connections.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// Commands that wait inside the crate for their turn to be written.
const WRITE_QUEUE: usize = 64;

/// A stream to a server, encrypted or not.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Io for S {}

/// Why a connection does not stand.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("no connection within {} ms", CONNECT_LIMIT.as_millis())]
    Limit,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("refused: {0}")]
    Refused(String),
}

/// How connections are made. The password is in the login, which is never shown.
pub(super) struct Connector {
    login: RedisConnectionInfo,
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    pub(super) const fn new(login: RedisConnectionInfo, tls: Option<Arc<ClientConfig>>) -> Self {
        Self { login, tls }
    }

    /// A stream, before anything was said on it.
    pub(super) async fn stream(&self, address: &str) -> Result<Box<dyn Io>, ConnectError> {
        let connect = async {
            let socket = TcpStream::connect(address).await?;
            socket.set_nodelay(true)?;
            let Some(config) = &self.tls else { return Ok(Box::new(socket) as Box<dyn Io>) };
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            let name = ServerName::try_from(host.trim_start_matches('[').trim_end_matches(']').to_owned());
            let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let session = TlsSession::connect(Arc::clone(config), name)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let mut stream = TlsStream::new(socket, session);
            stream.handshake().await?;
            Ok(Box::new(stream) as Box<dyn Io>)
        };
        timeout(CONNECT_LIMIT, connect).await.map_err(|_| ConnectError::Limit)?
    }

    /// A connection for commands that is logged in, and the task that drives it: it ends when the connection does.
    pub(super) async fn connection(
        &self,
        address: &str,
    ) -> Result<(MultiplexedConnection, JoinHandle<()>), ConnectError> {
        let stream = self.stream(address).await?;
        // Deadlines are the caller's.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(WRITE_QUEUE);
        let login = MultiplexedConnection::new_with_config(&self.login, stream, config);
        let login = timeout(CONNECT_LIMIT, login).await.map_err(|_| ConnectError::Limit)?;
        let (connection, driver) = login.map_err(|error| ConnectError::Refused(first_word(&error)))?;
        Ok((connection, tokio::spawn(driver)))
    }

    /// The greeting of a connection that listens.
    pub(super) fn hello(&self) -> Cmd {
        let mut hello = cmd("HELLO");
        hello.arg(3);
        if let Some(password) = self.login.password() {
            hello.arg("AUTH").arg(self.login.username().unwrap_or("default")).arg(password);
        }
        hello
    }
}

/// The code of an error, without its text: that could hold what was sent.
pub(super) fn first_word(error: &RedisError) -> String {
    error.code().map_or_else(|| error.category().to_owned(), str::to_owned)
}
