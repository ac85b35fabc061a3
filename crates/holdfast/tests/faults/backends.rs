//! Sessions at the database die: one, all of them, or the whole server in a restart.

use std::time::Duration;

use drill::postgres::StopMode;
use drill::process::Signal;

use crate::ledger::Ledger;
use crate::load::{Load, busy_load};
use crate::support::{House, value};

/// The pooler's own word for a server that ended, and what PostgreSQL says before it ends a session.
const ENDS: [&str; 4] = ["08006", "57P01", "57P02", "57P03"];

async fn loaded() -> (House, Ledger, Load, f64) {
    let house = House::start(|setup| setup.setting("default_pool_size", "10"));
    let ledger = Ledger::open(&house).await;
    let load = busy_load(&house.options(), 40);
    load.recovery(1.0, 1.0, Duration::from_secs(10)).await;
    let rate = load.rate_over(Duration::from_secs(1)).await;
    (house, ledger, load, rate)
}

/// At least 90 % of what was before within `limit`; then everybody leaves and nothing may be left.
async fn assert_back(house: House, ledger: Ledger, load: Load, rate: f64, limit: Duration) {
    load.recovery(rate, 0.9, limit).await;
    load.finish().await.assert_clear(&ENDS);
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_of_every_backend_under_load_is_told_and_overcome() {
    let (house, ledger, load, rate) = loaded().await;
    let killed = house.postgres.kill_backends(Signal::KILL).unwrap();
    assert_eq!(killed.len(), 10);
    assert_back(house, ledger, load, rate, Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_killed_session_ends_only_the_client_that_used_it() {
    let house = House::start(|setup| setup.setting("default_pool_size", "3"));
    let ledger = Ledger::open(&house).await;
    let (mut hit, mut other) = (house.client().await, house.client().await);
    value(&mut hit, "begin").await;
    let pid = hit.server_pid().await.unwrap();
    value(&mut other, "begin").await;
    house.postgres.admin(&format!("select pg_terminate_backend({pid})")).unwrap();
    // PostgreSQL's own farewell, and then the end.
    let told = hit.wait_closed().await.unwrap().expect("an error before the end");
    assert!(told.is_fatal() && ENDS.contains(&told.code.as_str()), "{told}");
    assert_eq!(value(&mut other, "commit; select 7").await, "7");
    let mut next = house.client().await;
    assert_eq!(value(&mut next, "select 8").await, "8");
    drop((hit, other, next));
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_idle_session_costs_no_client_an_error() {
    let house = House::start(|setup| setup.setting("default_pool_size", "3"));
    let ledger = Ledger::open(&house).await;
    house.warm(3).await;
    let mut client = house.client().await;
    let dead = house.backend_pids();
    house
        .postgres
        .admin("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'bench'")
        .unwrap();
    house.wait_pool("the dead servers are noticed", |pool| pool["sv_idle"] == "0").await;
    let pid = client.server_pid().await.unwrap();
    assert!(!dead.contains(&pid), "{pid} of {dead:?}");
    drop(client);
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_restart_under_load_is_told_and_overcome() {
    let (mut house, ledger, load, rate) = loaded().await;
    house.postgres.restart(StopMode::Fast).unwrap();
    assert_back(house, ledger, load, rate, Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_immediate_restart_under_load_is_told_and_overcome() {
    let (mut house, ledger, load, rate) = loaded().await;
    house.postgres.restart(StopMode::Immediate).unwrap();
    assert_back(house, ledger, load, rate, Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_in_no_transaction_keeps_its_session_over_a_restart() {
    let mut house = House::start(|setup| setup.setting("default_pool_size", "3"));
    let ledger = Ledger::open(&house).await;
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    house.postgres.restart(StopMode::Fast).unwrap();
    assert_eq!(value(&mut client, "select 2").await, "2");
    drop(client);
    ledger.assert_balanced(&house).await;
}
