//! What an owner gives and takes back.

use crate::relay_support::echo;
use crate::support::{Home, Running, SOON, allow, code};
use client::Code;
use provider::control::Command;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

#[tokio::test(flavor = "multi_thread")]
async fn pause_lets_streams_end_then_disconnects_and_resume_brings_it_back() {
    let home = Home::start().await;
    let target = echo().await;
    let provider = home.provider(&allow(&[target])).await;
    let mut stream = home.open(&provider, &target.to_string()).await.unwrap();
    let paused = provider.tell(Command::Pause).await;
    assert!(paused.paused && paused.next().contains("resume"), "{paused}");
    assert_eq!(code(home.open(&provider, &target.to_string()).await), Code::Paused);
    stream.write_all(b"goes on").await.unwrap();
    let mut back = [0; 7];
    timeout(SOON, stream.read_exact(&mut back)).await.unwrap().unwrap();
    drop(stream);
    provider.until("disconnected", |status| status.link.state == "resting").await;
    // It is remembered.
    let folder = provider.stop().await;
    let provider = Running::start(folder, &allow(&[target]));
    provider.until("still resting", |status| status.link.state == "resting").await;
    provider.tell(Command::Resume).await;
    provider.until("connected", |status| status.link.state == "connected").await;
    assert!(home.open(&provider, &target.to_string()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_months_cap_ends_a_stream_in_the_middle_and_a_higher_cap_brings_it_back() {
    let home = Home::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move { while socket.write_all(&[1; 65_536]).await.is_ok() {} });
        }
    });
    let provider = home.provider(&(allow(&[target]) + "[limits]\nmonth = \"5MB\"\n")).await;
    let mut stream = home.open(&provider, &target.to_string()).await.unwrap();
    let mut received = 0_u64;
    let mut buffer = vec![0; 65_536];
    let ended = timeout(SOON, async {
        loop {
            match stream.read(&mut buffer).await {
                Ok(count) => received += count as u64,
                Err(error) => return error,
            }
        }
    });
    ended.await.expect("the stream goes on beyond the cap");
    let status = provider.until("used up", |status| status.link.state == "resting").await;
    assert!(status.bytes.month >= 5_000_000, "{}", status.bytes.month);
    assert!(status.bytes.month < 20_000_000, "it went far beyond: {}", status.bytes.month);
    assert!(status.opens_at_ms.is_some() && status.next().contains("takes streams again"), "{status}");
    assert_eq!(status.streams.ended.get("month"), Some(&1));
    // It is remembered, to the byte.
    let folder = provider.stop().await;
    assert_eq!(folder.state.usage().month_bytes, status.bytes.month);
    let provider = Running::start(folder, &(allow(&[target]) + "[limits]\nmonth = \"5MB\"\n"));
    provider.until("still used up", |status| status.link.state == "resting").await;
    let raised = provider.tell(Command::Cap { bytes: Some(1 << 40) }).await;
    assert_eq!(raised.limits.month_bytes, Some(1 << 40));
    provider.until("connected", |status| status.link.state == "connected").await;
    assert!(home.open(&provider, &target.to_string()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_its_hours_it_does_not_connect() {
    let home = Home::start().await;
    let now = provider_minute();
    // An hour that begins in two hours.
    let (from, to) = ((now + 120) % 1_440, (now + 180) % 1_440);
    let hours = format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60);
    let provider = Running::start(home.joined().await, &format!("[limits]\nhours = \"{hours}\"\n"));
    let status = provider.until("resting", |status| status.link.state == "resting").await;
    let wait_ms = status.opens_at_ms.unwrap() - status.now_ms;
    assert!((110 * 60_000..=121 * 60_000).contains(&wait_ms), "{wait_ms}");
    assert_eq!(status.link.connections, 0);
}

/// Minutes since midnight, as the provider sees them.
fn provider_minute() -> u64 {
    let date = std::process::Command::new("date").arg("+%H %M").output().unwrap();
    let text = String::from_utf8(date.stdout).unwrap();
    let (hour, minute) = text.trim().split_once(' ').unwrap();
    hour.parse::<u64>().unwrap() * 60 + minute.parse::<u64>().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_holds_for_both_directions_together() {
    let home = Home::start().await;
    let target = echo().await;
    let provider = home.provider(&(allow(&[target]) + "[limits]\nrate_mbit_s = 16\n")).await;
    let stream = home.open(&provider, &target.to_string()).await.unwrap();
    let (mut read, mut write) = tokio::io::split(stream);
    let begun = Instant::now();
    let writing = tokio::spawn(async move { write.write_all(&vec![3; 3_000_000]).await.map(|()| write) });
    let mut back = vec![0; 3_000_000];
    timeout(SOON, read.read_exact(&mut back)).await.unwrap().unwrap();
    drop(writing.await);
    // 6 MB at 2 MB/s, less what may burst.
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(2_500), "{took:?}");
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_beyond_the_limit_are_refused_and_the_status_answers_while_busy() {
    let home = Home::start().await;
    let target = echo().await;
    let provider = home.provider(&(allow(&[target]) + "[limits]\nstreams = 3\n")).await;
    let mut standing = Vec::new();
    for _ in 0..3 {
        standing.push(home.open(&provider, &target.to_string()).await.unwrap());
    }
    assert_eq!(code(home.open(&provider, &target.to_string()).await), Code::Limit);
    for stream in &mut standing {
        stream.write_all(&vec![0; 200_000]).await.unwrap();
    }
    let status = timeout(Duration::from_secs(5), provider.status()).await.unwrap();
    assert_eq!((status.streams.now, status.streams.refused.get("streams")), (3, Some(&1)));
    standing.pop();
    provider.until("one less", |status| status.streams.now == 2).await;
    assert!(home.open(&provider, &target.to_string()).await.is_ok());
}
