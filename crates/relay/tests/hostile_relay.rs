//! A relay that reads, keeps, changes and repeats what passes through it: what the two ends notice.
#![allow(missing_docs)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "raw.rs"]
mod raw;
#[path = "support.rs"]
mod support;

use client::{Code, Link, LinkError, OpenError, Opens, SealedOpen, Stream};
use link::Kind;
use link::message::{Open, Opened, Refuse, Reset, write_credit};
use raw::{Got, PATIENCE, Raw, frame};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use support::{Member, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use trust::{CertificateRole, Role};

/// The relay is the test; both ends are the client library.
struct Stage {
    network: Network,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    provider: Member,
    proxy: Member,
}

/// One link, both of its ends.
struct Ends {
    link: Link,
    relay: Raw,
    opens: mpsc::Receiver<SealedOpen>,
    to: Opens,
}

/// A stream that stands: both ends of it, and both of the relay's.
struct Standing {
    opener: Ends,
    provider: Ends,
    near: Stream,
    far: Stream,
    /// What the opener asked.
    open: Vec<u8>,
}

impl Stage {
    async fn new() -> Self {
        let network = Network::start().await;
        let names = ["127.0.0.1".to_owned()];
        let certificate = network.root.issue(CertificateRole::Relay, &names, clock::unix_ms()).unwrap();
        let mut tls = Arc::unwrap_or_clone(trust::server_config(&certificate, &[link::ALPN]).unwrap());
        tls.key_log = tls::exporting();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (provider, proxy) = (network.member(Role::Provider), network.member(Role::Proxy));
        Self { network, listener, tls: Arc::new(tls), provider, proxy }
    }

    async fn link(&self, member: &Member) -> Ends {
        let (to, opens) = Opens::channel(member.who().epoch);
        let (link, relay) = self.link_to(member, to.clone()).await;
        Ends { link, relay, opens, to }
    }

    async fn link_to(&self, member: &Member, to: Opens) -> (Link, Raw) {
        let address = self.listener.local_addr().unwrap().to_string();
        let dialling = async { Link::connect(&address, member.who(), Some(to)).await.unwrap() };
        let serving = async {
            let (socket, _) = self.listener.accept().await.unwrap();
            Raw::serve(socket, Arc::clone(&self.tls)).await
        };
        tokio::join!(dialling, serving)
    }

    fn request(&self) -> client::OpenRequest {
        client::OpenRequest {
            provider: self.provider.client,
            provider_epoch: 0,
            provider_key: self.provider.identity.public().seal_key(),
            target: client::Target { host: client::Host::Address(Ipv4Addr::LOCALHOST.into()), port: 9 },
            family: client::Family::Any,
            contract: self.network.contract(&self.proxy, 1 << 30),
            deadline: PATIENCE,
            forward: false,
        }
    }

    /// As the relay passes an OPEN on.
    fn passed(&self, payload: &[u8], stream: u32, change: impl FnOnce(&mut Open<'_>)) -> Vec<u8> {
        let mut open = Open::decode(payload).unwrap();
        (open.provider, open.opener) = (None, Some(self.proxy.client.0));
        change(&mut open);
        let mut out = Vec::new();
        open.write(stream, &mut out);
        out
    }

    async fn stream(&self) -> Standing {
        let (mut opener, mut provider) = (self.link(&self.proxy).await, self.link(&self.provider).await);
        let (link, request) = (opener.link.clone(), self.request());
        let opening = tokio::spawn(async move { link.open(&request).await });
        let (_, open) = opener.relay.until(Kind::Open).await;
        provider.relay.send(&self.passed(&open, 1, |_| ())).await;
        let open_there = provider.opens.recv().await.unwrap().unseal().unwrap();
        let far = open_there.accept(Ipv4Addr::LOCALHOST.into()).unwrap();
        let (_, opened) = provider.relay.until(Kind::Opened).await;
        opener.relay.send(&frame(Kind::Opened, 1, &opened)).await;
        let (near, _) = opening.await.unwrap().unwrap();
        Standing { opener, provider, near, far, open }
    }
}

/// Reading ends in an error, never in a good end.
async fn is_cut(stream: &mut Stream) -> Option<Code> {
    let mut rest = Vec::new();
    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("nobody notices");
    assert!(end.is_err(), "{} bytes were taken for all", rest.len());
    stream.reset_code()
}

/// The next so many DATA frames of the opener.
async fn data(relay: &mut Raw, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for _ in 0..count {
        frames.push(relay.until(Kind::Data).await.1);
    }
    frames
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_that_is_shown_again_is_refused_on_this_link_and_on_the_next() {
    let stage = Stage::new().await;
    let mut standing = stage.stream().await;
    let Ends { relay, opens, to, .. } = &mut standing.provider;
    relay.send(&stage.passed(&standing.open, 2, |_| ())).await;
    assert_eq!(refused(opens, relay).await, Code::Replayed);
    // For another opener, or at the expense of another contract.
    let someone = uuid::Uuid::from_u128(7);
    relay.send(&stage.passed(&standing.open, 3, |open| open.opener = Some(someone))).await;
    assert_eq!(refused(opens, relay).await, Code::SealInvalid);
    relay.send(&stage.passed(&standing.open, 4, |open| open.contract = someone)).await;
    assert_eq!(refused(opens, relay).await, Code::SealInvalid);
    // The same start of the provider dials again.
    let (_link, mut relay) = stage.link_to(&stage.provider, to.clone()).await;
    relay.send(&stage.passed(&standing.open, 1, |_| ())).await;
    assert_eq!(refused(opens, &mut relay).await, Code::Replayed);
}

/// How the provider refuses the open that comes next.
async fn refused(opens: &mut mpsc::Receiver<SealedOpen>, relay: &mut Raw) -> Code {
    let sealed = tokio::time::timeout(PATIENCE, opens.recv()).await.expect("nothing comes").unwrap();
    assert!(sealed.unseal().is_none(), "it is taken");
    Refuse::decode(&relay.until(Kind::Refuse).await.1).unwrap().code
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_changed_swapped_doubled_or_left_out_end_the_stream() {
    let stage = Stage::new().await;
    type Attack = fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>;
    let attacks: [Attack; 5] = [
        |mut all| {
            all[0][3] ^= 1;
            all
        },
        |mut all| {
            all.swap(0, 1);
            all
        },
        |all| vec![all[0].clone(), all[0].clone()],
        |all| vec![all[1].clone()],
        |mut all| {
            let last = all[0].len() - 1;
            all[0].truncate(last);
            all
        },
    ];
    for attack in attacks {
        let mut standing = stage.stream().await;
        standing.near.write_all(b"first").await.unwrap();
        standing.near.write_all(b"second").await.unwrap();
        for payload in attack(data(&mut standing.opener.relay, 2).await) {
            standing.provider.relay.send(&frame(Kind::Data, 1, &payload)).await;
        }
        assert_eq!(is_cut(&mut standing.far).await, Some(Code::SealInvalid));
        let (_, reset) = standing.provider.relay.until(Kind::Reset).await;
        assert_eq!(Reset::decode(&reset).unwrap().code, Code::SealInvalid);
        assert!(standing.provider.link.is_up(), "one stream is over, not the link");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_the_relay_cuts_short_is_not_taken_for_a_whole_one() {
    let stage = Stage::new().await;
    for honest in [false, true] {
        let mut standing = stage.stream().await;
        standing.near.write_all(b"half of it").await.unwrap();
        standing.near.shutdown().await.unwrap();
        let mut payloads = data(&mut standing.opener.relay, 2).await;
        standing.opener.relay.until(Kind::Fin).await;
        if !honest {
            // The sealed end.
            payloads.pop();
        }
        for payload in payloads {
            standing.provider.relay.send(&frame(Kind::Data, 1, &payload)).await;
        }
        standing.provider.relay.send(&frame(Kind::Fin, 1, &[])).await;
        if honest {
            let mut all = String::new();
            standing.far.read_to_string(&mut all).await.unwrap();
            assert_eq!(all, "half of it");
        } else {
            assert_eq!(is_cut(&mut standing.far).await, Some(Code::Cancelled));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credit_that_the_relay_invents_does_not_fill_the_receiver() {
    let stage = Stage::new().await;
    let mut standing = stage.stream().await;
    let mut invented = Vec::new();
    write_credit(1, 1 << 30, &mut invented);
    standing.opener.relay.send(&invented).await;
    let mut near = standing.near;
    let writing = tokio::spawn(async move { near.write_all(&vec![1; 1 << 20]).await.map(|()| near) });
    // The far end reads nothing; it granted 64 kB.
    let mut passed = 0;
    let code = loop {
        tokio::select! {
            got = standing.opener.relay.frame() => {
                let (kind, _, payload): Got = got.unwrap();
                if kind == Kind::Data {
                    passed += payload.len();
                    standing.provider.relay.send(&frame(Kind::Data, 1, &payload)).await;
                }
            }
            (_, reset) = standing.provider.relay.until(Kind::Reset) => break Reset::decode(&reset).unwrap().code,
        }
    };
    assert_eq!(code, Code::FlowControl);
    assert!(passed >= 65_536);
    writing.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_the_providers_opens_nothing() {
    let stage = Stage::new().await;
    let mut opener = stage.link(&stage.proxy).await;
    let (link, request) = (opener.link.clone(), stage.request());
    let opening = tokio::spawn(async move { link.open(&request).await.map(|_| ()) });
    opener.relay.until(Kind::Open).await;
    let mut forged = Vec::new();
    Opened { window_bytes: 1 << 20, seal: &[9; 80] }.write(1, &mut forged);
    opener.relay.send(&forged).await;
    assert_eq!(opening.await.unwrap().unwrap_err().code(), Some(Code::SealInvalid));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_breaks_the_protocol_or_vanishes_ends_the_link_and_every_wait_on_it() {
    let stage = Stage::new().await;
    let wrong: [&[u8]; 5] = [
        &[0xff, 0xff, 0x12, 0, 0, 0, 0, 1],
        &[0, 0, 0x7f, 0, 0, 0, 0, 0],
        &[0, 0, 0x01, 0, 0, 0, 0, 0],
        &[0, 1, 0x13, 0, 0, 0, 0, 1, 5],
        b"",
    ];
    for bytes in wrong {
        let mut standing = stage.stream().await;
        let (link, request) = (standing.opener.link.clone(), stage.request());
        let opening = tokio::spawn(async move { link.open(&request).await.map(|_| ()) });
        standing.opener.relay.until(Kind::Open).await;
        if bytes.is_empty() {
            drop(standing.opener.relay);
        } else {
            standing.opener.relay.send(bytes).await;
        }
        let ended = tokio::time::timeout(PATIENCE, standing.opener.link.ended()).await.expect("it goes on");
        assert_eq!(matches!(ended, LinkError::Protocol(_)), !bytes.is_empty(), "{ended}");
        let refused = opening.await.unwrap().unwrap_err();
        assert!(matches!(refused, OpenError::Link(_)), "the provider is not at fault: {refused}");
        is_cut(&mut standing.near).await;
        drop(standing.provider);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_in_use_is_not_opened_again() {
    let stage = Stage::new().await;
    let mut standing = stage.stream().await;
    standing.provider.relay.send(&stage.passed(&standing.open, 1, |_| ())).await;
    let ended = tokio::time::timeout(PATIENCE, standing.provider.link.ended()).await.expect("it goes on");
    assert!(matches!(ended, LinkError::Protocol(_)), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_relay_says_before_tls_is_heard_in_pieces_and_kept_short() {
    let network = Network::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let who = network.member(Role::Provider).who();
    let serving = tokio::spawn(async move {
        for text in ["holdfast-wait 00001500\n", "holdfast-wait 99999999\n"] {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            for byte in text.as_bytes() {
                socket.write_all(&[*byte]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    for expected in [1_500, 300_000] {
        let error = Link::connect(&address.to_string(), who.clone(), None).await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_millis(expected)), "{error}");
        assert!(!error.is_final());
    }
    serving.await.unwrap();
}
