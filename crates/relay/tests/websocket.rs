//! The same path inside WebSockets (protocol §1), where only HTTP passes.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

#[path = "support.rs"]
mod support;

use client::{HttpProxy, LinkError, Transport, Ways};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use support::{Network, echo};
use tls::{TlsSession, TlsStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use trust::{CertificateRole, Role};

const MB: usize = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn bytes_come_back_whole_where_both_ends_are_behind_websockets() {
    let network = Network::start().await;
    let websocket = Ways::only(Transport::WebSocket);
    let provider = network.provider_by(network.member(Role::Provider), &websocket).await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect_by(&proxy, &websocket).await.unwrap();
    assert_eq!(link.transport(), Transport::WebSocket);
    let contract = network.contract(&proxy, 1 << 30);
    let (stream, _) = link.open(&provider.request(&contract, echo().await)).await.unwrap();
    let (mut read, mut write) = tokio::io::split(stream);
    let data: Vec<u8> = (0..5 * MB).map(|index| (index % 251) as u8).collect();
    let sent = data.clone();
    let writing = tokio::spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    read.read_to_end(&mut received).await.unwrap();
    writing.await.unwrap();
    assert!(received == data);
    network.until(|status| status.streams == 0).await;
    link.close();
    network.until(|status| status.openers == 0).await;
}

/// Takes connections to `to` for as long as what they begin with does not hold `refused`; with `connect`, it is an HTTP proxy that has
/// to be asked with that authorization.
async fn middlebox(to: SocketAddr, refused: &'static [u8], connect: Option<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = vec![0; 4_096];
                if let Some(authorization) = connect {
                    let count = socket.read(&mut head).await.unwrap();
                    let asked = String::from_utf8(head[..count].to_vec()).unwrap();
                    let expected = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
                    if !asked.starts_with(&expected) || !asked.contains(authorization) {
                        socket
                            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                            .await
                            .unwrap();
                        return;
                    }
                    socket.write_all(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n").await.unwrap();
                }
                let count = socket.read(&mut head).await.unwrap();
                if head[..count].windows(refused.len()).any(|part| part == refused) {
                    return;
                }
                let mut there = TcpStream::connect(to).await.unwrap();
                there.write_all(&head[..count]).await.unwrap();
                let _ = copy_bidirectional(&mut socket, &mut there).await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_straight_way_is_cut_the_next_attempt_takes_the_other_and_it_is_remembered() {
    let network = Network::start().await;
    let member = network.member(Role::Proxy);
    let address = middlebox(network.address, link::ALPN, None).await.to_string();
    let ways = Ways::default();
    let connect = || client::Link::connect_by(&address, member.who(), None, Arc::default(), &ways);
    connect().await.unwrap_err();
    for _ in 0..2 {
        let link = connect().await.unwrap();
        assert_eq!(link.transport(), Transport::WebSocket);
        link.close();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_must_be_asked_is_asked_and_what_it_says_is_told() {
    let network = Network::start().await;
    let member = network.member(Role::Proxy);
    let proxy = middlebox(network.address, b"nothing", Some("Proxy-Authorization: Basic bWU6cHc=\r\n")).await;
    let through = |user: &str| {
        let proxy = HttpProxy::new(&format!("http://{user}@{proxy}"), "").unwrap();
        Ways::only(Transport::WebSocket).through(proxy)
    };
    network.connect_by(&member, &through("me:pw")).await.unwrap();
    let refused = network.connect_by(&member, &through("me:wrong")).await.unwrap_err();
    assert_eq!(refused.to_string(), "the HTTP proxy on the way: it answers 407");
}

/// A connection with TLS to the relay, as HTTP has it; and what it exports.
async fn https(network: &Network) -> TlsStream<TcpStream> {
    let mut config = Arc::unwrap_or_clone(
        trust::client_config(network.network(), CertificateRole::Relay, &[b"http/1.1"]).unwrap(),
    );
    config.key_log = tls::exporting();
    let session = TlsSession::connect(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    let socket = TcpStream::connect(network.address).await.unwrap();
    let mut stream = TlsStream::new(socket, session);
    stream.handshake().await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn another_websocket_library_says_hello() {
    use tokio_tungstenite::tungstenite::{Bytes, Message};
    let network = Network::start().await;
    let member = network.member(Role::Proxy);
    let (socket, session, rest) = https(&network).await.into_parts();
    assert!(rest.is_empty());
    let exported = session.export(trust::EXPORTER_LABEL).unwrap();
    let stream = TlsStream::new(socket, session);
    let mut request = format!("ws://{}/v1/link", network.address).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("holdfast-1"));
    let (mut websocket, answer) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], "holdfast-1");
    let proof = trust::Proof::hello(&member.identity, network.network(), 1, &exported);
    let hello = link::message::Hello {
        version: 1,
        role: Role::Proxy,
        token: &member.token,
        identity: member.identity.public().bytes(),
        epoch: 1,
        proof: &proof.0,
        software: "another",
        dial: 0,
    };
    let mut frame = Vec::new();
    hello.write(&mut frame);
    // In three messages, with a ping among them.
    let (first, rest) = frame.split_at(3);
    let (second, third) = rest.split_at(100);
    send(&mut websocket, Message::binary(first.to_vec())).await;
    send(&mut websocket, Message::Ping(Bytes::from_static(b"there?"))).await;
    send(&mut websocket, Message::binary(second.to_vec())).await;
    send(&mut websocket, Message::binary(third.to_vec())).await;
    assert_eq!(next(&mut websocket).await, Message::Pong(Bytes::from_static(b"there?")));
    let Message::Binary(welcome) = next(&mut websocket).await else { panic!("no WELCOME") };
    let frame = link::Frame::parse(&welcome).unwrap().unwrap();
    assert_eq!(link::message::Welcome::decode(frame.payload).unwrap().epoch, 1);
    // And both ways of leaving are understood.
    send(&mut websocket, Message::Close(None)).await;
    assert!(matches!(next(&mut websocket).await, Message::Close(_)));
    network.until(|status| status.openers == 0).await;
}

type Foreign = tokio_tungstenite::WebSocketStream<TlsStream<TcpStream>>;

async fn send(websocket: &mut Foreign, message: tokio_tungstenite::tungstenite::Message) {
    use futures_util::SinkExt;
    websocket.send(message).await.unwrap();
}

async fn next(websocket: &mut Foreign) -> tokio_tungstenite::tungstenite::Message {
    use futures_util::StreamExt;
    let waited = tokio::time::timeout(Duration::from_secs(10), websocket.next()).await;
    waited.expect("the relay says nothing").unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_for_something_else_is_told_so_in_http() {
    let network = Network::start().await;
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 Not Found\r\n"),
        ("GET /v1/link HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 426 Upgrade Required\r\n"),
        ("\u{1}", "HTTP/1.1 400 Bad Request\r\n"),
    ] {
        let mut stream = https(&network).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(expected), "{answer}");
    }
    let failed = network.until(|status| status.handshakes_failed >= 3).await;
    assert_eq!(failed.admitted, 0);
    // A relay's port is spoken to straight as well, of course.
    network.connect(&network.member(Role::Proxy)).await.unwrap();
    let no_proxy = HttpProxy::new("http://127.0.0.1:1", "").unwrap();
    let ways = Ways::only(Transport::WebSocket).through(no_proxy);
    let member = network.member(Role::Proxy);
    let elsewhere = network.connect_by(&member, &ways);
    assert!(matches!(elsewhere.await.unwrap_err(), LinkError::Io { what: "connecting", .. }));
}
