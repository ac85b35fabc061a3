//! Raw frames over TLS, written and read from the page and from nothing else.

use crate::authority::{Authority, Member};
use anyhow::{Context, bail, ensure};
use rustls::ServerConfig;
use rustls::pki_types::ServerName;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tls::{TlsSession, TlsStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use trust::{CertificateRole, Proof};

/// A relay that is fine answers much sooner.
pub(crate) const SOON: Duration = Duration::from_secs(5);

pub(crate) const HELLO: u8 = 0x01;
pub(crate) const WELCOME: u8 = 0x02;
pub(crate) const REFUSE: u8 = 0x03;
pub(crate) const PING: u8 = 0x04;
pub(crate) const PONG: u8 = 0x05;
pub(crate) const DRAIN: u8 = 0x06;
pub(crate) const CONTRACT: u8 = 0x07;
pub(crate) const OPEN: u8 = 0x10;
pub(crate) const OPENED: u8 = 0x11;
pub(crate) const DATA: u8 = 0x12;
pub(crate) const CREDIT: u8 = 0x13;
pub(crate) const FIN: u8 = 0x14;
pub(crate) const RESET: u8 = 0x15;

/// A frame that came.
#[derive(PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "type {:#04x}, stream {}, {} bytes", self.kind, self.stream, self.payload.len())?;
        match (self.kind, self.code()) {
            (REFUSE | RESET, Ok(code)) => write!(formatter, ", code {code}"),
            _ => Ok(()),
        }
    }
}

impl Frame {
    /// The value of a field that is there once.
    pub(crate) fn field(&self, tag: u8) -> anyhow::Result<&[u8]> {
        let mut found = None;
        for (number, value) in self.fields()? {
            if number == tag {
                ensure!(found.replace(value).is_none(), "field {tag} of {self:?} came twice");
            }
        }
        found.with_context(|| format!("field {tag} is missing in a frame of type {:#04x}", self.kind))
    }

    pub(crate) fn has(&self, tag: u8) -> anyhow::Result<bool> {
        Ok(self.fields()?.iter().any(|&(number, _)| number == tag))
    }

    /// A field that is a number of `bytes` bytes.
    pub(crate) fn number(&self, tag: u8, bytes: usize) -> anyhow::Result<u64> {
        let value = self.field(tag)?;
        ensure!(value.len() == bytes, "field {tag} has {} bytes instead of {bytes}", value.len());
        Ok(value.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// The code of a REFUSE or RESET.
    pub(crate) fn code(&self) -> anyhow::Result<u64> {
        self.number(1, 2)
    }

    fn fields(&self) -> anyhow::Result<Vec<(u8, &[u8])>> {
        let (mut rest, mut fields) = (&self.payload[..], Vec::new());
        while let Some((&[tag, high, low], behind)) = rest.split_first_chunk::<3>() {
            let (value, behind) = behind
                .split_at_checked(usize::from(u16::from_be_bytes([high, low])))
                .context("a field is cut off")?;
            fields.push((tag, value));
            rest = behind;
        }
        ensure!(rest.is_empty(), "a field is cut off");
        Ok(fields)
    }
}

/// A payload of fields.
pub(crate) fn fields(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (tag, value) in fields {
        out.push(*tag);
        out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(value);
    }
    out
}

pub(crate) fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(payload.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// One connection.
pub(crate) struct Wire {
    stream: TlsStream<TcpStream>,
    exported: [u8; 32],
    received: Vec<u8>,
    /// What came inside WebSocket messages is taken out of them, and what is sent is put into one.
    websocket: bool,
}

impl Wire {
    /// TLS with the relay at `address`, by that ALPN.
    pub(crate) async fn dial(address: &str, authority: &Authority, alpn: &[u8]) -> anyhow::Result<Self> {
        let config = trust::client_config(authority.network, CertificateRole::Relay, &[alpn])?;
        let mut config = Arc::unwrap_or_clone(config);
        config.key_log = tls::exporting();
        let host = address.rsplit_once(':').context("an address is host:port")?.0;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let session = TlsSession::connect(Arc::new(config), ServerName::try_from(host.to_owned())?)?;
        let connecting = async {
            let socket = TcpStream::connect(address).await.context("cannot connect")?;
            socket.set_nodelay(true)?;
            let mut stream = TlsStream::new(socket, session);
            stream.handshake().await.context("TLS")?;
            anyhow::Ok(stream)
        };
        let stream = timeout(SOON, connecting).await.context("connecting took too long")??;
        let (socket, session, received) = stream.into_parts();
        ensure!(session.alpn() == Some(alpn), "the relay does not confirm the protocol (ALPN)");
        let exported = session.export(trust::EXPORTER_LABEL).context("TLS 1.3 is needed")?;
        Ok(Self { stream: TlsStream::new(socket, session), exported, received, websocket: false })
    }

    /// TLS with a client that has dialled.
    pub(crate) async fn accept(socket: TcpStream, config: Arc<ServerConfig>) -> anyhow::Result<Self> {
        socket.set_nodelay(true)?;
        let mut stream = TlsStream::new(socket, TlsSession::accept(config, true)?);
        timeout(SOON, stream.handshake()).await.context("TLS took too long")?.context("TLS")?;
        let (socket, session, received) = stream.into_parts();
        let exported = session.export(trust::EXPORTER_LABEL).context("TLS 1.3 is needed")?;
        Ok(Self { stream: TlsStream::new(socket, session), exported, received, websocket: false })
    }

    pub(crate) const fn exported(&self) -> &[u8; 32] {
        &self.exported
    }

    /// Asks for a WebSocket (RFC 6455).
    pub(crate) async fn upgrade(&mut self, host: &str) -> anyhow::Result<()> {
        let request = format!(
            "GET /v1/link HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: holdfast-1\r\n\r\n"
        );
        self.write(request.as_bytes()).await?;
        let length = loop {
            if let Some(at) = self.received.windows(4).position(|part| part == b"\r\n\r\n") {
                break at + 4;
            }
            ensure!(self.more().await?, "the relay closes instead of granting a WebSocket");
        };
        let answer = String::from_utf8_lossy(&self.received[..length]).to_ascii_lowercase();
        ensure!(answer.starts_with("http/1.1 101 "), "no WebSocket is granted: {answer}");
        // The key and its answer stand in RFC 6455 §1.3.
        for header in
            ["sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=", "sec-websocket-protocol: holdfast-1"]
        {
            ensure!(answer.contains(header), "the answer lacks {header}");
        }
        self.received.drain(..length);
        self.websocket = true;
        Ok(())
    }

    /// The fields of a hello that is as it should be.
    pub(crate) fn hello(&self, authority: &Authority, member: &Member, epoch: u64) -> Hello {
        let proof = Proof::hello(&member.identity, authority.network, epoch, &self.exported);
        Hello {
            version: 1,
            role: member.role.number(),
            token: member.token.clone(),
            identity: *member.identity.public().bytes(),
            epoch,
            proof: proof.0,
            further: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, kind: u8, stream: u32, payload: &[u8]) -> anyhow::Result<()> {
        self.send_raw(&frame(kind, stream, payload)).await
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if !self.websocket {
            return self.write(bytes).await;
        }
        let length = u16::try_from(bytes.len()).context("too long for this kit")?.to_be_bytes();
        // A mask of zeros leaves the bytes as they are.
        self.write(&[&[0x82, 0x80 | 126][..], &length, &[0; 4], bytes].concat()).await
    }

    async fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let writing = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        timeout(SOON, writing).await.context("the relay takes no bytes")?.context("sending")
    }

    /// The next frame; a PING is answered and left out. `None` if the relay has closed.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Frame>> {
        self.next_within(SOON).await?.context("nothing came in time")
    }

    /// `Ok(None)`: nothing came in time.
    pub(crate) async fn next_within(&mut self, limit: Duration) -> anyhow::Result<Option<Option<Frame>>> {
        let waiting = async {
            loop {
                while let Some(frame) = self.take()? {
                    if frame.kind != PING {
                        return Ok(Some(frame));
                    }
                    self.send(PONG, 0, &frame.payload).await?;
                }
                if !self.more().await? {
                    return Ok(None);
                }
            }
        };
        match timeout(limit, waiting).await {
            Ok(result) => result.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// A frame of that type and stream must be next.
    pub(crate) async fn expect(&mut self, kind: u8, stream: u32) -> anyhow::Result<Frame> {
        match self.next().await? {
            Some(frame) if (frame.kind, frame.stream) == (kind, stream) => Ok(frame),
            Some(frame) => bail!("expected type {kind:#04x} on stream {stream}, got {frame:?}"),
            None => bail!("expected type {kind:#04x} on stream {stream}, and the relay closed"),
        }
    }

    /// A frame of that type must be next, on whatever stream.
    pub(crate) async fn expect_any(&mut self, kind: u8) -> anyhow::Result<Frame> {
        match self.next().await? {
            Some(frame) if frame.kind == kind => Ok(frame),
            other => bail!("expected type {kind:#04x}, got {other:?}"),
        }
    }

    /// The relay must end the connection with REFUSE and that code, and close.
    pub(crate) async fn refused(&mut self, code: u64) -> anyhow::Result<Frame> {
        let frame = self.expect(REFUSE, 0).await?;
        let told = frame.code()?;
        ensure!(told == code, "expected REFUSE with code {code}, got {told}");
        // It may hold the connection for a while, but says nothing more.
        if let Ok(Some(Some(more))) = self.next_within(Duration::from_millis(200)).await {
            bail!("after REFUSE came {more:?}");
        }
        Ok(frame)
    }

    /// The connection still lives: a PING comes back.
    pub(crate) async fn lives(&mut self) -> anyhow::Result<()> {
        self.send(PING, 0, b"kit-ping").await?;
        let pong = self.expect(PONG, 0).await?;
        ensure!(pong.payload == b"kit-ping", "PONG brings other bytes back than PING took");
        Ok(())
    }

    /// The relay must close within `limit`.
    pub(crate) async fn closed_within(&mut self, limit: Duration) -> anyhow::Result<()> {
        let closing = async { while matches!(self.more().await, Ok(true)) {} };
        timeout(limit, closing).await.with_context(|| format!("still open after {limit:?}"))
    }

    /// Receives once; whether anything came.
    async fn more(&mut self) -> anyhow::Result<bool> {
        // A reset is an end as well.
        Ok(self.stream.read_buf(&mut self.received).await.unwrap_or(0) > 0)
    }

    fn take(&mut self) -> anyhow::Result<Option<Frame>> {
        if self.websocket {
            return self.take_from_message();
        }
        let taken = parse(&self.received)?;
        Ok(taken.map(|(frame, length)| {
            self.received.drain(..length);
            frame
        }))
    }

    /// One frame from one message: enough for the checks that are done this way.
    fn take_from_message(&mut self) -> anyhow::Result<Option<Frame>> {
        let (at, length) = match self.received[..] {
            [0x82, length @ 0..126, ..] => (2, usize::from(length)),
            [0x82, 126, high, low, ..] => (4, usize::from(u16::from_be_bytes([high, low]))),
            [first, ..] if first != 0x82 => bail!("a WebSocket frame that begins with {first:#04x}"),
            _ => return Ok(None),
        };
        let Some(message) = self.received.get(at..at + length) else { return Ok(None) };
        let (frame, _) = parse(message)?.context("a message that is no whole frame")?;
        self.received.drain(..at + length);
        Ok(Some(frame))
    }
}

fn parse(bytes: &[u8]) -> anyhow::Result<Option<(Frame, usize)>> {
    let Some(&[high, low, kind, flags, a, b, c, d]) = bytes.first_chunk() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    ensure!(length <= 16_376, "a frame of {length} bytes came");
    ensure!(flags == 0, "flags are zero when sent");
    let Some(payload) = bytes.get(8..8 + length) else { return Ok(None) };
    let stream = u32::from_be_bytes([a, b, c, d]);
    Ok(Some((Frame { kind, stream, payload: payload.to_vec() }, 8 + length)))
}

/// A hello, to be changed.
#[derive(Clone)]
pub(crate) struct Hello {
    pub(crate) version: u8,
    pub(crate) role: u8,
    pub(crate) token: String,
    pub(crate) identity: [u8; 64],
    pub(crate) epoch: u64,
    pub(crate) proof: [u8; 64],
    pub(crate) further: Vec<(u8, Vec<u8>)>,
}

impl Hello {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut list: Vec<(u8, &[u8])> =
            vec![(1, std::slice::from_ref(&self.version)), (2, std::slice::from_ref(&self.role))];
        let epoch = self.epoch.to_be_bytes();
        list.extend([
            (3, self.token.as_bytes()),
            (4, &self.identity[..]),
            (5, &epoch[..]),
            (6, &self.proof[..]),
            (7, &b"conformance 1"[..]),
        ]);
        list.extend(self.further.iter().map(|(tag, value)| (*tag, value.as_slice())));
        frame(HELLO, 0, &fields(&list))
    }
}
