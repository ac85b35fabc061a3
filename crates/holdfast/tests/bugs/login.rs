//! The first bytes of a connection: start-up packets, probes, and databases that are not there.

use std::time::Duration;

use drill::postgres::{DATABASE, USER};
use drill::wire::{ConnectOptions, Connection, Encryption, Error, Message, ProbeAnswer, frame};
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, code, connect, eventually, value, within};

/// An unknown database behind the `*` line: the client hung until the waiting line's limit while logins went on.
/// pgbouncer #46, #251, #649, #919
#[tokio::test(flavor = "multi_thread")]
async fn missing_database_is_told_at_once_and_not_tried_again_for_nobody() {
    let house = House::start(|setup| setup);
    let attempts = || house.postgres.log().matches("FATAL:  database \"nowhere\" does not exist").count();
    let options = house.pooler.connect_options(USER, "nowhere");
    for _ in 0..3 {
        let began = Instant::now();
        let refused = within(PATIENCE, "an error", Connection::connect(&options)).await.unwrap_err();
        assert_eq!(code(&refused), "3D000", "{refused}");
        assert!(refused.to_string().contains("nowhere"), "{refused}");
        assert!(began.elapsed() < Duration::from_secs(1), "told after {:?}", began.elapsed());
    }
    let before = attempts();
    assert!(before >= 1);
    // Longer than the rest after a first failure.
    sleep(Duration::from_secs(4)).await;
    assert_eq!(attempts(), before, "logins went on though nobody waits");
    // Once it is there, it is found without help.
    house.postgres.admin("create database nowhere").unwrap();
    let end = Instant::now() + PATIENCE;
    while let Err(error) = Connection::connect(&options).await {
        assert_eq!(code(&error), "3D000", "{error}");
        assert!(Instant::now() < end, "the new database is not found");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Clients of protocol 3.2, and those that ask for a version and an option of the future, were turned away.
/// pgcat #706; pgdog #578; psql-wire PR #147
#[tokio::test(flavor = "multi_thread")]
async fn newer_protocol_versions_are_negotiated() {
    const OPTION: &str = "_pq_.test_protocol_negotiation";
    let house = House::start(|setup| setup);
    let at = |version: (u16, u16)| ConnectOptions { version, ..house.options() };
    let plain = connect(&at((3, 2))).await;
    assert_eq!(plain.negotiated(), None, "3.2 is spoken as it is");
    for (version, length) in [((3, 2), 32), ((3, 9999), 32), ((3, 0), 4)] {
        let client = connect(&at(version)).await;
        assert_eq!(client.cancel_key().unwrap().secret.len(), length, "{version:?}");
    }
    for (options, minor, unknown) in [
        (at((3, 9999)).parameter(OPTION, "x"), 2, vec![OPTION]),
        (at((3, 9999)), 2, vec![]),
        (at((3, 0)).parameter(OPTION, "x"), 0, vec![OPTION]),
    ] {
        let mut client = connect(&options).await;
        let negotiated = client.negotiated().expect("NegotiateProtocolVersion").clone();
        let (newest, options) = parse_negotiation(&negotiated);
        // Never a newer one than was asked for: clients take that for a broken server.
        assert_eq!((newest >> 16, newest & 0xffff), (3, minor), "{negotiated:?}");
        assert_eq!(options, unknown, "{negotiated:?}");
        assert_eq!(value(&mut client, "select 1").await, "1");
    }
    // Cancel keys: its own of whatever length, and foreign ones of 32 and 256 bytes, which mean nothing.
    let mut client = connect(&at((3, 2))).await;
    let key = client.cancel_key().unwrap().clone();
    assert!((4..=256).contains(&key.secret.len()), "{key:?}");
    client.send(&frame::query("select pg_sleep(30)")).await.unwrap();
    house.wait_pool("the query runs", |pool| pool["sv_active"] == "1").await;
    let mut wrong = vec![vec![1; 4], vec![1; 32], vec![1; 256]];
    // Part of the right one, more than it, and nearly it.
    wrong.extend([key.secret[..4].to_vec(), [&key.secret[..], &[0]].concat()]);
    let mut last = key.secret.clone();
    *last.last_mut().unwrap() ^= 1;
    wrong.push(last);
    for secret in wrong {
        Connection::cancel_with(&options_address(&house), key.process_id, &secret).await.unwrap();
    }
    let untouched = tokio::time::timeout(Duration::from_millis(100), client.read_message()).await;
    assert!(untouched.is_err(), "cancelled by a foreign key: {untouched:?}");
    client.cancel().await.unwrap();
    let canceled = within(PATIENCE, "the cancel", client.read_reply()).await.unwrap();
    assert_eq!(canceled.error().unwrap().code, "57014");
}

/// The 8 bytes of a GSS request ended the session, or got an answer that nobody could follow.
/// warpgate #2373
#[tokio::test(flavor = "multi_thread")]
async fn gss_request_is_declined_and_the_login_goes_on() {
    let house = House::start(|setup| setup);
    for encryption in [Encryption::Gss, Encryption::Ssl, Encryption::GssThenSsl] {
        let mut client = connect(&house.options().encryption(encryption)).await;
        assert_eq!(value(&mut client, "select 1").await, "1", "{encryption:?}");
    }
    // One byte per write.
    let mut client = Connection::open(&options_address(&house), None).await.unwrap();
    for request in [frame::gss_request(), frame::ssl_request()] {
        let (last, first) = request.split_last().unwrap();
        client.send_in_pieces(first, &[1]).await.unwrap();
        let answer = within(PATIENCE, "N", client.probe(&[*last])).await.unwrap();
        assert_eq!(answer, ProbeAnswer::Unwilling);
    }
    within(PATIENCE, "log in", client.log_in(&house.options())).await.unwrap();
    assert_eq!(value(&mut client, "select 1").await, "1");
}

/// A start-up packet that came in pieces, or was larger than a buffer, failed.
/// pgbouncer #61, PR #1058
#[tokio::test(flavor = "multi_thread")]
async fn startup_packet_may_be_long_and_come_in_any_pieces() {
    let house = House::start(|setup| setup.setting("ignore_startup_parameters", "options"));
    let plain = house.options().parameter("application_name", "pieces");
    let packet = plain.startup_frame();
    for pieces in std::iter::once(vec![1]).chain((1..packet.len()).map(|cut| vec![cut, packet.len() - cut])) {
        let mut client = Connection::open(&plain.address, None).await.unwrap();
        client.send_in_pieces(&packet, &pieces).await.unwrap();
        within(PATIENCE, "the login's end", wait_ready(&mut client)).await;
    }
    // Nine of the ten thousand bytes that are allowed.
    let options = "-c geqo=off ".repeat(750);
    assert!(options.len() >= 9_000);
    let mut client = connect(&plain.parameter("options", &options)).await;
    assert_eq!(value(&mut client, "show application_name").await, "pieces");
    // Beyond it there is an error, not a hang and not a crash.
    let long = house.options().parameter("options", &"x".repeat(11_000));
    let refused = within(PATIENCE, "an error", Connection::connect(&long)).await.unwrap_err();
    assert!(refused.is_closed() || refused.server().is_some(), "{refused}");
    assert_eq!(value(&mut client, "select 1").await, "1");
}

/// Probes of the port, once a second from each of many load balancers, flooded the log.
/// pgbouncer #323, #1419
#[tokio::test(flavor = "multi_thread")]
async fn probes_leave_no_log_line_and_are_counted() {
    const PROBES: usize = 1_000;
    let house =
        House::start(|setup| setup.setting("log_connections", "1").setting("log_disconnections", "1"));
    let mut console = house.console().await;
    value(&mut console, "show version").await;
    let before = (house.pooler.log().lines().count(), house.metric("probes_total").await);
    for number in 0..PROBES {
        let probe = Connection::open(&options_address(&house), None).await.unwrap();
        if number % 2 == 0 {
            probe.abort().unwrap();
        }
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let counted = house.metric("probes_total").await - before.1;
        if counted >= PROBES as f64 {
            assert_eq!(counted, PROBES as f64);
            break;
        }
        assert!(Instant::now() < end, "{counted} of {PROBES} probes were counted");
        sleep(Duration::from_millis(20)).await;
    }
    let log = house.pooler.log();
    let lines: Vec<&str> = log.lines().skip(before.0).collect();
    assert!(lines.is_empty(), "{} lines, such as {:?}", lines.len(), lines[0]);
    // Real clients are still logged.
    let client = house.client().await;
    client.terminate().await.unwrap();
    eventually(PATIENCE, "a real login is logged", || house.pooler.log().lines().count() > before.0).await;
}

fn options_address(house: &House) -> drill::wire::Address {
    house.pooler.connect_options(USER, DATABASE).address
}

/// Reads up to ReadyForQuery.
async fn wait_ready(client: &mut Connection) {
    loop {
        match client.read_message().await {
            Ok(message) if message.kind == b'Z' => return,
            Ok(message) => assert_ne!(message.kind, b'E', "{message:?}"),
            Err(error @ (Error::Closed { .. } | Error::Io(_) | Error::Protocol(_) | Error::Server(_))) => {
                panic!("refused: {error}")
            }
        }
    }
}

/// NegotiateProtocolVersion: the newest version, and the options that are not known.
fn parse_negotiation(message: &Message) -> (u32, Vec<&str>) {
    let (newest, rest) = message.body.split_first_chunk().unwrap();
    let (count, names) = rest.split_first_chunk().unwrap();
    let names: Vec<&str> =
        names.split(|byte| *byte == 0).map(|name| std::str::from_utf8(name).unwrap()).collect();
    let count = u32::from_be_bytes(*count) as usize;
    (u32::from_be_bytes(*newest), names[..count].to_vec())
}
