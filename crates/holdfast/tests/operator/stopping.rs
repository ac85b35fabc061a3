//! Signals that stop the pooler.

use std::time::Duration;

use drill::process::Signal;
use drill::wire::Connection;
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, code, value, within};

/// A stop that has nothing to wait for.
const PROMPT: Duration = Duration::from_secs(3);

async fn assert_refuses_new_clients(house: &House) {
    let began = Instant::now();
    loop {
        match within(PATIENCE, "a refusal", Connection::connect(&house.options())).await {
            Err(_) => return,
            Ok(_) => assert!(began.elapsed() < PROMPT, "new clients are let in"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn assert_ends_well(house: &mut House, limit: Duration) {
    let status = house.pooler.wait_end(limit);
    let status = status.unwrap_or_else(|| panic!("it still runs\n{}", house.pooler.log()));
    assert_eq!(status.code(), Some(0), "{}", house.pooler.log());
}

async fn assert_no_session_is_left(house: &House) {
    crate::support::eventually(PATIENCE, "no session is left at the database", || {
        house.backend_pids().is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn term_lets_clients_finish_and_refuses_new_ones() {
    let mut house = House::start(|setup| setup);
    let (mut busy, mut idle) = (house.client().await, house.client().await);
    value(&mut busy, "begin; create temp table t (x int) on commit drop; insert into t values (42)").await;
    house.pooler.signal(Signal::TERM).unwrap();
    assert_refuses_new_clients(&house).await;
    assert!(house.pooler.is_running());
    assert_eq!(value(&mut busy, "select x from t").await, "42");
    value(&mut busy, "commit").await;
    // Those who are there are served on until they leave.
    assert_eq!(value(&mut idle, "select 7").await, "7");
    busy.terminate().await.unwrap();
    idle.terminate().await.unwrap();
    assert_ends_well(&mut house, PROMPT);
    assert_no_session_is_left(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn term_ends_with_a_word_after_drain_timeout() {
    let mut house = House::start(|setup| setup.setting("drain_timeout", "1"));
    let mut client = house.client().await;
    value(&mut client, "begin").await;
    let began = Instant::now();
    house.pooler.signal(Signal::TERM).unwrap();
    let told = within(PATIENCE, "the farewell", client.wait_closed()).await.unwrap().expect("a farewell");
    assert_eq!(told.code, "57P01", "{told}");
    assert!((0.9..3.0).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());
    assert_ends_well(&mut house, PROMPT);
    assert_no_session_is_left(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn int_closes_idle_clients_at_once_and_busy_ones_after_their_transaction() {
    let mut house = House::start(|setup| setup);
    let (mut busy, mut idle) = (house.client().await, house.client().await);
    value(&mut busy, "begin; select 1").await;
    house.pooler.signal(Signal::INT).unwrap();
    let told = within(PROMPT, "the farewell", idle.wait_closed()).await.unwrap().expect("a farewell");
    assert_eq!(told.code, "57P01", "{told}");
    assert_eq!(value(&mut busy, "select 2").await, "2");
    assert_eq!(value(&mut busy, "commit; select 3").await, "3");
    let told = within(PROMPT, "the farewell", busy.wait_closed()).await.unwrap().expect("a farewell");
    assert_eq!(told.code, "57P01", "{told}");
    assert_ends_well(&mut house, PROMPT);
    assert_no_session_is_left(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_does_not_wait_any_more() {
    let mut house = House::start(|setup| setup);
    let mut client = house.client().await;
    value(&mut client, "begin").await;
    house.pooler.signal(Signal::TERM).unwrap();
    assert_refuses_new_clients(&house).await;
    house.pooler.signal(Signal::TERM).unwrap();
    let told = within(PROMPT, "the farewell", client.wait_closed()).await.unwrap().expect("a farewell");
    assert_eq!(told.code, "57P01", "{told}");
    assert_ends_well(&mut house, PROMPT);
    assert_no_session_is_left(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quit_ends_everything_at_once() {
    let mut house = House::start(|setup| setup);
    let mut client = house.client().await;
    value(&mut client, "begin").await;
    house.pooler.signal(Signal::QUIT).unwrap();
    let told = within(PROMPT, "the farewell", client.wait_closed()).await.unwrap().expect("a farewell");
    assert_eq!(told.code, "57P01", "{told}");
    assert_ends_well(&mut house, PROMPT);
    assert_no_session_is_left(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn term_of_an_idle_pooler_ends_it() {
    let mut house = House::start(|setup| setup);
    house.warm(2).await;
    house.pooler.signal(Signal::TERM).unwrap();
    assert_ends_well(&mut house, PROMPT);
    assert_no_session_is_left(&house).await;
    let refused = Connection::connect(&house.options()).await.unwrap_err();
    assert_eq!(code(&refused), "", "{refused}");
}
