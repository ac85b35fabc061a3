//! How large pools are and how long they and their servers last, with a real database behind them.

use std::time::Duration;

use drill::postgres::DATABASE;
use drill::process::Signal;
use drill::wire::{Connection, Error, Reply, frame};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, code, connect, eventually, value, within};

fn ask_later(mut client: Connection, sql: &'static str) -> JoinHandle<Result<(Reply, Instant), Error>> {
    tokio::spawn(async move {
        let reply = within(PATIENCE, sql, client.query(sql)).await?.into_result()?;
        Ok((reply, Instant::now()))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_gets_a_server_of_the_reserve_after_reserve_pool_timeout_and_the_next_has_to_wait() {
    let house = House::start(|setup| {
        setup
            .setting("default_pool_size", "1")
            .setting("reserve_pool_size", "1")
            .setting("reserve_pool_timeout", "1")
            .setting("server_idle_timeout", "3")
    });
    let mut holder = house.client().await;
    value(&mut holder, "begin").await;
    let began = Instant::now();
    let (first, second) = (house.client().await, house.client().await);
    let first = ask_later(first, "select pg_sleep(1.5)");
    house.wait_waiting(1).await;
    let second = ask_later(second, "select 2");
    house.wait_waiting(2).await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(house.backend_pids().len(), 1, "not before its time");
    let (_, answered) = first.await.unwrap().unwrap();
    assert!((2.4..5.0).contains(&(answered - began).as_secs_f64()), "{:?}", answered - began);
    let (_, behind) = second.await.unwrap().unwrap();
    assert!(behind >= answered, "the reserve has one place");
    assert_eq!(house.backend_pids().len(), 2);
    assert!(house.pooler.log().contains("taking connection from reserve_pool"));
    assert_eq!(house.metric("reserve_logins_total").await, 1.0);
    value(&mut holder, "commit").await;
    eventually(PATIENCE, "the servers have rested for long and are gone", || house.backend_pids().is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_after_each_transaction_leaves_nothing_of_it_to_the_next() {
    let house = House::start(|setup| {
        setup.setting("default_pool_size", "1").setting("server_reset_query_always", "1")
    });
    let (mut first, mut second) = (house.client().await, house.client().await);
    value(&mut first, "set work_mem = '77MB'; create temporary table mine (x int)").await;
    let pid = first.server_pid().await.unwrap();
    assert_eq!(second.server_pid().await.unwrap(), pid, "the connection stays");
    assert_ne!(value(&mut second, "show work_mem").await, "77MB");
    assert_eq!(value(&mut second, "select count(*) from pg_class where relname = 'mine'").await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_after_each_transaction_costs_no_client_its_prepared_statements() {
    for reset in ["DISCARD ALL", "RESET ALL", "DEALLOCATE ALL", "DISCARD TEMP"] {
        let house = House::start(|setup| {
            setup
                .setting("default_pool_size", "1")
                .setting("server_reset_query_always", "1")
                .setting("server_reset_query", reset)
        });
        let (mut first, mut second) = (house.client().await, house.client().await);
        let sync = frame::message(b'S', b"");
        let parse = frame::message(b'P', b"mine\0select 7\0\0\0");
        first.send(&[&parse[..], &sync].concat()).await.unwrap();
        assert_eq!(crate::support::reply(&mut first).await.unwrap().kinds, "1Z", "{reset}");
        let run = [
            &frame::message(b'B', b"\0mine\0\0\0\0\0\0\0")[..],
            &frame::message(b'D', b"P\0"),
            &frame::message(b'E', b"\0\0\0\0\0"),
            &sync,
        ]
        .concat();
        for _ in 0..3 {
            value(&mut second, "select 1").await;
            first.send(&run).await.unwrap();
            let reply = crate::support::reply(&mut first).await.unwrap();
            assert_eq!((reply.value(), reply.errors.len()), (Some("7"), 0), "{reset}: {reply:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_fast_close_sessions_end_between_transactions_when_their_database_moves() {
    let house = House::start(|setup| {
        setup
            .setting("pool_mode", "session")
            .setting("server_fast_close", "1")
            .database("moved = host=127.0.0.1 port=1 dbname=bench")
    });
    let port = house.postgres.port();
    let rewrite = |from: &str, to: &str| {
        let before = std::fs::read_to_string(house.pooler.config()).unwrap();
        assert!(before.contains(from), "no {from} in {before}");
        std::fs::write(house.pooler.config(), before.replace(from, to)).unwrap();
    };
    rewrite("port=1 dbname=bench", &format!("port={port} dbname=bench"));
    value(&mut house.console().await, "reload").await;
    let options = house.pooler.connect_options(drill::postgres::USER, "moved");
    let (mut resting, mut busy) = (connect(&options).await, connect(&options).await);
    value(&mut resting, "select 1").await;
    value(&mut busy, "begin; create temporary table kept (x int)").await;
    rewrite("dbname=bench", "dbname=bench timezone=UTC");
    value(&mut house.console().await, "reload").await;
    let told = within(PATIENCE, "the farewell", resting.wait_closed()).await.unwrap().expect("a farewell");
    assert_eq!((told.code.as_str(), told.message.as_str()), ("57P01", "database configuration changed"));
    // No transaction is lost.
    assert_eq!(value(&mut busy, "select count(*) from kept").await, "0");
    let reply = within(PATIENCE, "the commit", busy.query("commit")).await.unwrap();
    assert_eq!(reply.tags, ["COMMIT"]);
    let told = within(PATIENCE, "the farewell", busy.wait_closed()).await.unwrap().expect("a farewell");
    assert_eq!(told.code, "57P01");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pools_of_made_up_names_are_forgotten_and_come_back() {
    let house =
        House::start(|setup| setup.setting("autodb_idle_timeout", "1").setting("server_idle_timeout", "0.5"));
    let mut client = house.client().await;
    assert_eq!(value(&mut client, "select 1").await, "1");
    assert!(house.pooler.log().contains("registered new auto-database"));
    client.terminate().await.unwrap();
    let end = Instant::now() + PATIENCE;
    while !house.pool().await.is_empty() {
        assert!(Instant::now() < end, "the pool is still there");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(house.pooler.log().contains("cleaning up idle pool"));
    assert!(house.backend_pids().is_empty());
    assert_eq!(value(&mut house.client().await, "select current_database()").await, DATABASE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_were_opened_together_are_not_replaced_together() {
    let house = House::start(|setup| {
        setup.setting("default_pool_size", "8").setting("min_pool_size", "8").setting("server_lifetime", "10")
    });
    let _client = house.client().await;
    house.wait_pool("eight servers", |pool| pool["sv_idle"] == "8").await;
    let first = house.backend_pids();
    let left = || {
        let now = house.backend_pids();
        first.iter().filter(|pid| now.contains(pid)).count()
    };
    let mut seen = std::collections::BTreeSet::new();
    eventually(Duration::from_secs(30), "all are replaced", || {
        let left = left();
        seen.insert(left);
        left == 0
    })
    .await;
    assert!(seen.len() >= 4, "they went in steps of their own: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_died_at_rest_is_found_out_before_it_is_used() {
    let house = House::start(|setup| {
        setup
            .setting("server_check_delay", "0.5")
            .setting("default_pool_size", "2")
            .setting("query_timeout", "10")
    });
    house.warm(1).await;
    let mut client = house.client().await;
    let first = client.server_pid().await.unwrap();
    sleep(Duration::from_millis(800)).await;
    // Tested, and used again.
    assert_eq!(client.server_pid().await.unwrap(), first);
    sleep(Duration::from_millis(800)).await;
    // From here on nothing that goes there comes back, and nobody says so.
    drill::process::signal(first, Signal::STOP).unwrap();
    let began = Instant::now();
    assert_ne!(within(PATIENCE, "an answer", client.server_pid()).await.unwrap(), first);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    drill::process::signal(first, Signal::CONT).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_line_ends_with_a_word_of_its_own_that_no_dead_server_has() {
    let house = House::start(|setup| {
        setup
            .setting("default_pool_size", "1")
            .setting("query_wait_timeout", "1")
            .section("[users]\nbench = query_wait_timeout=0.5\n")
    });
    let (mut holder, mut waiter) = (house.client().await, house.client().await);
    value(&mut holder, "begin").await;
    let began = Instant::now();
    let told = within(PATIENCE, "the timeout", waiter.query("select 1")).await.unwrap_err();
    let took = began.elapsed();
    assert!((0.45..1.0).contains(&took.as_secs_f64()), "the user's own limit: {took:?}");
    assert_eq!(code(&told), "53H01", "{told}");
    let told = told.server().unwrap();
    assert_eq!(told.message, "query_wait_timeout");
    assert!(told.detail.contains("became free"), "{told:?}");
    // Saturation is no failure: nothing rests, and health says so.
    assert_eq!(house.metric("server_open_failures_total").await, 0.0);
    value(&mut holder, "commit").await;
    assert_eq!(value(&mut house.client().await, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_cannot_be_cancelled_costs_its_server_after_cancel_wait_timeout() {
    let house = House::start_behind_relay(|setup| {
        setup.setting("cancel_wait_timeout", "1").setting("default_pool_size", "1")
    });
    house.warm(1).await;
    let client = house.client().await;
    let asked = ask_later(client, "select pg_sleep(60)");
    house.wait_pool("it runs", |pool| pool["sv_active"] == "1").await;
    house.relay().freeze();
    asked.abort();
    let began = Instant::now();
    house.wait_pool("the server is given up", |pool| pool["sv_closing"] == "1").await;
    let took = began.elapsed();
    assert!((0.8..3.0).contains(&took.as_secs_f64()), "{took:?}");
    assert_eq!(house.metric_of("server_closes_total", "cause=\"drain_limit\"").await, 1.0);
    house.relay().thaw();
    assert_eq!(value(&mut house.client().await, "select 1").await, "1");
}

/// So many pools, each used once. The report was of hundreds of thousands.
const POOLS: usize = 200;
const POOLS_LONG: usize = 3_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_pools_that_were_used_once_cost_an_idle_process_nothing() {
    let is_long = std::env::var_os("HOLDFAST_LONG").is_some_and(|value| value == "1");
    let count = if is_long { POOLS_LONG } else { POOLS };
    let postgres = drill::postgres::PrivatePostgres::start_default().unwrap();
    let house = House::build_on(&crate::support::holdfast(), postgres, false, |setup, postgres| {
        let target = format!("host=127.0.0.1 port={} dbname=bench", postgres.port());
        let setup = (0..count).fold(setup, |setup, number| setup.database(&format!("d{number} = {target}")));
        setup
            .setting("server_idle_timeout", "0.3")
            .setting("server_login_rate", "0")
            .setting("max_db_connections", "5")
    });
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    for number in 0..count {
        let options = house.pooler.connect_options(drill::postgres::USER, &format!("d{number}"));
        let mut once = connect(&options).await;
        assert_eq!(value(&mut once, "select 1").await, "1");
        once.terminate().await.unwrap();
    }
    eventually(PATIENCE, "their servers are gone", || house.backend_pids().len() <= 1).await;
    assert_eq!(house.show("POOLS").await.len(), count + 2, "theirs, the client's and the console's");
    // Each has been looked at once more, for a notice that nobody needed (`query_wait_notify`).
    sleep(Duration::from_secs(6)).await;
    let sample = || drill::process::CpuSample::read(house.pooler.pid()).unwrap();
    let start = sample();
    sleep(Duration::from_secs(2)).await;
    let used = start.until(&sample());
    assert!(used < Duration::from_millis(5), "an idle process used {used:?}");

    assert_eq!(value(&mut client, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minimum_above_a_users_cap_does_not_open_and_evict_without_end() {
    let postgres = drill::postgres::PrivatePostgres::start_default().unwrap();
    let house = House::build_on(&crate::support::holdfast(), postgres, false, |setup, postgres| {
        let target = format!("host=127.0.0.1 port={} dbname=bench user=bench", postgres.port());
        setup
            .database(&format!("large = {target} min_pool_size=20"))
            .section("[users]\nbench = max_user_connections=2\n")
    });
    eventually(PATIENCE, "as many as the user may have", || house.backend_pids().len() == 2).await;
    let opened = house.metric("server_opens_total").await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(house.metric("server_opens_total").await, opened, "nothing is opened at rest");
    // Another pool of the user gets its share of the two.
    assert_eq!(value(&mut house.client().await, "select 1").await, "1");
}
