//! From an address to a relay that has said WELCOME.

use crate::error::LinkError;
use clock::unix_ms;
use link::message::{Hello, Refuse, Welcome};
use link::{Frame, HELLO_LIMIT, Kind, VERSION, parse_wait};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tls::{MAX_PENDING_BYTES, TlsSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use trust::{ClientId, EXPORTER_LABEL, Identity, NetworkId, Proof, Role};

/// The TCP connection must stand within this time.
const DIAL_LIMIT: Duration = Duration::from_secs(10);
/// TLS and the relay's answer to the hello.
const ADMISSION_LIMIT: Duration = Duration::from_secs(20);
const READ_BYTES: usize = 16 * 1024;

/// Who dials, and as what.
#[derive(Clone, Debug)]
pub struct Identification {
    /// The network.
    pub network: NetworkId,
    /// The name under which the client is registered.
    pub client: ClientId,
    /// What it wants to be.
    pub role: Role,
    /// Its keys.
    pub identity: Arc<Identity>,
    /// The token of the api.
    pub token: String,
    /// The number of this start: above all that came before.
    pub epoch: u64,
    /// Name and version of the program.
    pub software: Cow<'static, str>,
}

/// A connection that the relay has taken in.
pub(crate) struct Admitted {
    pub socket: TcpStream,
    pub tls: TlsSession,
    pub welcome: Welcome,
    /// What came behind the WELCOME.
    pub rest: Vec<u8>,
}

/// Dials `address` (`host:port`).
pub(crate) async fn connect(
    address: &str,
    config: &Arc<ClientConfig>,
    who: &Identification,
) -> Result<Admitted, LinkError> {
    let socket = match timeout(DIAL_LIMIT, TcpStream::connect(address)).await {
        Ok(connected) => connected.map_err(|error| LinkError::io("connecting", error))?,
        Err(_) => return Err(LinkError::Silent(DIAL_LIMIT)),
    };
    socket.set_nodelay(true).map_err(|error| LinkError::io("connecting", error))?;
    let name = server_name(address)?;
    let tls =
        TlsSession::connect(Arc::clone(config), name).map_err(|error| LinkError::Tls(error.to_string()))?;
    admit(socket, tls, who).await
}

/// Over a connection that stands; for tests and for whoever dials otherwise.
pub(crate) async fn admit(
    socket: TcpStream,
    tls: TlsSession,
    who: &Identification,
) -> Result<Admitted, LinkError> {
    let mut admission = Admission { socket, tls, plain: Vec::new(), out: Vec::new(), first: true };
    timeout(ADMISSION_LIMIT, admission.handshake())
        .await
        .map_err(|_| LinkError::Silent(ADMISSION_LIMIT))??;
    let exported = admission.tls.export(EXPORTER_LABEL);
    let exported = exported.ok_or_else(|| LinkError::Tls("the connection exports no keys".to_owned()))?;
    let proof = Proof::hello(&who.identity, who.network, who.epoch, &exported);
    let hello = Hello {
        version: VERSION,
        role: who.role,
        token: &who.token,
        identity: who.identity.public().bytes(),
        epoch: who.epoch,
        proof: &proof.0,
        software: &who.software,
    };
    let mut frame = Vec::new();
    hello.write(&mut frame);
    admission.send(&frame).await?;
    let welcome = timeout(HELLO_LIMIT * 2, admission.welcome())
        .await
        .map_err(|_| LinkError::Silent(HELLO_LIMIT * 2))??;
    let skew = unix_ms().abs_diff(welcome.time_ms);
    if skew > link::seal::GREATEST_SKEW_MS / 2 {
        tracing::warn!(skew_ms = skew, "this clock and the relay's differ: sealed messages may be refused");
    }
    Ok(Admitted { socket: admission.socket, tls: admission.tls, welcome, rest: admission.plain })
}

/// `host:port`, the host as a name or an address for the certificate.
fn server_name(address: &str) -> Result<ServerName<'static>, LinkError> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(host.to_owned())
        .map_err(|_| LinkError::Tls(format!("{host} is no name of a server")))
}

/// What the relay answered, and the length of its frame.
type Answered = (Result<Welcome, LinkError>, usize);

struct Admission {
    socket: TcpStream,
    tls: TlsSession,
    plain: Vec<u8>,
    out: Vec<u8>,
    /// Nothing has come yet: it may be plain text.
    first: bool,
}

impl Admission {
    async fn handshake(&mut self) -> Result<(), LinkError> {
        self.process(&mut [])?;
        loop {
            self.flush().await?;
            if !self.tls.is_handshaking() {
                return Ok(());
            }
            self.receive().await?;
        }
    }

    async fn welcome(&mut self) -> Result<Welcome, LinkError> {
        loop {
            if let Some((answer, bytes)) = self.answer()? {
                self.plain.drain(..bytes);
                return answer;
            }
            self.receive().await?;
            self.flush().await?;
        }
    }

    /// The relay's answer, if it is there whole, and its length.
    fn answer(&self) -> Result<Option<Answered>, LinkError> {
        let Some(frame) = Frame::parse(&self.plain).map_err(protocol)? else { return Ok(None) };
        let answer = match frame.header.kind {
            Some(Kind::Welcome) => Ok(Welcome::decode(frame.payload).map_err(protocol)?),
            Some(Kind::Refuse) => Err(refused(Refuse::decode(frame.payload).map_err(protocol)?)),
            _ => return Err(LinkError::Protocol("an answer to HELLO was expected".into())),
        };
        Ok(Some((answer, frame.bytes())))
    }

    async fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.tls.encrypt(frame, &mut self.out).map_err(|error| LinkError::Tls(error.to_string()))?;
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), LinkError> {
        let out = std::mem::take(&mut self.out);
        self.socket.write_all(&out).await.map_err(|error| LinkError::io("sending", error))
    }

    async fn receive(&mut self) -> Result<(), LinkError> {
        let mut incoming = self.tls.pending();
        let pending = incoming.len();
        debug_assert!(pending <= MAX_PENDING_BYTES);
        incoming.resize(pending + READ_BYTES, 0);
        let count = self.socket.read(&mut incoming[pending..]).await;
        let count = count.map_err(|error| LinkError::io("receiving", error))?;
        if count == 0 {
            return Err(LinkError::io("receiving", io::ErrorKind::UnexpectedEof.into()));
        }
        incoming.truncate(pending + count);
        if std::mem::take(&mut self.first)
            && let Some(wait) = parse_wait(&incoming)
        {
            return Err(LinkError::Wait(wait));
        }
        self.process(&mut incoming)
    }

    fn process(&mut self, incoming: &mut [u8]) -> Result<(), LinkError> {
        self.tls
            .process(incoming, &mut self.plain, &mut self.out)
            .map_err(|error| LinkError::Tls(error.to_string()))
    }
}

pub(crate) fn refused(refuse: Refuse<'_>) -> LinkError {
    LinkError::Refused {
        code: refuse.code,
        cause: refuse.cause.into_owned(),
        retry_after: refuse.retry_after,
    }
}

pub(crate) fn protocol(error: impl std::fmt::Display) -> LinkError {
    LinkError::Protocol(error.to_string().into())
}
