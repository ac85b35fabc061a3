//! Where streams may go, through the real path.

use crate::relay_support::echo;
use crate::support::{Home, SOON, allow, code};
use client::Code;
use drill::name_server::{NameServer, Reply};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_to_the_target_and_back_and_is_counted() {
    let home = Home::start().await;
    let target = echo().await;
    let provider = home.provider(&allow(&[target])).await;
    let mut stream = home.open(&provider, &target.to_string()).await.unwrap();
    stream.write_all(&[7; 50_000]).await.unwrap();
    let mut back = vec![0; 50_000];
    stream.read_exact(&mut back).await.unwrap();
    assert!(back.iter().all(|byte| *byte == 7));
    let busy = provider.status().await;
    assert_eq!(busy.streams.now, 1);
    assert!(busy.bytes.today >= 100_000 && busy.bytes.month >= 100_000, "{:?}", busy.bytes);
    assert!(busy.link.relay.is_some() && busy.to_string().contains("connected"), "{busy}");
    assert!(busy.to_string().contains("WARNING"), "the exception is shown: {busy}");
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut back).await.unwrap(), 0);
    let after = provider.until("at rest", |status| status.streams.now == 0).await;
    assert_eq!(after.streams.ended.get("finished"), Some(&1), "{:?}", after.streams);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_opens_is_carried_and_ipv6_targets_are_reached() {
    const STREAMS: usize = 600;
    let home = Home::start().await;
    let target = echo().await;
    let listener = TcpListener::bind("[::1]:0").await.unwrap();
    let six = listener.local_addr().unwrap();
    let provider = home.provider(&allow(&[target, six])).await;
    assert!(home.open(&provider, &six.to_string()).await.is_ok());
    let (name, key) = (provider.client(), provider.seal_key());
    let home = Arc::new(home);
    let opening: Vec<_> = (0..STREAMS)
        .map(|_| {
            let home = Arc::clone(&home);
            tokio::spawn(async move { home.open_at(name, key, &target.to_string()).await })
        })
        .collect();
    let mut streams = Vec::new();
    for opened in opening {
        streams.push(opened.await.unwrap().unwrap());
    }
    for stream in &mut streams {
        stream.write_all(b"x").await.unwrap();
    }
    for stream in &mut streams {
        assert_eq!(timeout(SOON, stream.read_u8()).await.unwrap().unwrap(), b'x');
    }
    drop(streams);
    let status = provider.until("at rest", |status| status.streams.now == 0).await;
    assert_eq!(status.streams.taken, STREAMS as u64 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_notation_of_a_private_target_is_reached() {
    let home = Home::start().await;
    let secret = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = secret.local_addr().unwrap().port();
    let provider = home.provider("[egress]\nports = \"open\"\n").await;
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7F.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "::1",
        "[::1]",
        "::",
        "::ffff:127.0.0.1",
        "[::ffff:7f00:1]",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::1",
        "2001:0:7f00:1::1",
        "fe80::1",
        "fe80::1%lo",
        "[::1%25lo]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "１２７.０.０.１",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "127.0.0.1/",
        "user@127.0.0.1",
        "printer.local",
        "fd00::1",
        "ff02::1",
    ];
    for host in hosts {
        let opened = timeout(SOON, home.open(&provider, &format!("{host}:{port}"))).await.unwrap();
        assert_eq!(code(opened), Code::Policy, "{host:?}");
    }
    for host in ["127.0.0.1\0", ""] {
        let opened = home.open(&provider, &format!("{host}:{port}")).await;
        assert!(matches!(code(opened), Code::Policy | Code::SealInvalid), "{host:?}");
    }
    assert!(timeout(Duration::from_millis(200), secret.accept()).await.is_err(), "somebody came");
    let refused = provider.status().await.streams.refused;
    let all: u64 = refused.values().sum();
    assert!(all >= hosts.len() as u64, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_gains_nothing_by_pointing_inside() {
    let home = Home::start().await;
    let secret = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = secret.local_addr().unwrap().port();
    let dns = NameServer::start(|question| match question.name.as_str() {
        "loopback.test" => Reply::Addresses(vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()], 0),
        "metadata.test" => Reply::Addresses(vec!["169.254.169.254".parse().unwrap()], 0),
        "mapped.test" => Reply::Addresses(vec!["::ffff:10.0.0.1".parse().unwrap()], 0),
        "failing.test" => Reply::Failure,
        _ => Reply::NoSuchName,
    })
    .unwrap();
    let exact = format!("127.0.0.1:{port}");
    // Not even an exception for the very address holds for a name.
    let config = format!(
        "[egress]\nports = \"open\"\nallow_exact = [\"{exact}\"]\n[dns]\nservers = [\"{}\"]\n",
        dns.address()
    );
    let provider = home.provider(&config).await;
    for name in ["loopback.test", "metadata.test", "mapped.test"] {
        assert_eq!(code(home.open(&provider, &format!("{name}:{port}")).await), Code::Policy, "{name}");
    }
    assert_eq!(code(home.open(&provider, "missing.test:443").await), Code::NameNotFound);
    assert_eq!(code(home.open(&provider, "failing.test:443").await), Code::TargetUnreachable);
    assert!(timeout(Duration::from_millis(200), secret.accept()).await.is_err(), "somebody came");
    assert!(home.open(&provider, &exact).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_that_refuse_keep_silent_or_break_off_each_have_their_end() {
    let home = Home::start().await;
    let closed = address_of_nobody().await;
    let (silent, _queue) = unanswering().await;
    let breaking = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let half = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let targets = [closed, silent, breaking.local_addr().unwrap(), half.local_addr().unwrap()];
    let provider = home.provider(&allow(&targets)).await;
    assert_eq!(code(home.open(&provider, &targets[0].to_string()).await), Code::TargetRefused);
    let begun = Instant::now();
    assert_eq!(code(home.open(&provider, &targets[1].to_string()).await), Code::TargetTimeout);
    assert!(begun.elapsed() < Duration::from_secs(6), "within the opener's patience: {:?}", begun.elapsed());

    let mut stream = home.open(&provider, &targets[2].to_string()).await.unwrap();
    let (target, _) = breaking.accept().await.unwrap();
    target.set_zero_linger().unwrap();
    drop(target);
    let broken = timeout(SOON, stream.read_u8()).await.unwrap();
    assert_eq!(broken.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

    // One that says its last word and still listens.
    let mut stream = home.open(&provider, &targets[3].to_string()).await.unwrap();
    let (mut target, _) = half.accept().await.unwrap();
    target.write_all(b"bye").await.unwrap();
    target.shutdown().await.unwrap();
    let mut word = Vec::new();
    timeout(SOON, stream.read_to_end(&mut word)).await.unwrap().unwrap();
    assert_eq!(word, b"bye");
    stream.write_all(b"still here").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut heard = Vec::new();
    timeout(SOON, target.read_to_end(&mut heard)).await.unwrap().unwrap();
    assert_eq!(heard, b"still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_hears_at_once_that_its_opener_has_vanished() {
    let home = Home::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    let provider = home.provider(&allow(&[target])).await;
    let stream = home.open(&provider, &target.to_string()).await.unwrap();
    let (mut accepted, _) = listener.accept().await.unwrap();
    home.link.close();
    let heard = timeout(SOON, accepted.read_u8()).await.expect("the target is left alone");
    assert!(heard.is_err());
    drop(stream);
    provider.until("at rest", |status| status.streams.now == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_scans_is_stopped_and_others_go_on() {
    let home = Home::start().await;
    let target = echo().await;
    let port = address_of_nobody().await.port();
    let mut targets = vec![target];
    targets.extend((1..=31).map(|host| SocketAddr::from(([127, 0, 1, host], port))));
    let provider = home.provider(&allow(&targets)).await;
    let mut standing = home.open(&provider, &target.to_string()).await.unwrap();
    for host in &targets[1..] {
        assert_eq!(code(home.open(&provider, &host.to_string()).await), Code::TargetRefused, "{host}");
    }
    assert_eq!(code(home.open(&provider, &target.to_string()).await), Code::Limit);
    let cut = timeout(SOON, standing.read_u8()).await.expect("the stream of who scans goes on");
    assert!(cut.is_err());
    let status = provider.status().await;
    assert_eq!(status.streams.braked, 1);
    assert!(!serde_json::to_string(&status.streams).unwrap().contains("127.0.1."), "targets are not told");
    // Somebody else, with a contract of their own.
    let other = home.network.member(trust::Role::App);
    let link = home.network.connect(&other).await.unwrap();
    let other = Home { link, contract: home.network.contract(&other, 1 << 30), ..home };
    assert!(other.open(&provider, &target.to_string()).await.is_ok());
}

async fn address_of_nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// A listener whose queue is full: nobody ever answers there.
async fn unanswering() -> (SocketAddr, Vec<TcpStream>) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(Ok(stream)) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        queued.push(stream);
    }
    // It has to stay open, and nobody accepts.
    drop(tokio::spawn(async move { (std::future::pending::<()>().await, listener) }));
    (address, queued)
}
