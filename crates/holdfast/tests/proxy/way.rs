//! What a customer sees of the whole way.

use crate::house::{House, soon, works};
use crate::relay_support::echo;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

const PLENTY: u64 = 1 << 40;

#[tokio::test(flavor = "multi_thread")]
async fn bytes_go_through_relay_and_provider_are_billed_and_leave_a_record() {
    let house = House::start(echo().await, PLENTY).await;
    let provider = house.provider().await;
    let mut socket = house.stream("acme-country-de").await.unwrap();
    works(&mut socket).await;
    let (mut from, mut to) = socket.split();
    let sent: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
    let mut received = vec![0; sent.len()];
    let (written, read) = tokio::join!(to.write_all(&sent), from.read_exact(&mut received));
    written.unwrap();
    read.unwrap();
    assert!(received == sent, "the bytes are not what was sent");
    drop(socket);
    soon("the bill", || house.network.written.billed() >= 6_000_000).await;
    soon("the record", || !house.book.lock().unwrap().exits.is_empty()).await;
    let exit = house.book.lock().unwrap().exits[0].clone();
    assert_eq!((exit.proxy_account.as_str(), exit.provider), ("acme", provider.client().0));
    assert_eq!(house.book.lock().unwrap().contracts.len(), 1);
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_provider_stops_new_streams_leave_through_the_other_within_three_seconds() {
    let house = House::start(echo().await, PLENTY).await;
    let (first, second) = (house.provider().await, house.provider().await);
    for _ in 0..10 {
        works(&mut house.stream("acme").await.unwrap()).await;
    }
    // The api's list goes on naming it.
    first.stop().await;
    let stopped = Instant::now();
    for _ in 0..30 {
        works(&mut house.stream("acme").await.expect("there is another provider")).await;
    }
    assert!(stopped.elapsed() < Duration::from_secs(3), "{:?}", stopped.elapsed());
    assert!(second.status().await.streams.taken >= 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_outlives_its_contract() {
    let house = House::start(echo().await, 1_000_000).await;
    let _provider = house.provider().await;
    let mut socket = house.stream("acme").await.unwrap();
    let mut chunk = [3; 50_000];
    for _ in 0..100 {
        socket.write_all(&chunk).await.unwrap();
        let read = tokio::time::timeout(Duration::from_secs(20), socket.read_exact(&mut chunk)).await;
        read.expect("the stream stalls").expect("the stream was cut");
    }
    // 10 MB in both directions, in blocks of 1 MB.
    let contracts = house.book.lock().unwrap().contracts.clone();
    assert!((9..=22).contains(&contracts.len()), "{}", contracts.len());
    assert!(contracts.iter().skip(1).all(|contract| contract.previous.is_some()));
    // What is used up does not wait for the stream's end.
    soon("the end of those that are used up", || house.book.lock().unwrap().closed >= contracts.len() - 3)
        .await;
    works(&mut socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_api_gone_streams_go_on_and_new_ones_come_about() {
    let house = House::start(echo().await, PLENTY).await;
    let _provider = house.provider().await;
    let mut socket = house.stream("acme").await.unwrap();
    house.book.lock().unwrap().gone = true;
    tokio::time::sleep(Duration::from_millis(600)).await;
    works(&mut socket).await;
    for _ in 0..10 {
        works(&mut house.stream("acme").await.unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_of_the_way_has_its_reply() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let house = House::start(nobody, PLENTY).await;
    assert_eq!(house.stream("acme").await.unwrap_err(), 3, "no provider");
    let provider = house.provider().await;
    assert_eq!(house.stream("acme").await.unwrap_err(), 5, "the target refuses");
    assert_eq!(house.stream("acme-country-fr").await.unwrap_err(), 3, "none there");
    provider.stop().await;
    assert!(matches!(house.stream("acme").await.unwrap_err(), 3 | 4), "the provider is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_at_another_relay_is_reached_there_or_around_if_that_cannot_be_dialled() {
    // The second time, the second relay is not where it says.
    for (public_address, around) in [("", false), ("127.0.0.1:1", true)] {
        let house = House::start(echo().await, PLENTY).await;
        let second = house.another_relay(public_address).await;
        let _provider = house.provider_at(&second).await;
        for _ in 0..5 {
            works(&mut house.stream("acme").await.unwrap()).await;
        }
        let first = house.network.until(|status| status.moved > 0).await;
        assert_eq!(first.forwarded >= 5, around, "{first:?}");
        let billed_at = if around { &house.network } else { &second };
        soon("the bill", || billed_at.written.billed() > 0).await;
        house.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_drains_hands_its_provider_and_its_proxy_to_the_other() {
    let mut house = House::start(echo().await, PLENTY).await;
    let _provider = house.provider().await;
    let second = house.another_relay("").await;
    let mut stands = house.stream("acme").await.unwrap();
    works(&mut stands).await;
    house.network.stop.send_replace(relay::Stop::Drain);
    // The api's list goes on naming the first.
    while second.status.borrow().providers == 0 {
        works(&mut house.stream("acme").await.expect("it is served while the provider moves")).await;
    }
    for _ in 0..10 {
        works(&mut house.stream("acme").await.expect("it has moved")).await;
    }
    works(&mut stands).await;
    drop(stands);
    tokio::time::timeout(Duration::from_secs(20), &mut house.network.running)
        .await
        .expect("the drain does not end")
        .unwrap()
        .unwrap();
    works(&mut house.stream("acme").await.expect("the first is gone")).await;
    house.stop().await;
}
