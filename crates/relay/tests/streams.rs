//! Peers that break the rules of streams, and what the others notice of it.
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

use link::message::{Opened, Refuse, Reset, decode_credit, write_credit};
use link::{Code, Kind};
use raw::{Raw, data, frame, open};
use std::time::Duration;
use support::{Member, Network};
use tokio::time::Instant;
use trust::Role;

const WINDOW: u32 = 65_536;

/// A relay, a raw provider and a raw opener.
struct Ends {
    network: Network,
    provider: Member,
    there: Raw,
    proxy: Member,
    here: Raw,
}

impl Ends {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(adapt: impl FnOnce(&mut relay::Config)) -> Self {
        let network = Network::with(adapt).await;
        let (provider, proxy) = (network.member(Role::Provider), network.member(Role::Proxy));
        let there = Raw::join(&network, &provider).await;
        let here = Raw::join(&network, &proxy).await;
        Self { network, provider, there, proxy, here }
    }

    /// A contract that was shown.
    async fn contract(&mut self, bytes: u64) -> client::Contract {
        let contract = self.network.contract(&self.proxy, bytes);
        self.here.show(&contract).await;
        contract
    }

    async fn open(&mut self, contract: &client::Contract, stream: u32) -> u32 {
        self.here.open_to(&mut self.there, &self.provider, contract, stream, WINDOW).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_is_billed_both_ways_with_its_tags_and_nothing_else_is() {
    let mut ends = Ends::new().await;
    let contract = ends.contract(1 << 20).await;
    let number = ends.open(&contract, 1).await;
    let sizes = [17, 100, 16_376, 4_096, 4_095, 333];
    let mut all = Vec::new();
    let mut back = Vec::new();
    for size in sizes {
        all.extend_from_slice(&data(1, size));
        back.extend_from_slice(&data(number, size + 1 - usize::from(size == 16_376)));
    }
    // The sealed end and FIN cost nothing.
    for (sent, stream) in [(&mut all, 1), (&mut back, number)] {
        sent.extend_from_slice(&data(stream, 16));
        sent.extend_from_slice(&frame(Kind::Fin, stream, &[]));
    }
    // What belongs to no stream, or comes too late, is not billed either.
    all.extend_from_slice(&data(77, 1_000));
    ends.here.send(&all).await;
    ends.there.until(Kind::Fin).await;
    ends.there.send(&back).await;
    ends.here.until(Kind::Fin).await;
    ends.here.send(&data(1, 1_000)).await;
    let there: usize = sizes.iter().sum();
    let expected = (2 * there + sizes.len() - 1) as u64;
    let status = ends.network.until(|status| status.streams == 0 && status.bytes > 0).await;
    assert_eq!(status.bytes, expected + 2 * 16);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(ends.network.written.billed(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_used_to_its_last_byte_and_the_next_frame_is_neither_carried_nor_billed() {
    let mut ends = Ends::new().await;
    let contract = ends.contract(1_000).await;
    let number = ends.open(&contract, 1).await;
    // Shown again, it is no fuller.
    ends.here.show(&contract).await;
    ends.here.send(&data(1, 400)).await;
    ends.there.send(&data(number, 600)).await;
    ends.here.until(Kind::Data).await;
    ends.here.send(&data(1, 17)).await;
    assert_eq!(ends.here.stream_ended(1).await, Code::ContractSpent);
    assert_eq!(ends.there.stream_ended(number).await, Code::ContractSpent);
    ends.here.show(&contract).await;
    ends.here.send(&open(&ends.provider, &contract, 2, WINDOW)).await;
    assert_eq!(ends.here.stream_ended(2).await, Code::ContractSpent);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(ends.network.written.billed(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_of_others_of_yesterday_and_of_nobody_pay_for_nothing() {
    let mut ends = Ends::new().await;
    let other = ends.network.member(Role::Proxy);
    let stolen = ends.network.contract(&other, 1 << 20);
    ends.here.show(&stolen).await;
    ends.here.send(&open(&ends.provider, &stolen, 1, WINDOW)).await;
    assert_eq!(ends.here.stream_ended(1).await, Code::ContractInvalid);

    let elsewhere = Network::start().await;
    let foreign = elsewhere.contract(&ends.proxy, 1 << 20);
    ends.here.show(&foreign).await;
    ends.here.send(&open(&ends.provider, &foreign, 2, WINDOW)).await;
    assert_eq!(ends.here.stream_ended(2).await, Code::ContractInvalid);

    let mut forged = ends.network.contract(&ends.proxy, 1);
    let mut text = forged.text.to_string();
    let middle = text.len() / 2;
    let changed = if text.as_bytes()[middle] == b'A' { "B" } else { "A" };
    text.replace_range(middle..=middle, changed);
    forged.text = text.into();
    ends.here.show(&forged).await;
    ends.here.send(&open(&ends.provider, &forged, 3, WINDOW)).await;
    assert_eq!(ends.here.stream_ended(3).await, Code::ContractInvalid);

    // One that runs out of time while its stream runs.
    let short = ends.network.contract_for(&ends.proxy, 1 << 20, 2);
    ends.here.show(&short).await;
    let number = ends.open(&short, 4).await;
    ends.here.send(&data(4, 100)).await;
    ends.there.until(Kind::Data).await;
    tokio::time::sleep(Duration::from_millis(3_100)).await;
    ends.here.send(&data(4, 100)).await;
    assert_eq!(ends.here.stream_ended(4).await, Code::ContractSpent);
    assert_eq!(ends.there.stream_ended(number).await, Code::ContractSpent);
    assert_eq!(ends.network.until(|status| status.streams == 0).await.bytes, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_more_than_was_granted_is_reset_and_the_connection_goes_on() {
    let mut ends = Ends::new().await;
    let contract = ends.contract(1 << 30).await;
    let number = ends.open(&contract, 1).await;
    for _ in 0..4 {
        ends.here.send(&data(1, 16_376)).await;
    }
    ends.here.send(&data(1, 33)).await;
    assert_eq!(ends.here.stream_ended(1).await, Code::FlowControl);
    assert_eq!(ends.there.stream_ended(number).await, Code::FlowControl);
    // The same from the provider; and exactly what was granted is fine.
    let number = ends.open(&contract, 2).await;
    let mut exactly = Vec::new();
    for _ in 0..4 {
        exactly.extend_from_slice(&data(number, 16_376));
    }
    exactly.extend_from_slice(&data(number, 32));
    ends.there.send(&exactly).await;
    for _ in 0..5 {
        assert_eq!(ends.here.until(Kind::Data).await.0, 2);
    }
    // Granted again, and one byte too many.
    let mut more = Vec::new();
    write_credit(2, 100, &mut more);
    ends.here.send(&more).await;
    assert_eq!(decode_credit(&ends.there.until(Kind::Credit).await.1).unwrap(), 100);
    ends.there.send(&data(number, 101)).await;
    assert_eq!(ends.there.stream_ended(number).await, Code::FlowControl);
    assert_eq!(ends.here.stream_ended(2).await, Code::FlowControl);
    ends.open(&contract, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_before_the_answer_or_behind_the_end_is_the_senders_fault() {
    let mut ends = Ends::new().await;
    let contract = ends.contract(1 << 30).await;
    // DATA and FIN before OPENED.
    for (stream, early) in [(1, data(1, 100)), (2, frame(Kind::Fin, 2, &[]))] {
        ends.here.send(&open(&ends.provider, &contract, stream, WINDOW)).await;
        let (number, _) = ends.there.until(Kind::Open).await;
        ends.here.send(&early).await;
        assert_eq!(ends.here.stream_ended(stream).await, Code::ProtocolError);
        assert_eq!(ends.there.stream_ended(number).await, Code::ProtocolError);
    }
    // From the provider.
    ends.here.send(&open(&ends.provider, &contract, 3, WINDOW)).await;
    let (number, _) = ends.there.until(Kind::Open).await;
    ends.there.send(&data(number, 100)).await;
    assert_eq!(ends.here.stream_ended(3).await, Code::ProtocolError);
    // Behind the sealed end, behind FIN with and without it, a second FIN, and less than a tag.
    type Frames = fn(u32) -> Vec<Vec<u8>>;
    let wrong: [Frames; 5] = [
        |on| vec![data(on, 16), data(on, 100)],
        |on| vec![data(on, 16), frame(Kind::Fin, on, &[]), data(on, 100)],
        |on| vec![frame(Kind::Fin, on, &[]), data(on, 100)],
        |on| vec![frame(Kind::Fin, on, &[]), frame(Kind::Fin, on, &[])],
        |on| vec![data(on, 15)],
    ];
    for (stream, wrong) in (4..).zip(wrong) {
        let number = ends.open(&contract, stream).await;
        for part in wrong(stream) {
            ends.here.send(&part).await;
        }
        assert_eq!(ends.here.stream_ended(stream).await, Code::ProtocolError, "{stream}");
        assert_eq!(ends.there.stream_ended(number).await, Code::ProtocolError, "{stream}");
    }
    assert_eq!(ends.network.until(|status| status.streams == 0).await.bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_comes_again_ends_the_connection() {
    for second in [7, 6, 1] {
        let mut ends = Ends::new().await;
        let contract = ends.contract(1 << 20).await;
        let number = ends.open(&contract, 7).await;
        ends.here.send(&open(&ends.provider, &contract, second, WINDOW)).await;
        assert_eq!(ends.here.ended().await, Some(Code::ProtocolError));
        assert_eq!(ends.there.stream_ended(number).await, Code::Cancelled);
        ends.network.until(|status| status.streams == 0 && status.openers == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_beyond_the_limits_are_refused_and_room_that_is_free_again_is_given() {
    let mut ends =
        Ends::with(|config| (config.streams_per_opener, config.streams_per_provider) = (8, 5)).await;
    let contract = ends.contract(1 << 20).await;
    let mut numbers = Vec::new();
    for stream in 1..=5 {
        numbers.push(ends.open(&contract, stream).await);
    }
    let mut flood = Vec::new();
    for stream in 6..2_000 {
        flood.extend_from_slice(&open(&ends.provider, &contract, stream, WINDOW));
    }
    ends.here.send(&flood).await;
    for stream in 6..2_000 {
        assert_eq!(ends.here.stream_ended(stream).await, Code::TooManyStreams);
    }
    // Another provider has room: up to the opener's own limit.
    let second = ends.network.member(Role::Provider);
    let mut other = Raw::join(&ends.network, &second).await;
    for stream in 2_000..2_003 {
        ends.here.open_to(&mut other, &second, &contract, stream, WINDOW).await;
    }
    ends.here.send(&open(&second, &contract, 2_003, WINDOW)).await;
    assert_eq!(ends.here.stream_ended(2_003).await, Code::TooManyStreams);
    let mut reset = Vec::new();
    Reset::because(Code::Cancelled).write(1, &mut reset);
    ends.here.send(&reset).await;
    assert_eq!(ends.there.stream_ended(numbers[0]).await, Code::Cancelled);
    ends.open(&contract, 2_004).await;
    assert_eq!(ends.network.until(|status| status.streams == 8).await.streams, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_never_answers_costs_its_deadline_and_both_sides_are_cleaned() {
    let mut ends = Ends::new().await;
    let contract = ends.contract(1 << 20).await;
    let mut asked = Vec::new();
    link::message::Open {
        provider: Some((ends.provider.client.0, 0)),
        opener: None,
        contract: contract.id.0,
        deadline_ms: 300,
        hops: 0,
        window_bytes: WINDOW,
        seal: &[1; 96],
        forward: false,
    }
    .write(1, &mut asked);
    let began = Instant::now();
    ends.here.send(&asked).await;
    let (number, payload) = ends.there.until(Kind::Open).await;
    let passed = link::message::Open::decode(&payload).unwrap();
    assert_eq!((passed.provider, passed.opener, passed.deadline_ms), (None, Some(ends.proxy.client.0), 300));
    assert_eq!(ends.here.stream_ended(1).await, Code::Timeout);
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(ends.there.stream_ended(number).await, Code::Timeout);
    ends.network.until(|status| status.streams == 0).await;
    // Its answer comes too late, and is nobody's.
    let mut late = Vec::new();
    Opened { window_bytes: WINDOW, seal: &[2; 64] }.write(number, &mut late);
    Refuse { code: Code::Paused, cause: "".into(), retry_after: None }.write(number, &mut late);
    late.extend_from_slice(&data(number, 1_000));
    ends.there.send(&late).await;
    assert!(ends.here.is_silent(Duration::from_millis(200)).await);
    ends.open(&contract, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opens_and_cancels_without_end_leaves_others_their_deadlines() {
    let mut ends = Ends::new().await;
    let contract = ends.contract(1 << 20).await;
    // Each of these would keep an entry for a minute.
    let mut flood = Vec::new();
    for stream in 1..30_000 {
        flood.extend_from_slice(&open(&ends.provider, &contract, stream, WINDOW));
        Reset::because(Code::Cancelled).write(stream, &mut flood);
    }
    let (mut here, mut there) = (ends.here, ends.there);
    let reading = tokio::spawn(async move {
        loop {
            let (kind, number, _) = there.frame().await.unwrap();
            if kind == Kind::Open && number == 29_999 {
                return there;
            }
        }
    });
    here.send(&flood).await;
    let _there = reading.await.unwrap();
    let mut asked = open(&ends.provider, &contract, 40_000, WINDOW);
    // Its deadline, as a field of four bytes, is what was 10 s.
    let at = asked.windows(4).position(|four| four == 10_000_u32.to_be_bytes()).unwrap();
    asked[at..at + 4].copy_from_slice(&200_u32.to_be_bytes());
    let began = Instant::now();
    here.send(&asked).await;
    assert_eq!(here.stream_ended(40_000).await, Code::Timeout);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_leaves_nothing_behind_whatever_it_was_doing() {
    for role in [Role::Proxy, Role::Provider] {
        for stage in 0..4 {
            let mut ends = Ends::new().await;
            let contract = ends.contract(1 << 20).await;
            let number = match stage {
                0 => 0,
                1 => {
                    ends.here.send(&open(&ends.provider, &contract, 1, WINDOW)).await;
                    ends.there.until(Kind::Open).await.0
                }
                _ => ends.open(&contract, 1).await,
            };
            if stage == 3 {
                // Half-closed, and half of a frame.
                let end = [data(1, 16), frame(Kind::Fin, 1, &[]), data(1, 50)[..20].to_vec()].concat();
                ends.here.send(&end).await;
                ends.there.until(Kind::Fin).await;
                ends.there.send(&data(number, 500)[..300]).await;
            }
            let Ends { network, here, there, .. } = ends;
            let (gone, mut left, stream, code) = match role {
                Role::Provider => (there, here, 1, Code::ProviderGone),
                _ => (here, there, number, Code::Cancelled),
            };
            // With a reset, as a machine that has lost its power and comes back.
            rustix::net::sockopt::set_socket_linger(&gone.socket, Some(Duration::ZERO)).unwrap();
            drop(gone);
            if stage > 0 {
                assert_eq!(left.stream_ended(stream).await, code, "{role:?} at stage {stage}");
            }
            network.until(|status| status.streams == 0 && status.providers + status.openers == 1).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_is_granted_nothing_waits_and_nobody_else_does() {
    let mut ends = Ends::new().await;
    let contract = ends.contract(1 << 30).await;
    let stuck = ends.open(&contract, 1).await;
    for _ in 0..4 {
        ends.there.send(&data(stuck, 16_384 - 8)).await;
    }
    // Never granted again. Another stream of the same two ends has its own credit.
    let number = ends.open(&contract, 2).await;
    for _ in 0..40 {
        ends.there.send(&data(number, 16_000)).await;
        loop {
            if ends.here.until(Kind::Data).await.0 == 2 {
                break;
            }
        }
        let mut grant = Vec::new();
        write_credit(2, 16_000, &mut grant);
        ends.here.send(&grant).await;
        ends.there.until(Kind::Credit).await;
    }
    ends.network.until(|status| status.streams == 2).await;
}
