//! A peer that sends what it likes, over TLS that is real.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a fixture of tests")]

use crate::support::{Member, Network};
use client::Contract;
use link::message::{Contract as ContractFrame, Hello, Open, Opened, Refuse, Reset, Welcome};
use link::{Code, Frame, Kind, write_frame};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;
use tls::TlsSession;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trust::{CertificateRole, EXPORTER_LABEL, NetworkId, Proof, RelayId};

/// Long enough for a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(15);

pub type Got = (Kind, u32, Vec<u8>);

pub struct Raw {
    pub socket: TcpStream,
    pub tls: TlsSession,
    plain: Vec<u8>,
}

impl Raw {
    /// TLS stands; no hello was said.
    pub async fn dial(network: &Network) -> Self {
        let socket = TcpStream::connect(network.address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        Self::over(socket, network.network()).await
    }

    /// TLS as another relay asks for it; no hello was said.
    pub async fn dial_relay(network: &Network) -> Self {
        let socket = TcpStream::connect(network.address).await.unwrap();
        Self::over_with(socket, config_for(network.network(), link::PEER_ALPN)).await
    }

    /// A link as this relay, which was taken in; its address is none.
    pub async fn join_relay(network: &Network, relay: RelayId, epoch: u64) -> Self {
        let mut raw = Self::dial_relay(network).await;
        let certificate =
            network.root.issue(CertificateRole::Relay, &["127.0.0.1".to_owned()], clock::unix_ms()).unwrap();
        let exported = raw.tls.export(trust::PEER_EXPORTER_LABEL).unwrap();
        let claims = trust::PeerClaims { network: network.network(), relay, epoch };
        let proof = claims.sign(&certificate, &exported).unwrap();
        let chain = certificate.chain().iter().map(AsRef::as_ref).collect();
        let mut out = Vec::new();
        link::message::Peer {
            version: link::VERSION,
            relay: relay.0,
            epoch,
            address: "127.0.0.1:1",
            chain,
            proof: &proof,
        }
        .write(&mut out);
        raw.send(&out).await;
        assert_eq!(raw.frame().await.unwrap().0, Kind::Peered);
        raw
    }

    /// Connected as this member, with as little room for what it does not read as the system allows.
    pub async fn join_narrow(network: &Network, member: &Member) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let socket = socket.connect(network.address).await.unwrap();
        Self::over(socket, network.network()).await.enter(member).await
    }

    pub async fn over(socket: TcpStream, network: NetworkId) -> Self {
        Self::over_with(socket, client_config(network)).await
    }

    async fn over_with(socket: TcpStream, config: Arc<rustls::ClientConfig>) -> Self {
        let tls = TlsSession::connect(config, ServerName::try_from("127.0.0.1").unwrap());
        let mut raw = Self { socket, tls: tls.unwrap(), plain: Vec::new() };
        let mut out = Vec::new();
        raw.tls.process(&mut [], &mut raw.plain, &mut out).unwrap();
        raw.socket.write_all(&out).await.unwrap();
        while raw.tls.is_handshaking() {
            assert!(raw.receive().await, "the relay ended the handshake");
        }
        raw
    }

    /// The relay's end, towards a client that has said hello; whatever it says is taken.
    pub async fn serve(socket: TcpStream, config: Arc<rustls::ServerConfig>) -> Self {
        let mut raw = Self { socket, tls: TlsSession::accept(config, true).unwrap(), plain: Vec::new() };
        while raw.tls.is_handshaking() {
            assert!(raw.receive().await, "the client ended the handshake");
        }
        let (kind, _, payload) = raw.frame().await.unwrap();
        assert_eq!(kind, Kind::Hello);
        let mut welcome = Vec::new();
        Welcome {
            version: link::VERSION,
            relay: uuid::Uuid::from_u128(1),
            epoch: Hello::decode(&payload).unwrap().epoch,
            time_ms: clock::unix_ms(),
            ping_interval_ms: 60_000,
            ping_misses: 2,
            backoff_base_ms: 1_000,
            backoff_cap_ms: 10_000,
            stable_after_ms: 1_000,
            streams: 100,
            window_bytes: 65_536,
            greatest_window_bytes: 65_536,
            addresses: Vec::new(),
        }
        .write(&mut welcome);
        raw.send(&welcome).await;
        raw
    }

    /// Said hello, and heard WELCOME.
    pub async fn join(network: &Network, member: &Member) -> Self {
        Self::dial(network).await.enter(member).await
    }

    async fn enter(mut self, member: &Member) -> Self {
        let hello = self.hello(member, crate::support::next_epoch());
        self.send(&hello).await;
        let (kind, _, payload) = self.frame().await.unwrap();
        assert_eq!(kind, Kind::Welcome, "{:?}", Refuse::decode(&payload));
        self
    }

    /// A hello that holds on this connection.
    pub fn hello(&self, member: &Member, epoch: u64) -> Vec<u8> {
        let exported = self.tls.export(EXPORTER_LABEL).unwrap();
        let proof = Proof::hello(&member.identity, member.network, epoch, &exported);
        hello(member, epoch, &proof)
    }

    pub async fn send(&mut self, plain: &[u8]) {
        self.try_send(plain).await.unwrap();
    }

    pub async fn try_send(&mut self, plain: &[u8]) -> std::io::Result<()> {
        let mut out = Vec::new();
        for part in plain.chunks(16_384) {
            self.tls.encrypt(part, &mut out).unwrap();
        }
        self.socket.write_all(&out).await
    }

    /// The next frame but PINGs, which it does not answer; nothing once the relay has closed.
    pub async fn frame(&mut self) -> Option<Got> {
        tokio::time::timeout(PATIENCE, self.next_frame()).await.expect("nothing comes")
    }

    async fn next_frame(&mut self) -> Option<Got> {
        loop {
            if let Some(frame) = Frame::parse(&self.plain).unwrap() {
                let got = (frame.header.kind.unwrap(), frame.header.stream, frame.payload.to_vec());
                let bytes = frame.bytes();
                self.plain.drain(..bytes);
                if got.0 != Kind::Ping {
                    return Some(got);
                }
                continue;
            }
            if !self.receive().await {
                return None;
            }
        }
    }

    /// Frames until one of this kind.
    pub async fn until(&mut self, kind: Kind) -> (u32, Vec<u8>) {
        loop {
            let (got, stream, payload) = self.frame().await.expect("the relay closes");
            if got == kind {
                return (stream, payload);
            }
        }
    }

    /// Nothing but PINGs comes within `time`.
    pub async fn is_silent(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next_frame()).await.is_err()
    }

    /// How the relay ends the connection: the code of its REFUSE, or none.
    pub async fn ended(&mut self) -> Option<Code> {
        while let Some((kind, stream, payload)) = self.frame().await {
            if kind == Kind::Refuse && stream == 0 {
                return Some(Refuse::decode(&payload).unwrap().code);
            }
        }
        None
    }

    /// The code of the RESET or REFUSE of a stream, whatever comes before it.
    pub async fn stream_ended(&mut self, stream: u32) -> Code {
        loop {
            let (kind, on, payload) = self.frame().await.expect("the relay closes");
            match kind {
                Kind::Reset if on == stream => return Reset::decode(&payload).unwrap().code,
                Kind::Refuse if on == stream => return Refuse::decode(&payload).unwrap().code,
                _ => {}
            }
        }
    }

    async fn receive(&mut self) -> bool {
        let mut incoming = self.tls.pending();
        let pending = incoming.len();
        incoming.resize(pending + 65_536, 0);
        let Ok(count) = self.socket.read(&mut incoming[pending..]).await else { return false };
        if count == 0 {
            return false;
        }
        let mut out = Vec::new();
        self.tls.process(&mut incoming[..pending + count], &mut self.plain, &mut out).unwrap();
        if !out.is_empty() {
            // A relay that closes does not hear it.
            let _ = self.socket.write_all(&out).await;
        }
        true
    }

    pub async fn show(&mut self, contract: &Contract) {
        let mut out = Vec::new();
        let follows = contract.follows.map(|follows| follows.0);
        ContractFrame { text: &contract.text, follows }.write(&mut out);
        self.send(&out).await;
    }

    /// Opens a stream through a raw provider, which takes it: the number there.
    pub async fn open_to(
        &mut self,
        provider: &mut Self,
        to: &Member,
        contract: &Contract,
        stream: u32,
        window: u32,
    ) -> u32 {
        self.send(&open(to, contract, stream, window)).await;
        let (number, _) = provider.until(Kind::Open).await;
        let mut out = Vec::new();
        Opened { window_bytes: window, seal: &[2; 64] }.write(number, &mut out);
        provider.send(&out).await;
        assert_eq!(self.until(Kind::Opened).await.0, stream);
        number
    }
}

pub fn hello(member: &Member, epoch: u64, proof: &Proof) -> Vec<u8> {
    let mut frame = Vec::new();
    Hello {
        version: link::VERSION,
        role: member.role,
        token: &member.token,
        identity: member.identity.public().bytes(),
        epoch,
        proof: &proof.0,
        software: "raw 1",
        dial: 0,
    }
    .write(&mut frame);
    frame
}

pub fn open(to: &Member, contract: &Contract, stream: u32, window: u32) -> Vec<u8> {
    let mut out = Vec::new();
    Open {
        provider: Some((to.client.0, 0)),
        opener: None,
        contract: contract.id.0,
        deadline_ms: 10_000,
        hops: 0,
        window_bytes: window,
        seal: &[1; 96],
        forward: false,
    }
    .write(stream, &mut out);
    out
}

/// DATA of so many payload bytes, the tag among them.
pub fn data(stream: u32, bytes: usize) -> Vec<u8> {
    frame(Kind::Data, stream, &vec![9; bytes])
}

pub fn frame(kind: Kind, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, kind, stream, |out| out.extend_from_slice(payload));
    out
}

pub fn client_config(network: NetworkId) -> Arc<rustls::ClientConfig> {
    config_for(network, link::ALPN)
}

fn config_for(network: NetworkId, alpn: &[u8]) -> Arc<rustls::ClientConfig> {
    let config = trust::client_config(network, CertificateRole::Relay, &[alpn]).unwrap();
    let mut config = Arc::unwrap_or_clone(config);
    config.key_log = tls::exporting();
    Arc::new(config)
}
