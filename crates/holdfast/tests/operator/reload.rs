//! A changed file, put in force by RELOAD or HUP, on pools that stand still too.

use std::time::Duration;

use drill::process::Signal;
use drill::wire::{Connection, Error, Reply};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, code, error, eventually, value, within};

/// Rewrites a line of the pooler's file.
fn change(house: &House, from: &str, to: &str) {
    let before = std::fs::read_to_string(house.pooler.config()).unwrap();
    assert!(before.contains(from), "no {from} in {before}");
    std::fs::write(house.pooler.config(), before.replace(from, to)).unwrap();
}

async fn reload(house: &House) {
    value(&mut house.console().await, "reload").await;
}

fn ask_later(mut client: Connection, sql: &'static str) -> JoinHandle<Result<Reply, Error>> {
    tokio::spawn(async move { within(PATIENCE, sql, client.query(sql)).await.and_then(Reply::into_result) })
}

/// A pool of 2 whose servers are frozen in the middle of a query, and 3 clients in line behind them.
async fn stalled() -> (House, Vec<JoinHandle<Result<Reply, Error>>>, Vec<JoinHandle<Result<Reply, Error>>>) {
    let house = House::start_behind_relay(|setup| {
        setup.setting("default_pool_size", "2").setting("query_wait_timeout", "120")
    });
    house.warm(2).await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(house.client().await);
    }
    house.relay().freeze();
    let waiters = clients.split_off(2);
    let holders = clients.into_iter().map(|client| ask_later(client, "select 'held'")).collect();
    house.wait_pool("both servers are taken", |pool| pool["sv_active"] == "2").await;
    let waiters = waiters.into_iter().map(|client| ask_later(client, "select 'waited'")).collect();
    house.wait_waiting(3).await;
    (house, holders, waiters)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shorter_query_wait_timeout_frees_the_waiters_of_a_stalled_pool_at_once() {
    let (house, holders, waiters) = stalled().await;
    sleep(Duration::from_secs(1)).await;
    change(&house, "query_wait_timeout = 120", "query_wait_timeout = 0.5");
    let began = Instant::now();
    reload(&house).await;
    for waiter in waiters {
        let told = waiter.await.unwrap().unwrap_err();
        assert_eq!(code(&told), "53H01", "{told}");
    }
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    house.relay().thaw();
    for holder in holders {
        assert_eq!(holder.await.unwrap().unwrap().value(), Some("held"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_query_wait_timeout_counts_from_when_the_clients_queued() {
    let (house, _holders, waiters) = stalled().await;
    let queued = Instant::now();
    sleep(Duration::from_millis(500)).await;
    change(&house, "query_wait_timeout = 120", "query_wait_timeout = 1.5");
    reload(&house).await;
    for waiter in waiters {
        assert_eq!(code(&waiter.await.unwrap().unwrap_err()), "53H01");
    }
    let waited = queued.elapsed().as_secs_f64();
    assert!((1.2..2.0).contains(&waited), "{waited} s");
    house.relay().thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_larger_pool_serves_the_waiters_at_once() {
    let house =
        House::start(|setup| setup.setting("default_pool_size", "2").setting("query_wait_timeout", "30"));
    let mut holders = Vec::new();
    for _ in 0..2 {
        let mut client = house.client().await;
        value(&mut client, "begin").await;
        holders.push(client);
    }
    let mut waiters = Vec::new();
    for _ in 0..3 {
        waiters.push(ask_later(house.client().await, "select 'served'"));
    }
    house.wait_waiting(3).await;
    change(&house, "default_pool_size = 2", "default_pool_size = 5");
    let began = Instant::now();
    reload(&house).await;
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().unwrap().value(), Some("served"));
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(house.pool().await["pool_size"], "5");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_smaller_pool_gives_its_idle_servers_up() {
    let house = House::start(|setup| setup.setting("default_pool_size", "5"));
    house.warm(5).await;
    change(&house, "default_pool_size = 5", "default_pool_size = 2");
    reload(&house).await;
    house.wait_pool("2 servers are left", |pool| pool["sv_idle"] == "2" && pool["sv_closing"] == "0").await;
    assert_eq!(house.backend_pids().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_file_changes_nothing_and_its_line_is_named() {
    let house =
        House::start(|setup| setup.setting("default_pool_size", "2").setting("query_wait_timeout", "7"));
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    change(&house, "default_pool_size = 2", "default_pool_size = 9\nquery_wait_timeoutt = 3");
    let line = std::fs::read_to_string(house.pooler.config()).unwrap();
    let line = line.lines().position(|line| line.starts_with("query_wait_timeoutt")).unwrap() + 1;
    let told = error(&mut house.console().await, "reload").await;
    // The words of PgBouncer's console; the log says where.
    assert!(told.message.starts_with("RELOAD failed"), "{told}");
    let place = format!("pgbouncer.ini:{line}:");
    eventually(PATIENCE, "the log names the line and the word", || {
        let log = house.pooler.log();
        log.lines().any(|line| line.contains(&place) && line.contains("query_wait_timeoutt"))
    })
    .await;
    let log = house.pooler.log();
    assert_eq!(log.matches("query_wait_timeoutt").count(), 1, "once: {log}");
    assert_eq!(house.pool().await["pool_size"], "2");
    assert_eq!(value(&mut client, "select 2").await, "2");
    // Mended, it is taken.
    change(&house, "\nquery_wait_timeoutt = 3", "");
    reload(&house).await;
    assert_eq!(house.pool().await["pool_size"], "9");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hup_reads_the_file_again() {
    let house = House::start(|setup| setup.setting("default_pool_size", "2"));
    let _client = house.client().await;
    change(&house, "default_pool_size = 2", "default_pool_size = 6");
    house.pooler.signal(Signal::HUP).unwrap();
    house.wait_pool("the new size is in force", |pool| pool["pool_size"] == "6").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setting_that_needs_a_restart_is_named() {
    let house = House::start(|setup| setup.setting("listen_backlog", "100"));
    change(&house, "listen_backlog = 100", "listen_backlog = 200");
    let reply = house.console().await.query("reload").await.unwrap();
    let notices: String = reply.notices.iter().map(|notice| notice.message.clone()).collect();
    assert!(reply.errors.is_empty() && notices.contains("listen_backlog needs a restart"), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_file_shows_in_console_and_metrics_until_it_is_in_force() {
    let house =
        House::start(|setup| setup.setting("default_pool_size", "2").setting("listen_backlog", "100"));
    let state = async || house.show("CONFIG_HASH").await.remove(0)["state"].clone();
    assert_eq!(state().await, "same");
    change(&house, "default_pool_size = 2", "default_pool_size = 3");
    change(&house, "listen_backlog = 100", "listen_backlog = 101");
    assert_eq!(state().await, "not_reloaded");
    assert_eq!(house.metric("config_not_reloaded").await, 2.0);
    reload(&house).await;
    assert_eq!(state().await, "pending_restart");
    let rows = house.show("CONFIG_TRUTH").await;
    let backlog = rows.iter().find(|row| row["key"] == "listen_backlog").unwrap();
    assert_eq!([&*backlog["file"], &*backlog["loaded"], &*backlog["live"]], ["101", "101", "100"]);
    assert_eq!(backlog["state"], "pending_restart");
    assert_eq!(house.metric("config_not_reloaded").await, 0.0);
    assert_eq!(house.metric("config_pending_restart").await, 1.0);
}
