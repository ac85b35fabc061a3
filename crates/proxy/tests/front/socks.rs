//! SOCKS5 as customers speak it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trust::api::{ErrorCode, Limits};

use crate::support::{connect, echo, login as account, nobody, refusal, rest, soon, start, start_with};
use crate::wire::{ask, greeting, logged_in, login, request, request_name, stream, take, works};

#[tokio::test]
async fn bytes_go_there_and_back_and_half_a_close_is_carried() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let mut socket = stream(proxy.address, "acme", target).await;
    works(&mut socket).await;
    let sent: Vec<u8> = (0..1_000_000_u32).map(|byte| byte as u8).collect();
    let (mut from, mut to) = socket.split();
    let mut received = Vec::new();
    let (written, read) = tokio::join!(
        async {
            to.write_all(&sent).await?;
            to.shutdown().await
        },
        from.read_to_end(&mut received)
    );
    written.unwrap();
    read.unwrap();
    assert!(received == sent, "{} of {} bytes came back as they were", received.len(), sent.len());
}

#[tokio::test]
async fn a_name_is_resolved_by_the_provider_and_what_is_sent_early_is_not_lost() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let mut socket = connect(proxy.address).await;
    // Everything at once, before any answer.
    let all =
        [&greeting()[..], &login("acme", crate::support::SECRET), &request(1, target), b"early"].concat();
    socket.write_all(&all).await.unwrap();
    assert_eq!(take::<2>(&mut socket).await, [5, 2]);
    assert_eq!(take::<2>(&mut socket).await, [1, 0]);
    assert_eq!(take::<10>(&mut socket).await[..2], [5, 0]);
    assert_eq!(&take::<5>(&mut socket).await, b"early");
}

#[tokio::test]
async fn each_failure_has_its_own_reply() {
    let target = echo().await;
    let closed = nobody().await;
    let proxy = start_with(&[target, closed], |_, api| {
        api.logins.insert("poor".into(), account("poor", Limits::default(), ""));
    })
    .await;
    let address = proxy.address;
    assert_eq!(ask(address, "acme", &request(1, closed)).await.0, 5, "the target refuses");
    assert_eq!(ask(address, "acme", &request(3, target)).await.0, 7, "UDP");
    assert_eq!(ask(address, "acme", &request(2, target)).await.0, 7, "BIND");
    assert_eq!(ask(address, "acme", &[5, 1, 0, 9, 0, 0, 0, 0, 0, 0]).await.0, 8, "type of address");
    assert_eq!(ask(address, "acme-country-fr", &request(1, target)).await.0, 3, "no such provider");
    proxy.api.with(|api| api.refusal = Some(refusal(ErrorCode::NoGrant, "no grant")));
    assert_eq!(ask(address, "poor", &request(1, target)).await.0, 2, "no grant");
    assert_eq!(ask(address, "acme", &request(1, target)).await.0, 0, "another account has bytes");
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_notation() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    for name in [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "localhost",
        "::1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "fd00::1",
        "fe80::1",
        "64:ff9b::7f00:1",
        "0",
        "db.internal",
        "printer.local",
    ] {
        // The very port that may be reached at its exact address.
        let port = if name == "127.0.0.1" { target.port() ^ 1 } else { target.port() };
        let (code, _) = ask(proxy.address, "acme", &request_name(name, port)).await;
        let exact = ["0x7f.1", "2130706433", "0177.0.0.1", "127.1", "::ffff:127.0.0.1"].contains(&name);
        // Another notation of the exact address is the same address.
        assert_eq!(code, if exact { 0 } else { 2 }, "{name}");
    }
    assert_eq!(ask(proxy.address, "acme", &request_name("example.org", 25)).await.0, 2, "mail");
}

#[tokio::test]
async fn wrong_logins_are_refused_alike_and_guessing_is_slowed_down() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    for (name, password) in [("acme", "wrong"), ("nobody", "x"), ("acme-country-xx", "wrong"), ("ACME", "x")]
    {
        let mut socket = connect(proxy.address).await;
        socket.write_all(&[greeting(), login(name, password)].concat()).await.unwrap();
        assert_eq!(rest(&mut socket).await, [5, 2, 1, 1], "{name}");
    }
    for _ in 0..6 {
        let mut socket = connect(proxy.address).await;
        socket.write_all(&[greeting(), login("acme", "wrong")].concat()).await.unwrap();
        rest(&mut socket).await;
    }
    let mut socket = connect(proxy.address).await;
    socket.write_all(&[greeting(), login("acme", crate::support::SECRET)].concat()).await.unwrap();
    assert_eq!(rest(&mut socket).await, [5, 2, 1, 1], "ten have failed: this address has to wait");
}

#[tokio::test]
async fn a_client_without_a_login_is_told_that_nothing_will_do() {
    let proxy = start(&[]).await;
    let mut socket = connect(proxy.address).await;
    socket.write_all(&[5, 1, 0]).await.unwrap();
    assert_eq!(rest(&mut socket).await, [5, 0xff]);
    let mut socket = connect(proxy.address).await;
    socket.write_all(&[4, 1, 0, 80, 192, 0, 2, 1, 0]).await.unwrap();
    assert_eq!(rest(&mut socket).await[..2], [0, 0x5b], "SOCKS4");
}

#[tokio::test]
async fn on_loopback_a_named_account_may_serve_those_without_a_login() {
    let target = echo().await;
    let proxy = start_with(&[target], |config, _| {
        config.listen[0].no_auth_account = Some("acme".into());
        config.listen[0].selection = "country-at".into();
    })
    .await;
    let mut socket = connect(proxy.address).await;
    socket.write_all(&[&[5, 1, 0][..], &request(1, target)].concat()).await.unwrap();
    assert_eq!(take::<2>(&mut socket).await, [5, 0]);
    assert_eq!(take::<10>(&mut socket).await[..2], [5, 0]);
    works(&mut socket).await;
    assert_eq!(proxy.providers.asked()[0].as_u128(), 3, "the port's selection");
}

#[tokio::test]
async fn limits_of_an_account_hold() {
    let target = echo().await;
    let proxy = start_with(&[target], |config, api| {
        config.targets_per_minute = 2;
        let limits = Limits { streams: 2, ..Limits::default() };
        api.logins.insert("small".into(), account("small", limits, ""));
        let limits = Limits { bytes_per_second: 100_000, ..Limits::default() };
        api.logins.insert("slow".into(), account("slow", limits, ""));
    })
    .await;
    let first = stream(proxy.address, "small", target).await;
    let _second = stream(proxy.address, "small", target).await;
    assert_eq!(ask(proxy.address, "small", &request(1, target)).await.0, 1);
    drop(first);
    soon("the place of the stream that has ended", || true).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let _third = stream(proxy.address, "small", target).await;

    let mut socket = stream(proxy.address, "slow", target).await;
    let began = tokio::time::Instant::now();
    let (mut from, mut to) = socket.split();
    let sent = vec![7; 150_000];
    let mut received = vec![0; sent.len()];
    let (written, read) = tokio::join!(to.write_all(&sent), from.read_exact(&mut received));
    written.unwrap();
    read.unwrap();
    // 300,000 bytes in both directions, a quarter of a second of which is free.
    let took = began.elapsed();
    assert!((Duration::from_millis(1_500)..Duration::from_secs(6)).contains(&took), "{took:?}");

    let mut socket = logged_in(proxy.address, "acme").await;
    socket.write_all(&request_name("a.invalid", 80)).await.unwrap();
    assert_eq!(take::<10>(&mut socket).await[1], 2, "no target counts that is refused");
}
