//! Clients that do it wrong, slowly, in pieces, or not to the end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::support::{SECRET, connect, echo, rest, soon, start, start_with};
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
                    Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return,
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
