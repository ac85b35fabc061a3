//! A client that speaks TLS by rustls' buffered interface, on blocking sockets: what it sends is told byte by byte.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

use crate::support::PATIENCE;

/// A request for TLS.
pub(crate) const SSL_REQUEST: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 47];
/// A request for GSSAPI encryption.
pub(crate) const GSS_REQUEST: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 48];

/// A connection over TLS.
pub(crate) struct TlsClient {
    pub(crate) stream: StreamOwned<ClientConnection, TcpStream>,
}

/// What a client trusts; `alpn` is what it asks for by name.
pub(crate) fn config(ca_pem: &str, alpn: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Connects a socket whose reads do not wait for ever.
pub(crate) fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Asks for TLS; the answer.
pub(crate) fn ask(stream: &mut TcpStream) -> u8 {
    stream.write_all(SSL_REQUEST).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    answer[0]
}

impl TlsClient {
    /// Asks for TLS and shakes hands.
    pub(crate) fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let mut stream = open(address);
        assert_eq!(ask(&mut stream), b'S');
        Self::shake(stream, config)
    }

    /// Shakes hands at once.
    pub(crate) fn shake(mut stream: TcpStream, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut connection = ClientConnection::new(Arc::clone(config), name).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(Self { stream: StreamOwned::new(connection, stream) })
    }

    /// Sends a start-up packet of the plain user and reads up to ReadyForQuery.
    pub(crate) fn log_in(&mut self) {
        self.stream.write_all(&startup("bench", "bench")).unwrap();
        self.until(b'Z');
    }

    /// Runs a query; the messages of its answer.
    pub(crate) fn query(&mut self, sql: &str) -> Vec<(u8, Vec<u8>)> {
        self.stream.write_all(&message(b'Q', &[sql.as_bytes(), &[0]].concat())).unwrap();
        self.until(b'Z')
    }

    /// The messages up to one with this tag.
    pub(crate) fn until(&mut self, tag: u8) -> Vec<(u8, Vec<u8>)> {
        let mut messages = Vec::new();
        while messages.last().is_none_or(|(last, _)| *last != tag) {
            messages.push(self.message().unwrap());
        }
        messages
    }

    pub(crate) fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        read_message(&mut self.stream)
    }

    pub(crate) fn kind(&self) -> HandshakeKind {
        self.stream.conn.handshake_kind().unwrap()
    }

    pub(crate) fn set_patience(&self, patience: Duration) {
        self.stream.sock.set_read_timeout(Some(patience)).unwrap();
    }
}

/// The next message of a stream: tag and body.
pub(crate) fn read_message(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    stream.read_exact(&mut header)?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body)?;
    Ok((header[0], body))
}

/// A start-up packet.
pub(crate) fn startup(user: &str, database: &str) -> Vec<u8> {
    let parameters = format!("user\0{user}\0database\0{database}\0\0");
    let length = u32::try_from(8 + parameters.len()).unwrap();
    [&length.to_be_bytes()[..], &196_608_u32.to_be_bytes(), parameters.as_bytes()].concat()
}

/// A message with a tag.
pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(4 + body.len()).unwrap();
    [&[tag][..], &length.to_be_bytes(), body].concat()
}
