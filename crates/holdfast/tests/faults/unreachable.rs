//! Nobody listens at the database's address, or nobody answers there.

use std::time::Duration;

use drill::postgres::StopMode;
use drill::relay::Cut;
use drill::wire::Connection;
use tokio::time::{Instant, sleep};

use crate::ledger::Ledger;
use crate::stub::{Behaviour, Stub};
use crate::support::{House, PATIENCE, code, error, value, within};

/// Starts a question and gives the client back with whatever came of it, and after how long.
fn ask_later(
    mut client: Connection,
    sql: &'static str,
) -> tokio::task::JoinHandle<(Connection, Outcome, Duration)> {
    tokio::spawn(async move {
        let began = Instant::now();
        let outcome =
            within(PATIENCE, sql, client.query(sql)).await.and_then(drill::wire::Reply::into_result);
        (client, outcome, began.elapsed())
    })
}

type Outcome = Result<drill::wire::Reply, drill::wire::Error>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_port_is_waited_out_for_server_login_retry() {
    let mut house = House::start(|setup| setup.setting("server_login_retry", "5"));
    let ledger = Ledger::open(&house).await;
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    house.postgres.stop(StopMode::Fast).unwrap();
    let asked = ask_later(client, "select 2");
    sleep(Duration::from_secs(1)).await;
    assert!(!asked.is_finished(), "within server_login_retry nobody hears of it");
    house.postgres.start_again().unwrap();
    let (_, outcome, _) = asked.await.unwrap();
    assert_eq!(outcome.unwrap().value(), Some("2"));
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_refused_for_longer_is_told_with_its_cause_and_service_comes_back() {
    let mut house = House::start(|setup| setup.setting("server_login_retry", "1"));
    let ledger = Ledger::open(&house).await;
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    house.postgres.stop(StopMode::Fast).unwrap();
    let (mut client, outcome, waited) = ask_later(client, "select 2").await.unwrap();
    let told = outcome.unwrap_err();
    assert_eq!(code(&told), "08001");
    let text = told.server().unwrap().message.clone();
    assert!(text.contains("connection refused") && text.contains("server_login_retry"), "{text}");
    assert!((1.0..3.5).contains(&waited.as_secs_f64()), "{waited:?}");
    // From then on nobody waits in vain, the session goes on, and new clients hear it too.
    let began = Instant::now();
    assert_eq!(error(&mut client, "select 3").await.code, "08001");
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    let pool = house.pool().await;
    assert_eq!(pool["failure"], "refused");
    house.postgres.start_again().unwrap();
    // Nobody asks for 2 s: the pooler itself has to be ready for the first question after that.
    sleep(Duration::from_secs(2)).await;
    assert_eq!(value(&mut client, "select 4").await, "4");
    drop(client);
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_who_keep_asking_are_served_within_2_s_of_the_servers_return() {
    let mut house = House::start(|setup| setup.setting("server_login_retry", "1"));
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    house.postgres.stop(StopMode::Fast).unwrap();
    let end = Instant::now() + Duration::from_secs(6);
    while Instant::now() < end {
        assert_eq!(error(&mut client, "select 2").await.code, "08001");
        sleep(Duration::from_millis(50)).await;
    }
    house.postgres.start_again().unwrap();
    let back = Instant::now();
    while client.query("select 3").await.unwrap().error().is_some() {
        assert!(back.elapsed() < Duration::from_secs(2), "still refused");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_black_hole_is_left_after_server_connect_timeout() {
    let house = House::start_behind_relay(|setup| {
        setup.setting("server_connect_timeout", "1").setting("server_login_retry", "2")
    });
    let ledger = Ledger::open(&house).await;
    house.relay().swallow_new(true);
    let began = Instant::now();
    let refused = within(PATIENCE, "a login", Connection::connect(&house.options())).await.unwrap_err();
    assert_eq!(code(&refused), "08001", "{refused}");
    assert!(refused.to_string().contains("timeout"), "{refused}");
    assert!((2.0..6.0).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());
    house.relay().swallow_new(false);
    house.relay().cut(Cut::Close);
    let back = Instant::now();
    let mut client = loop {
        match Connection::connect(&house.options()).await {
            Ok(client) => break client,
            Err(refused) => assert_eq!(code(&refused), "08001", "{refused}"),
        }
        assert!(back.elapsed() < Duration::from_secs(4), "still refused");
        sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(value(&mut client, "select 1").await, "1");
    drop(client);
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_black_hole_for_new_servers_leaves_the_open_ones_at_work() {
    let house = House::start_behind_relay(|setup| {
        setup
            .setting("server_connect_timeout", "1")
            .setting("server_login_retry", "2")
            .setting("default_pool_size", "5")
    });
    house.warm(1).await;
    house.relay().swallow_new(true);
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(ask_later(house.client().await, "select pg_sleep(0.5)"));
    }
    for client in clients {
        let (_, outcome, waited) = client.await.unwrap();
        outcome.unwrap();
        assert!(waited < Duration::from_secs(4), "{waited:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_dies_in_the_middle_is_told_and_not_repeated_in_a_storm() {
    let stub = Stub::start(Behaviour::EndsDuringLogin).await;
    let house = House::start(|setup| {
        let line = format!("dying = host=127.0.0.1 port={}", stub.port());
        setup.setting("server_login_retry", "1").database(&line)
    });
    let options = house.pooler.connect_options("bench", "dying");
    let refused = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap_err();
    assert_eq!(code(&refused), "08001", "{refused}");
    assert!(refused.to_string().contains("server closed the connection during login"), "{refused}");
    assert!(stub.logins() <= 20, "{} logins in a second", stub.logins());
    let mut neighbour = house.client().await;
    assert_eq!(value(&mut neighbour, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_closes_right_after_login_is_not_stormed() {
    let stub = Stub::start(Behaviour::EndsAfterLogin).await;
    let house = House::start(|setup| {
        let line = format!("fickle = host=127.0.0.1 port={}", stub.port());
        setup.setting("server_login_retry", "1").setting("query_wait_timeout", "2").database(&line)
    });
    let options = house.pooler.connect_options("bench", "fickle");
    let mut client = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap();
    let asked = within(PATIENCE, "an answer or an error", client.query("select 1")).await;
    let told = asked.and_then(drill::wire::Reply::into_result).expect_err("nobody can answer");
    assert!(["08001", "08006", "53H01"].contains(&code(&told).as_str()), "{told}");
    sleep(Duration::from_secs(1)).await;
    assert!(stub.logins() <= 60, "{} logins in about 3 s", stub.logins());
    let mut neighbour = house.client().await;
    assert_eq!(value(&mut neighbour, "select 1").await, "1");
}
