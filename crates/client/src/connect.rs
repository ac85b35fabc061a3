//! From an address to a relay that has said WELCOME.

use crate::error::LinkError;
use crate::ways::{HttpProxy, Transport, Ways};
use clock::unix_ms;
use link::message::{Hello, Refuse, Welcome};
use link::websocket::{self, End, Handshake, MAX_HEAD_BYTES, Reader, wrap_masked};
use link::{ALPN, Frame, HELLO_LIMIT, Kind, VERSION, may_be_wait, parse_wait};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tls::{MAX_PENDING_BYTES, TlsSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use trust::{CertificateRole, ClientId, EXPORTER_LABEL, Identity, NetworkId, Proof, Role};

/// The TCP connection must stand within this time.
const DIAL_LIMIT: Duration = Duration::from_secs(10);
/// TLS and the relay's answer to the hello.
const ADMISSION_LIMIT: Duration = Duration::from_secs(20);
/// Where the relay has closed, what it said before is read for so long.
const CAUSE_LIMIT: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 16 * 1024;

/// Connections of this process: of two of the same start, relays keep to the later one.
static DIALS: AtomicU64 = AtomicU64::new(1);

/// Who dials, and as what.
#[derive(Clone)]
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

/// Without the token.
impl std::fmt::Debug for Identification {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Identification")
            .field("client", &self.client)
            .field("role", &self.role)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// A connection that the relay has taken in.
pub(crate) struct Admitted {
    pub socket: TcpStream,
    pub tls: TlsSession,
    /// The frames are inside a WebSocket.
    pub websocket: Option<Box<Reader>>,
    pub welcome: Welcome,
    /// What came behind the WELCOME.
    pub rest: Vec<u8>,
}

/// Dials `address` (`host:port`) by the way that is next.
pub(crate) async fn connect(address: &str, who: &Identification, ways: &Ways) -> Result<Admitted, LinkError> {
    let transport = ways.next(fastrand::u64(..));
    let admitted = connect_by(address, who, ways, transport).await;
    ways.tried(transport, admitted.as_ref().err());
    admitted
}

async fn connect_by(
    address: &str,
    who: &Identification,
    ways: &Ways,
    transport: Transport,
) -> Result<Admitted, LinkError> {
    let proxy = if transport == Transport::WebSocket { ways.proxy(host(address)) } else { None };
    let dialling = timeout(DIAL_LIMIT, dial(address, proxy));
    let (socket, early) = dialling
        .await
        .unwrap_or_else(|_| Err(LinkError::io(LinkError::CONNECTING, io::ErrorKind::TimedOut.into())))?;
    over(socket, early, address, who, transport).await
}

/// Over a connection that stands, to `address`, from where `early` has come already.
pub(crate) async fn over(
    socket: TcpStream,
    early: Vec<u8>,
    address: &str,
    who: &Identification,
    transport: Transport,
) -> Result<Admitted, LinkError> {
    let mut admission = Admission::begin(socket, address, who.network, transport)?;
    if let Some(wait) = parse_wait(&early) {
        return Err(LinkError::Wait(wait));
    }
    admission.tls.set_pending(early);
    timeout(ADMISSION_LIMIT, admission.prepare(address, transport))
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
        dial: DIALS.fetch_add(1, Ordering::Relaxed),
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
    let Admission { socket, tls, websocket, plain: rest, .. } = admission;
    Ok(Admitted { socket, tls, websocket, welcome, rest })
}

/// A connection to `address`, or through the proxy; and what has come from there already.
async fn dial(address: &str, proxy: Option<&HttpProxy>) -> Result<(TcpStream, Vec<u8>), LinkError> {
    let connecting = |error| LinkError::io(LinkError::CONNECTING, error);
    let next = proxy.map_or(address, HttpProxy::address);
    let mut socket = TcpStream::connect(next).await.map_err(connecting)?;
    socket.set_nodelay(true).map_err(connecting)?;
    let early = match proxy {
        Some(proxy) => proxy.connect(&mut socket, address).await?,
        None => Vec::new(),
    };
    Ok((socket, early))
}

fn tls_config(network: NetworkId, transport: Transport) -> Result<Arc<ClientConfig>, LinkError> {
    let alpn = match transport {
        Transport::Direct => ALPN,
        Transport::WebSocket => websocket::ALPN,
    };
    let config = trust::client_config(network, CertificateRole::Relay, &[alpn]);
    let config = config.map_err(|error| LinkError::Tls(error.to_string()))?;
    let mut config = Arc::unwrap_or_clone(config);
    config.key_log = tls::exporting();
    Ok(Arc::new(config))
}

/// The host of `host:port`, as a certificate names it.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// What the relay answered, and the length of its frame.
type Answered = (Result<Welcome, LinkError>, usize);

struct Admission {
    socket: TcpStream,
    tls: TlsSession,
    websocket: Option<Box<Reader>>,
    plain: Vec<u8>,
    out: Vec<u8>,
    /// What has come so far, for as long as it may be plain text.
    first: Option<Vec<u8>>,
}

/// One TLS handshake with the relay at `address`: it proves that it is one of this network.
pub(crate) async fn greet(address: &str, network: NetworkId) -> Result<(), LinkError> {
    let (socket, _) = dial(address, None).await?;
    Admission::begin(socket, address, network, Transport::Direct)?.handshake().await
}

impl Admission {
    fn begin(
        socket: TcpStream,
        address: &str,
        network: NetworkId,
        transport: Transport,
    ) -> Result<Self, LinkError> {
        let host = host(address);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| LinkError::Tls(format!("{host} is no name of a server")))?;
        let tls = TlsSession::connect(tls_config(network, transport)?, name)
            .map_err(|error| LinkError::Tls(error.to_string()))?;
        let first = Some(Vec::new());
        Ok(Self { socket, tls, websocket: None, plain: Vec::new(), out: Vec::new(), first })
    }

    /// Until frames may be sent.
    async fn prepare(&mut self, address: &str, transport: Transport) -> Result<(), LinkError> {
        self.handshake().await?;
        match transport {
            Transport::Direct => Ok(()),
            Transport::WebSocket => self.upgrade(address).await,
        }
    }

    async fn upgrade(&mut self, address: &str) -> Result<(), LinkError> {
        let mut request = Vec::new();
        let handshake = Handshake::begin(address, &mut request);
        self.encrypt(&request)?;
        self.flush().await?;
        let length = loop {
            match handshake.finish(&self.plain) {
                Ok(Some(length)) => break length,
                Ok(None) if self.plain.len() < MAX_HEAD_BYTES => self.receive().await?,
                Ok(None) => return Err(LinkError::WebSocket("the answer is too long".into())),
                Err(error) => return Err(LinkError::WebSocket(error.to_string().into())),
            }
        };
        self.plain.drain(..length);
        self.websocket = Some(Box::new(Reader::new(End::Client)));
        self.unwrap(0)
    }

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
        if self.websocket.is_some() {
            let mut wrapped = Vec::new();
            wrap_masked(frame, &mut wrapped);
            self.encrypt(&wrapped)?;
        } else {
            self.encrypt(frame)?;
        }
        self.flush().await
    }

    fn encrypt(&mut self, plain: &[u8]) -> Result<(), LinkError> {
        self.tls.encrypt(plain, &mut self.out).map_err(|error| LinkError::Tls(error.to_string()))
    }

    async fn flush(&mut self) -> Result<(), LinkError> {
        let out = std::mem::take(&mut self.out);
        match self.socket.write_all(&out).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.cause(error).await),
        }
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
        if let Some(mut first) = self.first.take() {
            first.append(&mut incoming);
            if let Some(wait) = parse_wait(&first) {
                return Err(LinkError::Wait(wait));
            }
            // TLS begins with another byte; the text may come in pieces.
            if may_be_wait(&first) {
                self.first = Some(first);
                return Ok(());
            }
            incoming = first;
        }
        self.process(&mut incoming)
    }

    /// Sending has failed: if the relay has said before why, that is the cause.
    async fn cause(&mut self, error: io::Error) -> LinkError {
        let mut first = self.first.take().unwrap_or_default();
        let reading = async {
            while may_be_wait(&first) {
                if !matches!(self.socket.read_buf(&mut first).await, Ok(count) if count > 0) {
                    return;
                }
            }
        };
        // What it has said is here already.
        let _ = timeout(CAUSE_LIMIT, reading).await;
        parse_wait(&first).map_or_else(|| LinkError::io("sending", error), LinkError::Wait)
    }

    fn process(&mut self, incoming: &mut [u8]) -> Result<(), LinkError> {
        let start = self.plain.len();
        self.tls
            .process(incoming, &mut self.plain, &mut self.out)
            .map_err(|error| LinkError::Tls(error.to_string()))?;
        self.unwrap(start)
    }

    /// Takes what came at `start` out of the WebSocket, if it is in one.
    fn unwrap(&mut self, start: usize) -> Result<(), LinkError> {
        let Some(websocket) = &mut self.websocket else { return Ok(()) };
        let mut reply = Vec::new();
        let read = websocket.read(&mut self.plain, start, &mut reply);
        read.map_err(|error| LinkError::WebSocket(error.to_string().into()))?;
        if reply.is_empty() { Ok(()) } else { self.encrypt(&reply) }
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
