//! Who comes in, who does not, and what it costs to try.
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

use clock::unix_ms;
use link::{Code, Kind};
use raw::{PATIENCE, Raw, frame, hello};
use std::time::Duration;
use support::{Network, next_epoch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use trust::{EXPORTER_LABEL, Proof, Role, TokenKey};

/// How a hello is answered: `Ok` for WELCOME.
async fn answer(raw: &mut Raw, hello: &[u8]) -> Result<(), Option<Code>> {
    raw.send(hello).await;
    match raw.frame().await {
        Some((Kind::Welcome, ..)) => Ok(()),
        Some((Kind::Refuse, 0, payload)) => Err(Some(link::message::Refuse::decode(&payload).unwrap().code)),
        Some(other) => panic!("{other:?}"),
        None => Err(None),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_holds_for_one_connection_one_key_one_role_and_one_network() {
    let network = Network::start().await;
    let member = network.member(Role::Provider);
    let mut first = Raw::dial(&network).await;
    let overheard = first.hello(&member, next_epoch());
    assert_eq!(answer(&mut first, &overheard).await, Ok(()));
    let mut second = Raw::dial(&network).await;
    assert_eq!(answer(&mut second, &overheard).await, Err(Some(Code::ProofInvalid)), "a replayed hello");

    // The token is stolen, the key is not: with the thief's key, and with the owner's public one.
    let thief = network.member(Role::Provider);
    let mut raw = Raw::dial(&network).await;
    let exported = raw.tls.export(EXPORTER_LABEL).unwrap();
    let epoch = next_epoch();
    let proof = Proof::hello(&thief.identity, network.network(), epoch, &exported);
    let mut claiming = thief.clone();
    claiming.token.clone_from(&member.token);
    assert_eq!(answer(&mut raw, &hello(&claiming, epoch, &proof)).await, Err(Some(Code::TokenInvalid)));
    let mut raw = Raw::dial(&network).await;
    let exported = raw.tls.export(EXPORTER_LABEL).unwrap();
    let proof = Proof::hello(&thief.identity, network.network(), epoch, &exported);
    assert_eq!(answer(&mut raw, &hello(&member, epoch, &proof)).await, Err(Some(Code::ProofInvalid)));

    // As what it is not.
    let mut other = member.clone();
    other.role = Role::Proxy;
    let mut raw = Raw::dial(&network).await;
    let said = raw.hello(&other, next_epoch());
    assert_eq!(answer(&mut raw, &said).await, Err(Some(Code::TokenInvalid)));

    // Of another network, which signs with a key of its own, or has its name in a token of this one's key.
    let elsewhere = Network::start().await;
    let stranger = elsewhere.member(Role::Provider);
    let mut raw = Raw::dial(&network).await;
    let said = raw.hello(&stranger, next_epoch());
    let refused = answer(&mut raw, &said).await;
    assert!(matches!(refused, Err(Some(Code::TokenInvalid | Code::Busy))), "{refused:?}");
    let stranger = network.member_with(Role::Provider, |claims| claims.network = elsewhere.network());
    let mut raw = Raw::dial(&network).await;
    let said = raw.hello(&stranger, next_epoch());
    assert_eq!(answer(&mut raw, &said).await, Err(Some(Code::TokenInvalid)));

    // The first one is not disturbed by any of it.
    assert!(first.is_silent(Duration::from_millis(100)).await);
    assert_eq!(network.status.borrow().providers, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_over_old_states_and_unknown_keys_are_told_apart() {
    let network = Network::start().await;
    let now_s = unix_ms() / 1_000;
    let expired = network.member_with(Role::Provider, |claims| {
        (claims.issued_at_s, claims.expires_at_s) = (now_s - 7_200, now_s - 3_600);
    });
    let mut raw = Raw::dial(&network).await;
    let said = raw.hello(&expired, next_epoch());
    assert_eq!(answer(&mut raw, &said).await, Err(Some(Code::TokenExpired)));

    let old = network.member_with(Role::Provider, |claims| claims.epoch = 1_000_000);
    let mut raw = Raw::dial(&network).await;
    let said = raw.hello(&old, 999_999);
    assert_eq!(answer(&mut raw, &said).await, Err(Some(Code::Superseded)), "a copy of an old state folder");

    // A key that is new and has not come here yet: looked for, and not final.
    let mut member = network.member(Role::Provider);
    member.token = member.claims.sign(&TokenKey::generate().unwrap()).unwrap();
    let mut raw = Raw::dial(&network).await;
    let said = raw.hello(&member, next_epoch());
    assert_eq!(answer(&mut raw, &said).await, Err(Some(Code::Busy)));
    tokio::time::timeout(PATIENCE, network.unknown_key.notified()).await.expect("the keys are read again");

    let revoked = network.member(Role::Provider);
    network.revoke(&revoked);
    let mut raw = Raw::dial(&network).await;
    let said = raw.hello(&revoked, next_epoch());
    assert_eq!(answer(&mut raw, &said).await, Err(Some(Code::Revoked)));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_revoked_while_connected_is_ended_with_its_cause_and_its_streams_with_it() {
    let network = Network::start().await;
    let (provider, proxy, other) =
        (network.member(Role::Provider), network.member(Role::Proxy), network.member(Role::Provider));
    let mut there = Raw::join(&network, &provider).await;
    let mut bystander = Raw::join(&network, &other).await;
    let mut here = Raw::join(&network, &proxy).await;
    let contract = network.contract(&proxy, 1 << 20);
    here.show(&contract).await;
    here.open_to(&mut there, &provider, &contract, 1, 65_536).await;
    let began = Instant::now();
    network.revoke(&provider);
    assert_eq!(there.ended().await, Some(Code::Revoked));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(here.stream_ended(1).await, Code::ProviderGone);
    assert!(bystander.is_silent(Duration::from_millis(100)).await);
    network.until(|status| status.providers == 1 && status.streams == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_start_wins_whichever_comes_first() {
    let network = Network::start().await;
    let member = network.member(Role::Provider);
    let mut old = Raw::dial(&network).await;
    let mut new = Raw::dial(&network).await;
    let (older, newer) = (old.hello(&member, 1_000), new.hello(&member, 2_000));
    assert_eq!(answer(&mut old, &older).await, Ok(()));
    assert_eq!(answer(&mut new, &newer).await, Ok(()));
    assert_eq!(old.ended().await, Some(Code::Superseded));
    // The loser does not get back in; the same start does: its old connection is half-open.
    let mut old = Raw::dial(&network).await;
    let older = old.hello(&member, 1_000);
    assert_eq!(answer(&mut old, &older).await, Err(Some(Code::Superseded)));
    let mut again = Raw::dial(&network).await;
    let newer = again.hello(&member, 2_000);
    assert_eq!(answer(&mut again, &newer).await, Ok(()));
    assert_eq!(new.ended().await, Some(Code::Superseded));
    network.until(|status| status.providers == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_starts_at_once_leave_the_newer_one_however_they_interleave() {
    let network = Network::start().await;
    for _ in 0..20 {
        let member = network.member(Role::Provider);
        let (mut old, mut new) = tokio::join!(Raw::dial(&network), Raw::dial(&network));
        let (older, newer) = (old.hello(&member, 1_000), new.hello(&member, 2_000));
        tokio::join!(old.send(&older), new.send(&newer));
        assert_eq!(old.ended().await, Some(Code::Superseded));
        assert_eq!(new.until(Kind::Welcome).await.0, 0);
        assert!(new.is_silent(Duration::from_millis(30)).await);
    }
    network.until(|status| status.providers == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_peer_is_given_up_and_one_that_comes_again_does_not_wait_for_it() {
    let network = Network::with(|config| (config.ping_interval_ms, config.ping_misses) = (200, 2)).await;
    let member = network.member(Role::Provider);
    let began = Instant::now();
    let mut silent = Raw::join(&network, &member).await;
    // It answers no PING.
    assert_eq!(silent.ended().await, None);
    assert!(began.elapsed() > Duration::from_millis(400), "{:?}", began.elapsed());
    network.until(|status| status.providers == 0).await;

    let half_open = Raw::join(&network, &member).await;
    let _again = Raw::join(&network, &member).await;
    network.until(|status| status.providers == 1).await;
    drop(half_open);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_slow_in_tls_or_with_its_hello_is_closed_in_time_and_keeps_nobody_out() {
    let network = Network::start().await;
    let began = Instant::now();
    let mut mute = TcpStream::connect(network.address).await.unwrap();
    let mut slow = TcpStream::connect(network.address).await.unwrap();
    let mut late = Raw::dial(&network).await;
    let member = network.member(Role::Provider);
    let said = late.hello(&member, next_epoch());
    let mut loris = Raw::dial(&network).await;
    let other = network.member(Role::Provider);
    let others = loris.hello(&other, next_epoch());
    let trickle = tokio::spawn(async move {
        // A byte at a time, of a record that never ends, and of a hello that would take minutes.
        let mut header = vec![22, 3, 1, 16, 0];
        header.resize(4_000, 1);
        for (byte, said) in header.iter().zip(others.iter().cycle()) {
            let _ = slow.write_all(&[*byte]).await;
            let _ = loris.try_send(&[*said]).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            let mut buffer = [0; 64];
            if matches!(slow.try_read(&mut buffer), Ok(0))
                && matches!(loris.socket.try_read(&mut buffer), Ok(0))
            {
                return;
            }
        }
    });
    // Somebody honest comes in meanwhile.
    Raw::join(&network, &network.member(Role::Provider)).await;
    let mut buffer = [0; 64];
    let end = tokio::time::timeout(PATIENCE, mute.read(&mut buffer)).await.expect("it is held for ever");
    assert!(matches!(end, Ok(0) | Err(_)));
    assert!(began.elapsed() > Duration::from_secs(4));
    assert_eq!(late.frame().await, None);
    // Too late.
    let _ = late.try_send(&said).await;
    tokio::time::timeout(PATIENCE, trickle).await.expect("a byte at a time holds it for ever").unwrap();
    let status = network.until(|status| status.handshakes_failed >= 4 && status.providers == 0).await;
    assert_eq!(status.admitted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_hello_ends_the_connection_and_takes_no_room() {
    let network = Network::start().await;
    let member = network.member(Role::Provider);
    let too_long = [0xff, 0xff, 1, 0, 0, 0, 0, 0];
    let unknown = [0, 0, 0x7f, 0, 0, 0, 0, 0];
    let skipped: Vec<u8> = [0_u8, 0, 0x90, 0, 0, 0, 0, 0].repeat(10);
    for first in [
        too_long.to_vec(),
        unknown.to_vec(),
        skipped,
        frame(Kind::Ping, 0, &[0; 8]),
        frame(Kind::Open, 1, &[]),
        frame(Kind::Hello, 1, &[]),
        vec![0; 20_000],
    ] {
        let mut raw = Raw::dial(&network).await;
        // The relay may have closed while the rest is sent.
        let _ = raw.try_send(&first).await;
        assert_eq!(raw.ended().await, None, "{:?}", &first[..8]);
    }
    // A hello that is one, and does not hold together.
    let mut raw = Raw::dial(&network).await;
    let mut said = raw.hello(&member, 1);
    said.truncate(40);
    said[0] = 0;
    said[1] = 32;
    assert_eq!(answer(&mut raw, &said).await, Err(Some(Code::ProtocolError)));
    // Plain text where TLS should be.
    let mut plain = TcpStream::connect(network.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut all = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, plain.read_to_end(&mut all)).await.expect("it is held");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_come_a_byte_at_a_time_are_whole_frames() {
    let network = Network::start().await;
    let provider = network.member(Role::Provider);
    let proxy = network.member(Role::Proxy);
    let mut there = Raw::join(&network, &provider).await;
    let mut here = Raw::dial(&network).await;
    for byte in here.hello(&proxy, next_epoch()) {
        here.send(&[byte]).await;
    }
    assert_eq!(here.frame().await.unwrap().0, Kind::Welcome);
    let contract = network.contract(&proxy, 1 << 20);
    let mut all = Vec::new();
    link::message::Contract { text: &contract.text, follows: None }.write(&mut all);
    all.extend_from_slice(&raw::open(&provider, &contract, 1, 1 << 20));
    // Of a kind that may be skipped, on the way.
    all.extend_from_slice(&[0, 3, 0x85, 0xff, 0, 0, 0, 9, 1, 2, 3]);
    all.extend_from_slice(&frame(Kind::Ping, 0, b"12345678"));
    for byte in all {
        here.send(&[byte]).await;
    }
    let (number, _) = there.until(Kind::Open).await;
    assert_eq!(here.until(Kind::Pong).await, (0, b"12345678".to_vec()));
    let mut opened = Vec::new();
    link::message::Opened { window_bytes: 1 << 20, seal: &[2; 64] }.write(number, &mut opened);
    there.send(&opened).await;
    here.until(Kind::Opened).await;
    let sent = raw::data(1, 500);
    for cut in 1..sent.len() {
        here.send(&sent[..cut]).await;
        here.send(&sent[cut..]).await;
    }
    for _ in 1..sent.len() {
        let (stream, payload) = there.until(Kind::Data).await;
        assert_eq!((stream, payload.len()), (number, 500));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connected_client_that_breaks_the_protocol_is_told_so_and_closed() {
    let network = Network::start().await;
    for role in [Role::Provider, Role::Proxy] {
        for wrong in [
            vec![0xff, 0xff, 0x12, 0, 0, 0, 0, 1],
            vec![0, 0, 0x7f, 0, 0, 0, 0, 0],
            frame(Kind::Hello, 0, &[]),
            frame(Kind::Welcome, 0, &[]),
            frame(Kind::Drain, 0, &[]),
            frame(Kind::Moved, 1, &[]),
            frame(Kind::Credit, 1, &[1, 2, 3]),
            frame(Kind::Reset, 1, &[1, 0, 9, 1]),
            frame(if role == Role::Provider { Kind::Open } else { Kind::Opened }, 1, &[]),
        ] {
            let mut raw = Raw::join(&network, &network.member(role)).await;
            raw.send(&wrong).await;
            assert_eq!(raw.ended().await, Some(Code::ProtocolError), "{role:?} {wrong:?}");
        }
    }
    network.until(|status| status.providers + status.openers == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_clients_are_held_up_to_a_bound_and_let_go_in_time() {
    let network = Network::with(|config| config.hold_refused_ms = 1_500).await;
    let member = network.member(Role::Provider);
    network.revoke(&member);
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut raw = Raw::dial(&network).await;
        let said = raw.hello(&member, next_epoch());
        assert_eq!(answer(&mut raw, &said).await, Err(Some(Code::Revoked)));
        held.push(raw);
    }
    network.until(|status| status.held == 5).await;
    // One that leaves is let go at once.
    drop(held.pop());
    network.until(|status| status.held == 4).await;
    let began = Instant::now();
    for mut raw in held {
        assert_eq!(raw.frame().await, None, "nothing more is said");
    }
    assert!(began.elapsed() < Duration::from_secs(10));
    network.until(|status| status.held == 0).await;
}
