//! Requests that are none, and peers that mean no good.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "support/support.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{Ask, House};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_long_or_make_no_sense_are_refused_with_a_cause() {
    let house = House::start().await;
    let long = " ".repeat(70_000);
    assert_eq!(house.ask(&Ask::post("/v1/clients", &long)).await.refusal(), (413, "too_large"));
    for body in ["", "{", "[]", r#"{"account": 1}"#, r#"{"account": "a", "password": "b", "more": 1}"#] {
        let answer = house.ask(&Ask::post("/v1/session", body)).await;
        assert_eq!(answer.refusal(), (400, "bad_request"), "{body}");
    }
    let wrong = Ask::get("/v1/accounts").header("authorization", "Bearer \u{7f}");
    assert!((400..=401).contains(&house.ask(&wrong).await.status));
    assert_eq!(house.get("/v1/accounts").await.refusal(), (401, "unauthenticated"));
    assert_eq!(house.ask(&Ask::get("/status").header("x", "y".repeat(20_000))).await.status, 431);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_or_only_a_part_is_let_go_and_holds_nobody_up() {
    let house = House::start().await;
    let begun = Instant::now();
    let mut silent = TcpStream::connect(("127.0.0.1", house.link().port)).await.unwrap();
    let mut slow = house.dial().await.unwrap();
    slow.write_all(b"GET /status HTTP/1.1\r\nhost").await.unwrap();
    slow.flush().await.unwrap();
    assert_eq!(house.get("/status").await.status, 200);
    let mut bytes = [0; 64];
    let limit = Duration::from_secs(25);
    assert_eq!(timeout(limit, silent.read(&mut bytes)).await.unwrap().unwrap_or(0), 0);
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    let end = timeout(limit, async { while slow.read(&mut bytes).await.is_ok_and(|count| count > 0) {} });
    end.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_takes_a_bounded_number_of_connections_and_others_are_served() {
    let house = House::start().await;
    let port = house.link().port;
    let mut held = Vec::new();
    for _ in 0..300 {
        held.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    let mut closed = 0;
    for stream in &mut held {
        let mut byte = [0; 1];
        let end = timeout(Duration::from_millis(5), stream.read(&mut byte)).await;
        closed += usize::from(matches!(end, Ok(Ok(0) | Err(_))));
    }
    assert!((44..300).contains(&closed), "{closed} of 300 were closed");
    let other = tokio::net::TcpSocket::new_v4().unwrap();
    other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let stream = other.connect(([127, 0, 0, 1], port).into()).await.unwrap();
    let mut stream = house.handshake(stream).await.unwrap();
    stream.write_all(b"GET /status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_refused_for_good_costs_the_database_nothing_when_asking_again() {
    let house = House::start().await;
    let ask = Ask::get("/v1/accounts").header("authorization", "Bearer nobodys");
    assert_eq!(house.ask(&ask).await.refusal(), (401, "unauthenticated"));
    let before = house.relay.counts().bytes_up;
    for _ in 0..20 {
        assert_eq!(house.ask(&ask).await.refusal(), (401, "unauthenticated"));
    }
    let spent = house.relay.counts().bytes_up - before;
    // What the api asks by itself in that time is a few statements.
    assert!(spent < 4_000, "{spent} bytes went to the database");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_look_ups_in_a_row_are_few_queries() {
    let house = House::start().await;
    let member = house.member(trust::Role::App, None).await;
    let (token, keys) = (member.membership.token(), member.membership.identity());
    let count = || {
        let sql = "select coalesce(sum(seq_scan + idx_scan), 0) from pg_stat_user_tables where relname = 'relay_beat'";
        house.postgres.admin("select pg_stat_clear_snapshot()").unwrap();
        house.postgres.admin(sql).unwrap()[0][0].clone().unwrap().parse::<u64>().unwrap()
    };
    let ask = || Ask::get("/v1/candidates").signed(&token, keys, house.network, support::now_ms());
    assert_eq!(house.ask(&ask()).await.status, 200);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = count();
    let asks: Vec<_> = (0..100).map(|_| ask()).collect();
    let begun = Instant::now();
    let answers = asks.iter().map(|ask| house.ask(ask));
    let mut fine = 0;
    for answer in answers {
        fine += usize::from(answer.await.status == 200);
    }
    let took = begun.elapsed();
    assert_eq!(fine, 100);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let queries = count() - before;
    assert!(queries <= 3 + took.as_secs() * 2, "{queries} queries in {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_is_no_other_networks() {
    let house = House::start().await;
    let other = trust::RootKey::generate().unwrap().network();
    let link = trust::JoinLink { network: other, ..house.link() };
    let error = client::Api::new(&link).unwrap().trust().await.unwrap_err();
    assert!(matches!(error, client::ApiError::NotPinned { .. }), "{error}");
}

/// Each of many guesses at once was let in before the first was found wrong.
#[tokio::test(flavor = "multi_thread")]
async fn guesses_at_once_are_no_more_than_guesses_one_by_one() {
    let house = Arc::new(House::start().await);
    let body = r#"{"account": "operator", "password": "not the right one"}"#;
    let mut asking = JoinSet::new();
    for _ in 0..30 {
        let house = Arc::clone(&house);
        asking.spawn(async move { house.ask(&Ask::post("/v1/session", body)).await.status });
    }
    let looked_at = asking.join_all().await.into_iter().filter(|status| *status == 401).count();
    assert!((1..=11).contains(&looked_at), "{looked_at} guesses were looked at");
}

/// Whoever asks and leaves at once has no answer, but the password is hashed.
#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_and_leaves_has_guessed() {
    let house = House::start().await;
    let body = r#"{"account": "operator", "password": "not the right one"}"#;
    let text =
        format!("POST /v1/session HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for _ in 0..40 {
        let mut stream = house.dial().await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        // Time to begin, and not to end.
        tokio::time::sleep(Duration::from_millis(80)).await;
        drop(stream);
    }
    assert_eq!(house.ask(&Ask::post("/v1/session", body)).await.refusal(), (429, "too_many"));
}
