//! Attempts to connect: a wrong password that is tried again and again costs nothing after a few.

use std::time::Duration;

use drill::postgres::{ADMIN_USER, DATABASE, PrivatePostgres};
use drill::wire::{ConnectOptions, Connection, ServerError};
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, connect, holdfast, number, show, value, within};

fn options(house: &House, password: &str) -> ConnectOptions {
    let mut options = house.pooler.connect_options("alice", DATABASE);
    options.password = Some(password.to_owned());
    options
}

async fn refusal(house: &House) -> ServerError {
    let refused = within(PATIENCE, "a refusal", Connection::connect(&options(house, "wrong"))).await;
    refused.unwrap_err().server().expect("a reason").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_looked_at_five_times_and_then_turned_away_with_a_hint_that_is_true() {
    let postgres = PrivatePostgres::start_default().unwrap();
    postgres.admin("create role alice login").unwrap();
    let house = House::build_on(&holdfast(), postgres, false, |setup, _| {
        setup
            .setting("auth_type", "scram-sha-256")
            .setting("connection_attempts", "on")
            .setting("failed_login_limit", "5")
            .user("alice", "right")
            .user(ADMIN_USER, "admin")
    });
    for _ in 0..5 {
        assert_eq!(refusal(&house).await.code, "28P01");
    }
    let began = Instant::now();
    let mut turned_away = 0;
    let mut hint = String::new();
    // The rest is between half a second and a second.
    while began.elapsed() < Duration::from_millis(400) {
        let told = refusal(&house).await;
        if began.elapsed() < Duration::from_millis(400) {
            assert_eq!((told.code.as_str(), told.is_fatal()), ("53H04", true), "{told}");
            turned_away += 1;
            hint = told.hint;
        }
    }
    assert!(turned_away > 0);
    assert!(
        house.metric_of("connection_attempts_refused_total", "refused_before").await
            >= f64::from(turned_away)
    );
    let wait_ms: u64 = hint.split(' ').rev().nth(1).and_then(|number| number.parse().ok()).expect("a hint");
    sleep(Duration::from_millis(wait_ms)).await;
    let mut alice = within(PATIENCE, "log in", Connection::connect(&options(&house, "right"))).await.unwrap();
    assert_eq!(value(&mut alice, "select current_user").await, "alice");
    let mut options = house.pooler.connect_options(ADMIN_USER, "pgbouncer");
    options.password = Some("admin".to_owned());
    let mut console = connect(&options).await;
    let events = show(&mut console, "EVENTS").await;
    let turned = events.iter().find(|event| event["event"] == "attempt_refused").expect("an event");
    assert!(number(turned, "count") >= 1, "{turned:?}");
    assert!(show(&mut console, "STORMS").await.is_empty(), "a handful is none");
}
