//! Limits on clients, servers and time.

use std::time::Duration;

use drill::wire::{Address, Connection, TransactionStatus};
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, code, number, value, within};

/// How long something took is within a limit of a second: not before it, and not much after.
fn assert_about_a_second(took: Duration) {
    assert!((0.95..2.5).contains(&took.as_secs_f64()), "{took:?}");
}

/// The last word to a client that is closed.
async fn farewell(client: &mut Connection) -> drill::wire::ServerError {
    let told = within(PATIENCE, "the farewell", client.wait_closed()).await.unwrap().expect("a farewell");
    assert!(told.is_fatal(), "{told}");
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_more_than_max_client_conn_is_told_so() {
    let house = House::start(|setup| setup.setting("max_client_conn", "3"));
    let mut clients = vec![house.client().await, house.client().await, house.client().await];
    let refused = within(PATIENCE, "a refusal", Connection::connect(&house.options())).await.unwrap_err();
    let told = refused.server().unwrap();
    assert_eq!((told.code.as_str(), told.is_fatal()), ("53300", true));
    assert!(told.message.contains("max_client_conn"), "{told}");
    clients.pop().unwrap().terminate().await.unwrap();
    house.wait_pool("one has left", |pool| pool["cl_active"] == "2").await;
    house.client().await;
    assert_eq!(house.metric("clients_refused_total").await, 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn min_pool_size_is_open_before_anybody_asks_where_the_user_is_known() {
    let postgres = drill::postgres::PrivatePostgres::start_default().unwrap();
    let house = House::build_on(&crate::support::holdfast(), postgres, false, |setup, postgres| {
        let target = format!("host=127.0.0.1 port={} dbname=bench user=bench", postgres.port());
        setup.database(&format!("ready = {target} min_pool_size=3")).setting("server_idle_timeout", "1")
    });
    crate::support::eventually(PATIENCE, "three servers", || house.backend_pids().len() == 3).await;
    // server_idle_timeout leaves the minimum alone.
    sleep(Duration::from_secs(2)).await;
    assert_eq!(house.backend_pids().len(), 3);
    house.postgres.kill_backends(drill::process::Signal::TERM).unwrap();
    crate::support::eventually(PATIENCE, "three servers again", || house.backend_pids().len() == 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn min_pool_size_is_filled_after_the_first_client() {
    let house = House::start(|setup| setup.setting("min_pool_size", "4"));
    let _client = house.client().await;
    house.wait_pool("four servers", |pool| pool["sv_idle"] == "4").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_servers_are_closed_after_server_idle_timeout() {
    let house = House::start(|setup| setup.setting("server_idle_timeout", "1"));
    house.warm(3).await;
    let began = Instant::now();
    house.wait_pool("no server is left", |pool| pool["sv_idle"] == "0").await;
    assert!(began.elapsed() < Duration::from_millis(2500), "{:?}", began.elapsed());
    crate::support::eventually(PATIENCE, "no session is left", || house.backend_pids().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_older_than_server_lifetime_are_replaced_between_transactions() {
    let house = House::start(|setup| setup.setting("server_lifetime", "1").setting("default_pool_size", "1"));
    let mut client = house.client().await;
    value(&mut client, "begin").await;
    let first = client.server_pid().await.unwrap();
    sleep(Duration::from_millis(1500)).await;
    // Not in the middle of a transaction.
    assert_eq!(client.server_pid().await.unwrap(), first);
    value(&mut client, "commit").await;
    assert_ne!(client.server_pid().await.unwrap(), first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_transaction_timeout_ends_the_session_and_rolls_back() {
    let house = House::start(|setup| {
        setup.setting("idle_transaction_timeout", "1").setting("default_pool_size", "1")
    });
    house.postgres.admin("create table kept (x int); grant all on kept to public").unwrap();
    let (mut client, mut other) = (house.client().await, house.client().await);
    value(&mut client, "begin; insert into kept values (1)").await;
    let began = Instant::now();
    let told = farewell(&mut client).await;
    assert_about_a_second(began.elapsed());
    assert_eq!(told.code, "25P03");
    assert_eq!(value(&mut other, "select count(*) from kept").await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn query_timeout_ends_the_query_and_the_session() {
    let house = House::start(|setup| setup.setting("query_timeout", "1").setting("default_pool_size", "1"));
    let (mut client, mut other) = (house.client().await, house.client().await);
    let began = Instant::now();
    let told = within(PATIENCE, "the timeout", client.query("select pg_sleep(30)")).await.unwrap_err();
    assert_about_a_second(began.elapsed());
    assert_eq!(code(&told), "57014", "{told}");
    assert!(told.server().unwrap().message.contains("query timeout"), "{told}");
    // The server is free again long before those 30 s.
    assert_eq!(value(&mut other, "select 1").await, "1");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_timeout_ends_a_long_transaction() {
    let house = House::start(|setup| setup.setting("transaction_timeout", "1"));
    let mut client = house.client().await;
    let began = Instant::now();
    value(&mut client, "begin").await;
    let told = loop {
        match within(PATIENCE, "a query", client.query("select 1")).await {
            Ok(reply) => assert_eq!(reply.status, Some(TransactionStatus::InTransaction)),
            Err(told) => break told,
        }
        sleep(Duration::from_millis(50)).await;
    };
    assert_about_a_second(began.elapsed());
    assert_eq!(code(&told), "57014", "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_idle_timeout_closes_silent_clients_outside_of_transactions() {
    let house = House::start(|setup| setup.setting("client_idle_timeout", "1"));
    let (mut idle, mut busy) = (house.client().await, house.client().await);
    value(&mut busy, "begin").await;
    let began = Instant::now();
    assert_eq!(farewell(&mut idle).await.code, "57P05");
    assert_about_a_second(began.elapsed());
    assert_eq!(value(&mut busy, "commit; select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_login_timeout_closes_those_who_never_log_in() {
    let house = House::start(|setup| setup.setting("client_login_timeout", "1"));
    let address = Address::Tcp(house.pooler.address());
    let began = Instant::now();
    let mut silent = Connection::open(&address, None).await.unwrap();
    let mut half = Connection::open(&address, None).await.unwrap();
    half.send(&house.options().startup_frame()[..6]).await.unwrap();
    farewell(&mut silent).await;
    farewell(&mut half).await;
    assert_about_a_second(began.elapsed());
    assert_eq!(house.metric("clients_in_login").await, 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn max_db_connections_is_shared_by_all_users_of_a_database() {
    let postgres = drill::postgres::PrivatePostgres::start_default().unwrap();
    postgres.admin("create role ann login; create role bob login").unwrap();
    let house = House::build_on(&crate::support::holdfast(), postgres, false, |setup, _| {
        setup.setting("max_db_connections", "3").user("ann", "").user("bob", "")
    });
    let mut tasks = Vec::new();
    for user in ["ann", "bob", "ann", "bob", "ann", "bob", "ann", "bob"] {
        let options = house.pooler.connect_options(user, "bench");
        tasks.push(tokio::spawn(async move {
            let mut client = crate::support::connect(&options).await;
            for _ in 0..5 {
                value(&mut client, "select pg_sleep(0.05)").await;
            }
        }));
    }
    let mut most = 0;
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        most = most.max(house.sessions_at_once());
        sleep(Duration::from_millis(20)).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!((2..=3).contains(&most), "{most} sessions at once");
    let open: usize = house.show("POOLS").await.iter().skip(1).map(|row| number(row, "sv_idle")).sum();
    assert!(open <= 3, "{open}");
}
