//! Peers that send without end, or take nothing: what waits in the relay has bounds, and the others go on.
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

use link::message::{Opened, write_credit};
use link::{Code, Kind};
use raw::{Raw, data, frame, open};
use std::time::Duration;
use support::{Member, Network, echo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trust::Role;

/// The room of the relay, a quarter of which one receiver may fill.
const BUFFER_BYTES: usize = 16 << 20;
const SHARE_BYTES: usize = BUFFER_BYTES / 4;
/// What the system's own buffers may take, and frames that were under way.
const SLACK_BYTES: usize = 2 << 20;
const WINDOW: u32 = 1 << 20;

async fn narrow_network() -> Network {
    Network::with(|config| config.buffer_bytes = BUFFER_BYTES).await
}

/// Opens `count` streams; the numbers at the provider.
async fn open_many(
    here: &mut Raw,
    there: &mut Raw,
    provider: &Member,
    contract: &client::Contract,
    count: u32,
) -> Vec<u32> {
    let mut numbers = Vec::new();
    for stream in 1..=count {
        numbers.push(here.open_to(there, provider, contract, stream, WINDOW).await);
    }
    numbers
}

/// A stream of well-behaved ends carries bytes both ways.
async fn others_go_on(network: &Network) {
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let target = echo().await;
    let (stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    let (mut read, mut write) = tokio::io::split(stream);
    let writing = tokio::spawn(async move { write.write_all(&vec![3; 3_000_000]).await.map(|()| write) });
    let mut back = vec![0; 3_000_000];
    tokio::time::timeout(Duration::from_secs(30), read.read_exact(&mut back))
        .await
        .expect("stalled")
        .unwrap();
    writing.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opener_that_never_reads_fills_its_share_and_then_loses_its_streams() {
    let network = narrow_network().await;
    let (provider, proxy) = (network.member(Role::Provider), network.member(Role::Proxy));
    let mut there = Raw::join(&network, &provider).await;
    let mut here = Raw::join_narrow(&network, &proxy).await;
    let contract = network.contract(&proxy, 1 << 40);
    here.show(&contract).await;
    let numbers = open_many(&mut here, &mut there, &provider, &contract, 40).await;
    // Forty windows of a megabyte, and not a byte is taken.
    let mut most = 0;
    let mut was_cut = false;
    for _ in 0..60 {
        for &number in &numbers {
            there.send(&data(number, 16_376)).await;
            most = most.max(network.status.borrow().queued_bytes);
        }
        if !there.is_silent(Duration::from_millis(1)).await {
            was_cut = true;
            break;
        }
    }
    assert!(was_cut, "nothing is cut, {most} bytes wait");
    let waits = network.until(|status| status.refused.contains_key("stalled")).await.queued_bytes;
    assert!(waits <= SHARE_BYTES + SLACK_BYTES && most <= SHARE_BYTES + SLACK_BYTES, "{waits} {most}");
    others_go_on(&network).await;
    drop(here);
    network.until(|status| status.queued_bytes == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_never_read_make_the_relay_refuse_opens_and_stay_within_its_room() {
    let network = narrow_network().await;
    let provider = network.member(Role::Provider);
    let mut there = Raw::join(&network, &provider).await;
    let mut stalled = Vec::new();
    let mut numbers = Vec::new();
    for _ in 0..6 {
        let proxy = network.member(Role::Proxy);
        let mut here = Raw::join_narrow(&network, &proxy).await;
        let contract = network.contract(&proxy, 1 << 40);
        here.show(&contract).await;
        numbers.extend(open_many(&mut here, &mut there, &provider, &contract, 12).await);
        stalled.push(here);
    }
    let (mut reader, mut writer) = (0, 0);
    for _ in 0..62 {
        for &number in &numbers {
            there.send(&data(number, 16_376)).await;
            writer += 1;
        }
        reader = reader.max(network.status.borrow().queued_bytes);
    }
    assert_eq!(writer, 62 * 72);
    let status = network.until(|status| status.queued_bytes > BUFFER_BYTES * 9 / 10).await;
    assert!(
        status.queued_bytes.max(reader) <= BUFFER_BYTES + SLACK_BYTES,
        "{reader} {}",
        status.queued_bytes
    );
    // Somebody new is told to come later, and is served once there is room.
    let proxy = network.member(Role::Proxy);
    let mut here = Raw::join(&network, &proxy).await;
    let contract = network.contract(&proxy, 1 << 20);
    here.show(&contract).await;
    here.send(&open(&provider, &contract, 1, WINDOW)).await;
    assert_eq!(here.stream_ended(1).await, Code::Busy);
    drop(stalled);
    network.until(|status| status.queued_bytes < BUFFER_BYTES / 2).await;
    here.open_to(&mut there, &provider, &contract, 2, WINDOW).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_without_end_and_hears_nothing_is_closed() {
    let network = narrow_network().await;
    let provider = network.member(Role::Provider);
    for question in [frame(Kind::Ping, 0, &[7; 8]), Vec::new()] {
        let proxy = network.member(Role::Proxy);
        let mut here = Raw::join_narrow(&network, &proxy).await;
        let contract = network.contract(&proxy, 1 << 20);
        let mut stream = 0;
        let mut most = 0;
        let mut sent = 0_usize;
        let closed = loop {
            let mut flood = Vec::with_capacity(1 << 20);
            while flood.len() < 100_000 {
                if question.is_empty() {
                    // Nobody has such a contract.
                    stream += 1;
                    flood.extend_from_slice(&open(&provider, &contract, stream, WINDOW));
                } else {
                    flood.extend_from_slice(&question);
                }
            }
            sent += flood.len();
            most = most.max(network.status.borrow().queued_bytes);
            if here.try_send(&flood).await.is_err() {
                break true;
            }
            if sent > 400 << 20 {
                break false;
            }
        };
        assert!(closed, "{sent} bytes of questions were taken, {most} bytes of answers wait");
        assert!(most <= SHARE_BYTES + SLACK_BYTES, "{most}");
        network.until(|status| status.openers == 0 && status.queued_bytes == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_and_opens_for_a_provider_that_takes_nothing_are_bounded_and_add_up() {
    let network = narrow_network().await;
    let (provider, proxy) = (network.member(Role::Provider), network.member(Role::Proxy));
    let mut there = Raw::join_narrow(&network, &provider).await;
    let mut here = Raw::join(&network, &proxy).await;
    let contract = network.contract(&proxy, 1 << 30);
    here.show(&contract).await;
    let number = here.open_to(&mut there, &provider, &contract, 1, 0).await;
    // A million grants of one byte, while it reads nothing.
    let mut flood = Vec::new();
    for _ in 0..10_000 {
        write_credit(1, 1, &mut flood);
    }
    let mut most = 0;
    for _ in 0..100 {
        here.send(&flood).await;
        most = most.max(network.status.borrow().queued_bytes);
    }
    here.send(&frame(Kind::Ping, 0, &[1; 8])).await;
    here.until(Kind::Pong).await;
    assert!(most <= SLACK_BYTES, "{most}");
    // Now it reads, and has been granted every one of them.
    let mut granted = 0_u64;
    while granted < 1_000_000 {
        let (on, payload) = there.until(Kind::Credit).await;
        assert_eq!(on, number);
        granted += u64::from(link::message::decode_credit(&payload).unwrap());
    }
    assert_eq!(granted, 1_000_000);
    there.send(&data(number, 16_000)).await;
    assert_eq!(here.until(Kind::Data).await.0, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_for_a_provider_that_takes_nothing_are_refused_before_they_pile_up() {
    let network = Network::with(|config| {
        config.buffer_bytes = 64 << 20;
        config.streams_per_provider = 1_000_000;
        config.streams_per_opener = 1_000_000;
    })
    .await;
    let (provider, proxy) = (network.member(Role::Provider), network.member(Role::Proxy));
    let there = Raw::join_narrow(&network, &provider).await;
    let mut here = Raw::join(&network, &proxy).await;
    let contract = network.contract(&proxy, 1 << 30);
    here.show(&contract).await;
    let mut stream = 0;
    let refused = loop {
        let mut flood = Vec::new();
        for _ in 0..1_000 {
            stream += 1;
            flood.extend_from_slice(&open(&provider, &contract, stream, WINDOW));
        }
        here.send(&flood).await;
        if !here.is_silent(Duration::from_millis(5)).await {
            break stream;
        }
        assert!(stream < 300_000, "so many opens were put into its queue");
    };
    let status = network.until(|status| status.refused.contains_key("busy")).await;
    assert!(status.queued_bytes < 10 << 20, "{} after {refused} opens", status.queued_bytes);
    drop(there);
    network.until(|status| status.streams == 0).await;
    let mut opened = Vec::new();
    Opened { window_bytes: 1, seal: &[2; 64] }.write(1, &mut opened);
    here.send(&open(&provider, &contract, stream + 1, WINDOW)).await;
    loop {
        if here.stream_ended(stream + 1).await == Code::ProviderGone {
            return;
        }
    }
}
