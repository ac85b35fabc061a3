//! A connection that nobody knows yet.

use super::Failed;
use link::websocket::{self, End, Reader, wrap_plain};
use link::{Frame, Kind};
use std::io;
use tls::TlsSession;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of one receive: a hello is small.
const READ_BYTES: usize = 4 * 1024;

pub(super) struct Guest {
    pub(super) socket: TcpStream,
    pub(super) tls: TlsSession,
    /// The frames are inside a WebSocket.
    pub(super) websocket: Option<Box<Reader>>,
    pub(super) plain: Vec<u8>,
    /// Frames for it.
    pub(super) out: Vec<u8>,
}

impl Guest {
    pub(super) const fn new(socket: TcpStream, tls: TlsSession) -> Self {
        Self { socket, tls, websocket: None, plain: Vec::new(), out: Vec::new() }
    }

    pub(super) async fn handshake(&mut self) -> io::Result<()> {
        while self.tls.is_handshaking() {
            self.receive().await?;
        }
        Ok(())
    }

    /// Grants the WebSocket that it asks for; whoever asks for something else is told so.
    pub(super) async fn upgrade(&mut self) -> Result<(), Failed> {
        let mut answer = Vec::new();
        let accepted = loop {
            match websocket::accept(&self.plain, &mut answer) {
                Ok(Some(length)) => break Ok(length),
                Ok(None) => self.receive().await.map_err(|_| Failed("io"))?,
                Err(refusal) => {
                    refusal.write(&mut answer);
                    break Err(Failed("http"));
                }
            }
        };
        self.write(&answer).await.map_err(|_| Failed("io"))?;
        self.plain.drain(..accepted?);
        self.websocket = Some(Box::new(Reader::new(End::Server)));
        // What came behind the request.
        let mut reply = Vec::new();
        self.unwrap(0, &mut reply).map_err(|_| Failed("websocket"))?;
        self.socket.write_all(&reply).await.map_err(|_| Failed("io"))
    }

    /// The same for who dials, and speaks first.
    pub(super) async fn begin(&mut self) -> io::Result<()> {
        let mut first = Vec::new();
        self.tls.process(&mut [], &mut self.plain, &mut first).map_err(invalid)?;
        self.socket.write_all(&first).await?;
        self.handshake().await
    }

    /// Until the first frame is there whole; its length. It must be of this kind.
    pub(super) async fn first(&mut self, kind: Kind) -> Result<usize, Failed> {
        loop {
            match Frame::parse(&self.plain) {
                Ok(Some(frame)) if frame.header.kind == Some(kind) && frame.header.stream == 0 => {
                    return Ok(frame.bytes());
                }
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Err(Failed("something else than a hello came")),
            }
            if self.plain.len() > link::MAX_FRAME_BYTES {
                return Err(Failed("something else than a hello came"));
            }
            self.receive().await.map_err(|_| Failed("io"))?;
        }
    }

    async fn receive(&mut self) -> io::Result<()> {
        let mut incoming = self.tls.pending();
        let pending = incoming.len();
        incoming.resize(pending + READ_BYTES, 0);
        let count = self.socket.read(&mut incoming[pending..]).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (start, mut answer) = (self.plain.len(), Vec::new());
        let processed = self.tls.process(&mut incoming[..pending + count], &mut self.plain, &mut answer);
        let unwrapped = processed.map_err(invalid).and_then(|()| self.unwrap(start, &mut answer));
        self.socket.write_all(&answer).await?;
        unwrapped
    }

    /// Takes what came at `start` out of the WebSocket, if it is in one; what is owed for it is added to `answer`.
    fn unwrap(&mut self, start: usize, answer: &mut Vec<u8>) -> io::Result<()> {
        let Some(websocket) = &mut self.websocket else { return Ok(()) };
        let mut reply = Vec::new();
        websocket.read(&mut self.plain, start, &mut reply).map_err(invalid)?;
        if reply.is_empty() { Ok(()) } else { self.tls.encrypt(&reply, answer).map_err(invalid) }
    }

    /// Sends the frames that wait.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        let frames = std::mem::take(&mut self.out);
        if self.websocket.is_none() {
            return self.write(&frames).await;
        }
        let mut wrapped = Vec::new();
        wrap_plain(&frames, &mut wrapped);
        self.write(&wrapped).await
    }

    async fn write(&mut self, plain: &[u8]) -> io::Result<()> {
        let mut sealed = Vec::new();
        self.tls.encrypt(plain, &mut sealed).map_err(invalid)?;
        self.socket.write_all(&sealed).await
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
