//! Clients that do it wrong, slowly, in pieces, or not to the end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use proxy::exits::{ExitError, ExitStream, Exits, Wanted};
use proxy::{Config, Listeners};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use trust::api::Limits;

use crate::support::{Api, SECRET, candidate, connect, echo, rest, soon, start, start_with};
use crate::wire::{answer, basic, greeting, login, request, status, stream, take, works};

#[tokio::test]
async fn a_handshake_that_comes_byte_by_byte_is_the_same() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let socks = [greeting(), login("acme", SECRET), request(1, target), b"ping".to_vec()].concat();
    let mut socket = connect(proxy.address).await;
    socket.set_nodelay(true).unwrap();
    for byte in socks {
        socket.write_all(&[byte]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(take::<14>(&mut socket).await[..6], [5, 2, 1, 0, 5, 0]);
    assert_eq!(&take::<4>(&mut socket).await, b"ping");

    let http = format!("CONNECT {target} HTTP/1.1\r\n{}\r\nping", basic("acme"));
    let mut socket = connect(proxy.address).await;
    socket.set_nodelay(true).unwrap();
    for byte in http.bytes() {
        socket.write_all(&[byte]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(status(&answer(&mut socket).await.0), 200);
    assert_eq!(&take::<4>(&mut socket).await, b"ping");
}

#[tokio::test]
async fn a_slow_loris_is_closed_at_the_deadline() {
    let target = echo().await;
    let proxy = start_with(&[target], |config, _| config.handshake_ms = 700).await;
    for start in [&b""[..], b"\x05", b"\x05\x01\x02", b"GET http://x/ HTTP/1.1\r\nA: "] {
        let mut socket = connect(proxy.address).await;
        socket.write_all(start).await.unwrap();
        let began = Instant::now();
        let slowly = async {
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                if start.len() > 3 && socket.write_all(b"x").await.is_err() {
                    return;
                }
                let mut byte = [0];
                match socket.try_read(&mut byte) {
                    Ok(0) => return,
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(5), slowly).await.expect("it holds its place");
        assert!(began.elapsed() >= Duration::from_millis(500), "{start:?}");
    }
    works(&mut stream(proxy.address, "acme", target).await).await;
}

#[tokio::test]
async fn nonsense_is_closed_without_an_answer_or_with_one_of_its_own() {
    let proxy = start(&[]).await;
    for nonsense in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\x00\x00\x00\x00",
        b"\x05\x01\x02\x01\x00",
        b"\x05\x01\x02\x09",
        &[5; 4_000],
    ] {
        let mut socket = connect(proxy.address).await;
        let _ = socket.write_all(nonsense).await;
        let answer = rest(&mut socket).await;
        assert!(answer.len() <= 4, "{nonsense:?}: {answer:?}");
    }
    let mut socket = connect(proxy.address).await;
    socket.write_all(&[b'G'; 40_000]).await.unwrap();
    assert_eq!(status(&String::from_utf8(rest(&mut socket).await).unwrap()), 431);
}

#[tokio::test]
async fn nobody_works_for_a_client_that_has_left() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let whole = [greeting(), login("acme", SECRET), request(1, target)].concat();
    for length in 0..whole.len() {
        let mut socket = connect(proxy.address).await;
        socket.write_all(&whole[..length]).await.unwrap();
        drop(socket);
    }
    // It leaves while a provider is being asked.
    let hanging = proxy.api.with(|api| api.candidates.iter().map(|candidate| candidate.provider).collect());
    *proxy.providers.hanging.lock().unwrap() = hanging;
    for http in [false, true] {
        let mut socket = connect(proxy.address).await;
        let bytes = if http {
            format!("CONNECT {target} HTTP/1.1\r\n{}\r\n", basic("acme")).into_bytes()
        } else {
            whole.clone()
        };
        socket.write_all(&bytes).await.unwrap();
        let under_way = &proxy.providers.under_way;
        soon("the open", || under_way.load(Ordering::Relaxed) == 1).await;
        let left = Instant::now();
        drop(socket);
        soon("its end", || under_way.load(Ordering::Relaxed) == 0).await;
        assert!(left.elapsed() < Duration::from_secs(1), "a provider was waited for, for nobody");
    }
    proxy.providers.hanging.lock().unwrap().clear();
    works(&mut stream(proxy.address, "acme", target).await).await;
}

#[tokio::test]
async fn the_number_of_connections_is_bounded_and_those_beyond_it_wait() {
    let target = echo().await;
    let proxy = start_with(&[target], |config, _| config.connections = 3).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(stream(proxy.address, "acme", target).await);
    }
    let waiting = tokio::spawn(async move { stream(proxy.address, "acme", target).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    held.pop();
    let served = tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("a place is free");
    works(&mut served.unwrap()).await;
}

#[tokio::test]
async fn those_who_do_not_log_in_take_no_places_of_those_who_do() {
    let target = echo().await;
    let proxy = start_with(&[target], |config, _| config.handshakes_per_address = 5).await;
    let mut inside = Vec::new();
    for _ in 0..20 {
        inside.push(stream(proxy.address, "acme", target).await);
    }
    let mut strangers = Vec::new();
    for _ in 0..5 {
        strangers.push(connect(proxy.address).await);
    }
    let mut beyond = connect(proxy.address).await;
    assert!(rest(&mut beyond).await.is_empty(), "the sixth is closed at once");
    drop(strangers);
    tokio::time::sleep(Duration::from_millis(200)).await;
    works(&mut stream(proxy.address, "acme", target).await).await;
    works(&mut inside[0]).await;
}

/// It asks again and again, and reads no answer: the answers fill what the kernel holds for it.
#[tokio::test]
async fn who_takes_no_answers_does_not_keep_its_place() {
    let target = echo().await;
    let proxy = start_with(&[target], |config, _| config.connections = 1).await;
    let deaf = connect(proxy.address).await;
    let asks = b"GET http://x/ HTTP/1.1\r\n\r\n".repeat(100);
    let (_reads_nothing, mut to_proxy) = deaf.into_split();
    let asking = async { while to_proxy.write_all(&asks).await.is_ok() {} };
    let ended = tokio::time::timeout(Duration::from_secs(60), asking).await;
    assert!(ended.is_ok(), "it is written to for ever");
    works(&mut stream(proxy.address, "acme", target).await).await;
}

/// A hostile exit grants no credit. Who asked through it, and has left, must not keep a place among the connections.
#[tokio::test]
async fn a_provider_that_takes_no_bytes_keeps_nobody_who_has_left() {
    let config = Config { connections: 1, ..start(&[]).await.config };
    let api = Arc::new(Api::default());
    api.with(|state| {
        state.logins.insert("acme".into(), crate::support::login("acme", Limits::default(), ""));
        state.candidates = vec![candidate(1, "DE")];
        state.block_bytes = 1 << 30;
    });
    let listeners = Listeners::bind(&config).await.unwrap();
    let address = listeners.addresses()[0];
    tokio::spawn(proxy::serve(config, listeners, Arc::new(Deaf), api, None, std::future::pending()));
    let mut socket = connect(address).await;
    let ask = format!("GET http://example.org/ HTTP/1.1\r\n{}\r\n", basic("acme"));
    socket.write_all(ask.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(socket);
    let mut next = connect(address).await;
    next.write_all(b"GET http://example.org/ HTTP/1.1\r\nConnection: close\r\n\r\n").await.unwrap();
    let answer = String::from_utf8(rest(&mut next).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
}

/// Exits whose streams take nothing and give nothing.
struct Deaf;

struct DeafStream;

impl Exits for Deaf {
    type Stream = DeafStream;

    async fn open(&self, _: Wanted<'_>) -> Result<DeafStream, ExitError> {
        Ok(DeafStream)
    }

    fn show(&self, _: &client::Contract) {}
}

impl ExitStream for DeafStream {
    fn set_counter(&mut self, _: Arc<dyn client::Counter>) {}

    async fn splice(self, _: TcpStream, _: &[u8], _: Duration) {
        std::future::pending::<()>().await;
    }
}

impl AsyncRead for DeafStream {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for DeafStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
