//! Attempts to connect: who tries too often, and who has been refused too often; and who is named for it.

use super::bench::{Bench, READY, config, message, query, startup};
use overload::cause::Cause;
use pooling::connection::ClientId;
use pooling::seam::ClientAddress;
use settings::pooler::{AuthType, PoolerConfig, Secret};
use std::sync::Arc;
use std::time::Duration;

/// The password of `u` is `right`.
fn with_password(extra: &str) -> Arc<PoolerConfig> {
    let mut changed = PoolerConfig::clone(&config(extra));
    changed.general.auth_type = AuthType::Plain;
    changed.secrets.insert("u".to_owned(), Secret::Plain("right".to_owned()));
    Arc::new(changed)
}

fn says(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// What a client with this password is told.
fn log_in(bench: &mut Bench, password: &str) -> Vec<u8> {
    let client = bench.connect("db");
    if !bench.is_closed(client) {
        bench.say(client, &message(b'p', format!("{password}\0").as_bytes()));
    }
    bench.heard(client)
}

/// The hint of a refusal.
fn wait_of(told: &[u8]) -> Duration {
    let text = String::from_utf8_lossy(told);
    let number = text.split("retry after ").nth(1).and_then(|rest| rest.split(' ').next());
    Duration::from_millis(number.and_then(|number| number.parse().ok()).expect("a hint"))
}

fn from_elsewhere(bench: &mut Bench) -> ClientId {
    let address =
        ClientAddress::Tcp { peer: ([192, 0, 2, 1], 1).into(), local: ([127, 0, 0, 1], 6432).into() };
    let client = bench.engine.accept(&mut bench.wire, address).expect("room");
    bench.say(client, &startup("db"));
    client
}

#[test]
fn a_wrong_password_that_is_tried_ten_thousand_times_is_looked_at_a_handful_of_times() {
    let mut bench = Bench::new(with_password("connection_attempts = on\nconnection_attempt_rate = 0\n"));
    let (mut looked_at, mut turned_away) = (0, 0);
    for _ in 0..10_000 {
        let told = log_in(&mut bench, "wrong");
        if says(&told, "C28P01\0") {
            looked_at += 1;
        } else {
            assert!(
                says(&told, "C53H04\0") && says(&told, "too many failed logins of user \"u\""),
                "{told:?}"
            );
            turned_away += 1;
        }
        bench.pass(Duration::from_millis(10));
    }
    // Ten, and then one at the end of each rest: of 1, 2, 4, 8, … s, each perhaps shorter by half.
    assert!((14..=20).contains(&looked_at), "{looked_at}");
    assert_eq!(looked_at + turned_away, 10_000);
    assert_eq!(bench.engine.overview().attempts.refused_before, turned_away);
    assert!(bench.wire.derives.is_empty() && bench.wire.opens.is_empty());
}

#[test]
fn the_right_password_is_let_in_after_the_hint_and_then_nothing_is_held_against_it() {
    let extra = "connection_attempts = on\nfailed_login_limit = 2\nconnection_attempt_rate = 0\n";
    let mut bench = Bench::new(with_password(extra));
    for _ in 0..2 {
        assert!(says(&log_in(&mut bench, "wrong"), "C28P01\0"));
    }
    let told = log_in(&mut bench, "right");
    assert!(says(&told, "C53H04\0"), "not even the right one: {told:?}");
    let elsewhere = from_elsewhere(&mut bench);
    assert!(!bench.is_closed(elsewhere), "from another address it is another matter");
    bench.pass(wait_of(&told));
    assert!(!says(&log_in(&mut bench, "right"), "C53H04\0"));
    assert!(says(&log_in(&mut bench, "wrong"), "C28P01\0"));
    assert!(!says(&log_in(&mut bench, "right"), "C53H04\0"), "one failure is one failure");
}

#[test]
fn a_burst_passes_and_what_follows_is_told_when_to_come_back() {
    let extra = "connection_attempts = on\nconnection_attempt_burst = 3\nconnection_attempt_rate = 2\n";
    let mut bench = Bench::new(config(extra));
    for _ in 0..3 {
        let client = bench.connect("db");
        assert!(!bench.is_closed(client));
    }
    let refused = bench.connect("db");
    assert!(bench.is_closed(refused));
    let told = bench.heard(refused);
    assert!(says(&told, "C53H04\0") && says(&told, "SFATAL\0"), "{told:?}");
    assert_eq!(wait_of(&told), Duration::from_millis(500));
    let elsewhere = from_elsewhere(&mut bench);
    assert!(!bench.is_closed(elsewhere));
    bench.pass(Duration::from_millis(499));
    let refused = bench.connect("db");
    assert!(bench.is_closed(refused));
    bench.pass(Duration::from_millis(1));
    let admitted = bench.connect("db");
    assert!(!bench.is_closed(admitted));
    let counts = bench.engine.overview().attempts;
    assert_eq!((counts.too_many, counts.would_refuse, counts.sources), (2, 0, 2));
}

#[test]
fn observe_refuses_nobody_and_counts_what_on_would_have() {
    let extra = "connection_attempts = observe\nconnection_attempt_burst = 3\nconnection_attempt_rate = 1\nfailed_login_limit = 2\n";
    let mut bench = Bench::new(with_password(extra));
    for _ in 0..5 {
        assert!(says(&log_in(&mut bench, "wrong"), "C28P01\0"));
    }
    let counts = bench.engine.overview().attempts;
    assert_eq!((counts.would_refuse, counts.too_many, counts.refused_before), (3, 0, 0));
}

#[test]
fn off_remembers_nobody() {
    let mut bench = Bench::new(with_password("connection_attempt_burst = 1\nfailed_login_limit = 1\n"));
    for _ in 0..50 {
        assert!(says(&log_in(&mut bench, "wrong"), "C28P01\0"));
    }
    assert_eq!(bench.engine.overview().attempts.sources, 0);
}

#[test]
fn a_reload_holds_nothing_against_anybody() {
    let extra = "connection_attempts = on\nfailed_login_limit = 1\n";
    let mut bench = Bench::new(with_password(extra));
    log_in(&mut bench, "wrong");
    assert!(says(&log_in(&mut bench, "right"), "C53H04\0"));
    bench.engine.reload(&mut bench.wire, with_password(extra));
    assert!(!says(&log_in(&mut bench, "right"), "C53H04\0"));
}

#[test]
fn ten_thousand_clients_whose_server_refuses_their_password_cost_it_few_logins() {
    let mut bench = Bench::new(config(""));
    let mut logins = 0;
    for _ in 0..10_000 {
        bench.connect("db");
        while !bench.wire.opens.is_empty() {
            logins += 1;
            bench.fail(Cause::WrongPassword);
        }
        bench.pass(Duration::from_millis(10));
    }
    assert!(logins < 60, "{logins} in 100 s");
}

#[test]
fn a_storm_of_attempts_is_named_and_so_is_one_of_lost_requests() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let holder = bench.login();
    bench.say(holder, &query("BEGIN"));
    assert!(bench.engine.storm_rows().is_empty());
    // A hundred a second come, ask, and leave without an answer.
    for _ in 0..2_000 {
        let client = bench.accept();
        bench.say(client, &startup("db\0application_name\0cron"));
        assert!(bench.heard(client).ends_with(READY));
        bench.say(client, &query("SELECT 1"));
        bench.end(client);
        bench.pass(Duration::from_millis(10));
    }
    let rows = bench.engine.storm_rows();
    let named: Vec<_> =
        rows.iter().map(|row| (row.what, &*row.user, &*row.application_name, &*row.origin)).collect();
    assert_eq!(named, [("attempts", "u", "cron", "127.0.0.1"), ("lost_requests", "u", "cron", "127.0.0.1")]);
    assert!((90_000..=110_000).contains(&rows[0].rate_milli), "{rows:?}");
    assert_eq!(bench.engine.overview().storms, [("attempts", 1, 1), ("lost_requests", 1, 1)]);
    bench.pass(Duration::from_secs(11));
    assert_eq!(bench.engine.overview().storms, [("attempts", 1, 0), ("lost_requests", 1, 0)]);
    assert!(bench.engine.storm_rows().iter().all(|row| row.ended.is_some()), "over, and still shown");
}

#[test]
fn requests_that_are_served_are_no_storm_however_many() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let (first, second) = (bench.login(), bench.login());
    let server = bench.only_server();
    for _ in 0..2_000 {
        bench.say(first, &query("SELECT 1"));
        bench.say(second, &query("SELECT 2"));
        bench.answer(server, &super::bench::done());
        bench.answer(server, &super::bench::done());
        bench.pass(Duration::from_millis(10));
    }
    assert!(bench.engine.storm_rows().is_empty());
}
