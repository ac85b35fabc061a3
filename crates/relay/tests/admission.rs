//! At what rate clients come in, what those beyond it are told, and how a relay is left.
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

use client::{Link, LinkError, Phase};
use clock::Clock;
use link::{Comeback, Pace, parse_wait};
use raw::{PATIENCE, Raw};
use relay::Stop;
use std::time::Duration;
use support::{Network, echo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use trust::Role;

/// When a connection is told to come back; nothing if it waits in the line, or is let in, where its hello is refused.
async fn told(socket: &mut TcpStream) -> Option<Duration> {
    let mut bytes = Vec::new();
    let read = socket.read_to_end(&mut bytes);
    match tokio::time::timeout(Duration::from_millis(500), read).await {
        Ok(_) if bytes.starts_with(b"holdfast") => Some(parse_wait(&bytes).unwrap()),
        Ok(_) => None,
        Err(_) => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_line_times_to_come_back_are_given_out_at_the_rate_and_reach_the_client() {
    let network = Network::with(|config| {
        config.admissions_per_second = 10;
        config.admission_line = 5;
    })
    .await;
    let (mut waits, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let mut socket = TcpStream::connect(network.address).await.unwrap();
        // A client speaks first: its hello must not cost it the answer.
        socket.write_all(&[22; 1_500]).await.unwrap();
        kept.push(tokio::spawn(async move { told(&mut socket).await }));
    }
    for each in kept {
        waits.extend(each.await.unwrap());
    }
    assert!(waits.len() >= 25, "{} of 40 were put off", waits.len());
    waits.sort_unstable();
    // One in each tenth of a second, behind the line.
    for pair in waits.windows(2) {
        let apart = pair[1] - pair[0];
        assert!(apart >= Duration::from_millis(40), "{waits:?}");
    }
    assert!(waits[0] >= Duration::from_millis(400), "{waits:?}");
    assert!(network.until(|status| status.put_off >= 25).await.put_off >= 25);
    // The client library hears the same; on a slow machine, the line may have moved on before it comes.
    let mut refused = None;
    for _ in 0..20 {
        let mut flood = Vec::new();
        for _ in 0..30 {
            flood.push(TcpStream::connect(network.address).await.unwrap());
        }
        refused = network.connect(&network.member(Role::Provider)).await.err();
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.expect("nobody was put off");
    assert!(matches!(refused, LinkError::Wait(wait) if wait > Duration::ZERO), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_obey_are_all_in_within_one_and_a_half_times_what_the_rate_takes() {
    const CLIENTS: u32 = 120;
    const RATE: u32 = 20;
    let network = Network::with(|config| {
        config.admissions_per_second = RATE;
        config.admission_line = 20;
    })
    .await;
    let began = Instant::now();
    let mut coming = Vec::new();
    for _ in 0..CLIENTS {
        let (address, member) = (network.address.to_string(), network.member(Role::Provider));
        coming.push(tokio::spawn(async move {
            let clock = Clock::start();
            let mut comeback = Comeback::new();
            comeback.set_pace(Pace::default());
            for dials in 1.. {
                match Link::connect(&address, member.who(), None).await {
                    Ok(link) => return (link, dials),
                    Err(error) => {
                        let wait = comeback.ended(error.retry_after(), fastrand::u64(..), clock.now());
                        tokio::time::sleep(wait).await;
                    }
                }
            }
            unreachable!()
        }));
    }
    let mut links = Vec::new();
    let mut dials = 0;
    for each in coming {
        let (link, tries) = each.await.unwrap();
        links.push(link);
        dials += tries;
    }
    let took = began.elapsed().as_secs_f64();
    let limit = 1.5 * f64::from(CLIENTS) / f64::from(RATE);
    assert!(took <= limit, "{took} s of {limit}");
    assert!(took >= f64::from(CLIENTS) / f64::from(RATE) - 1.5, "{took} s: nobody is let in faster");
    assert!(dials <= 4 * CLIENTS, "{dials} dials");
    network.until(|status| status.providers == CLIENTS as usize).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_left_the_line_costs_no_handshake() {
    let network = Network::with(|config| {
        config.admissions_per_second = 2;
        config.admission_line = 8;
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut line = Vec::new();
    for _ in 0..8 {
        line.push(TcpStream::connect(network.address).await.unwrap());
    }
    network.until(|status| status.waiting >= 6).await;
    drop(line);
    let began = Instant::now();
    // Behind all of them: four seconds, were they still there.
    network.connect(&network.member(Role::Provider)).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_drains_lets_streams_end_and_clients_go_first() {
    let network = Network::with(|config| {
        config.other_addresses = vec!["relay2.example:443".to_owned()];
        config.drain_deadline_ms = 20_000;
        config.drain_spread_ms = 5;
    })
    .await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let target = echo().await;
    let (mut stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    network.stop.send_replace(Stop::Drain);
    for phase in [&mut link.phase(), &mut provider.link.phase()] {
        let told = phase.wait_for(|phase| !matches!(phase, Phase::Up));
        let told = tokio::time::timeout(PATIENCE, told).await.unwrap().unwrap().clone();
        assert!(matches!(&told, Phase::Draining { addresses, .. } if addresses[0] == "relay2.example:443"));
    }
    // Until the provider has another relay, it carries here, what stands and what is new.
    drop(link.open(&provider.request(&contract, target)).await.unwrap());
    for _ in 0..50 {
        stream.write_all(&[5; 10_000]).await.unwrap();
        let mut back = vec![0; 10_000];
        stream.read_exact(&mut back).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(TcpStream::connect(network.address).await.is_err(), "nobody new is accepted");
    assert!(!network.running.is_finished());
    drop(stream);
    // The clients have their new connections: they leave, and the relay ends before its deadline.
    link.close();
    provider.link.close();
    tokio::time::timeout(Duration::from_secs(10), network.running).await.expect("it waits").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_leave_a_draining_relay_is_closed_at_its_deadline_with_the_cause() {
    let network = Network::with(|config| config.drain_deadline_ms = 600).await;
    let mut stays = Raw::join(&network, &network.member(Role::Provider)).await;
    let began = Instant::now();
    network.stop.send_replace(Stop::Drain);
    assert_eq!(stays.ended().await, Some(link::Code::Draining));
    assert!(began.elapsed() >= Duration::from_millis(600));
    tokio::time::timeout(Duration::from_secs(10), network.running).await.expect("it waits").unwrap().unwrap();
}
