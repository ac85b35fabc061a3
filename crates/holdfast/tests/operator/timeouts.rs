//! Limits on time that a line of `[users]` sets: they count before the general ones, for that user alone.

use std::time::Duration;

use drill::wire::{Connection, TransactionStatus};
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, code, connect, holdfast, value, within};

/// A house in which everything may take an hour, but for user `ann`, who has half a second for `setting`.
fn house(setting: &str) -> House {
    let postgres = drill::postgres::PrivatePostgres::start_default().unwrap();
    postgres.admin("create role ann login").unwrap();
    House::build_on(&holdfast(), postgres, false, |setup, _| {
        setup.setting(setting, "1h").user("ann", "").section(&format!("[users]\nann = {setting}=0.5\n"))
    })
}

async fn ann(house: &House) -> Connection {
    connect(&house.pooler.connect_options("ann", "bench")).await
}

fn assert_half_a_second(began: Instant) {
    let took = began.elapsed().as_secs_f64();
    assert!((0.45..1.5).contains(&took), "{took} s");
}

/// The last word to a client that is closed.
async fn farewell(client: &mut Connection) -> String {
    within(PATIENCE, "the farewell", client.wait_closed()).await.unwrap().expect("a farewell").code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_own_query_timeout_counts_before_the_general_one() {
    let house = house("query_timeout");
    let (mut ann, mut other) = (ann(&house).await, house.client().await);
    let began = Instant::now();
    let told = within(PATIENCE, "the timeout", ann.query("select pg_sleep(30)")).await.unwrap_err();
    assert_half_a_second(began);
    assert_eq!(code(&told), "57014", "{told}");
    assert_eq!(value(&mut other, "select pg_sleep(1) is null").await, "f");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_own_idle_transaction_timeout_counts_before_the_general_one() {
    let house = house("idle_transaction_timeout");
    let (mut ann, mut other) = (ann(&house).await, house.client().await);
    value(&mut other, "begin").await;
    value(&mut ann, "begin").await;
    let began = Instant::now();
    assert_eq!(farewell(&mut ann).await, "25P03");
    assert_half_a_second(began);
    assert_eq!(value(&mut other, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_own_transaction_timeout_counts_before_the_general_one() {
    let house = house("transaction_timeout");
    let (mut ann, mut other) = (ann(&house).await, house.client().await);
    value(&mut other, "begin").await;
    let began = Instant::now();
    value(&mut ann, "begin").await;
    let told = loop {
        match within(PATIENCE, "a query", ann.query("select 1")).await {
            Ok(reply) => assert_eq!(reply.status, Some(TransactionStatus::InTransaction)),
            Err(told) => break told,
        }
        sleep(Duration::from_millis(20)).await;
    };
    assert_half_a_second(began);
    assert_eq!(code(&told), "57014", "{told}");
    assert_eq!(value(&mut other, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_own_client_idle_timeout_counts_before_the_general_one() {
    let house = house("client_idle_timeout");
    let (mut ann, mut other) = (ann(&house).await, house.client().await);
    value(&mut ann, "select 1").await;
    let began = Instant::now();
    assert_eq!(farewell(&mut ann).await, "57P05");
    assert_half_a_second(began);
    assert_eq!(value(&mut other, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_databases_own_limits_count_before_the_general_ones_and_behind_the_users() {
    let postgres = drill::postgres::PrivatePostgres::start_default().unwrap();
    postgres.admin("create role ann login").unwrap();
    let house = House::build_on(&holdfast(), postgres, false, |setup, postgres| {
        let target = format!("host=127.0.0.1 port={} dbname=bench", postgres.port());
        setup
            .database(&format!("short = {target} query_timeout=0.5 client_idle_timeout=5"))
            .setting("query_timeout", "1h")
            .user("ann", "")
            .section("[users]\nann = query_timeout=1h\n")
    });
    let connect_to = |user, database| house.pooler.connect_options(user, database);
    let mut short = connect(&connect_to(drill::postgres::USER, "short")).await;
    let mut plain = house.client().await;
    let mut ann = connect(&connect_to("ann", "short")).await;
    let began = Instant::now();
    let told = within(PATIENCE, "the timeout", short.query("select pg_sleep(30)")).await.unwrap_err();
    assert_half_a_second(began);
    assert_eq!(code(&told), "57014", "{told}");
    for client in [&mut plain, &mut ann] {
        assert_eq!(value(client, "select pg_sleep(1) is null").await, "f");
    }
    assert_eq!(farewell(&mut ann).await, "57P05", "the database's own, since the user has none");
    assert_eq!(value(&mut plain, "select 1").await, "1");
}
