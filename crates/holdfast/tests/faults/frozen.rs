//! The database or the network stands still for a while, and comes back.

use std::time::Duration;

use tokio::time::sleep;

use crate::ledger::Ledger;
use crate::load::{Load, busy_load};
use crate::support::{House, PATIENCE, not_run, within};

const POOL: usize = 10;

fn ten_servers(setup: drill::peer::PoolerSetup) -> drill::peer::PoolerSetup {
    setup.setting("default_pool_size", &POOL.to_string())
}

async fn steady_rate(load: &Load) -> f64 {
    load.recovery(1.0, 1.0, Duration::from_secs(10)).await;
    load.rate_over(Duration::from_secs(1)).await
}

fn long_forms() -> bool {
    std::env::var_os("HOLDFAST_LONG").is_some_and(|value| value == "1")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stopped_for_3_s_costs_patient_clients_no_error() {
    let mut house = House::start(ten_servers);
    let ledger = Ledger::open(&house).await;
    let load = busy_load(&house.options(), 60);
    let rate = steady_rate(&load).await;
    house.postgres.pause().unwrap();
    sleep(Duration::from_secs(3)).await;
    house.postgres.resume().unwrap();
    load.recovery(rate, 0.9, Duration::from_secs(3)).await;
    let heard = load.finish().await;
    heard.assert_clear(&[]);
    assert_eq!(heard.gave_up, 0);
    ledger.assert_balanced(&house).await;
}

/// Clients that wait longer than `query_wait_timeout` hear it, clients that are less patient leave and come back, and
/// neither keeps the pool from working again.
async fn stopped_for(span: Duration) {
    let mut house = House::start(|setup| ten_servers(setup).setting("query_wait_timeout", "4"));
    let ledger = Ledger::open(&house).await;
    let patient = busy_load(&house.options(), 40);
    let impatient = Load::start(&house.options(), 40, Duration::from_millis(10), Duration::from_secs(2));
    let rate = steady_rate(&patient).await + steady_rate(&impatient).await;
    house.postgres.pause().unwrap();
    sleep(span).await;
    let during = patient.heard();
    let (told, example) = during.errors.get("53H01").expect("those who waited for 4 s are told so");
    assert!(*told > 0 && example.message.contains("query_wait_timeout"), "{example}");
    assert!(impatient.heard().gave_up >= 40);
    house.postgres.resume().unwrap();
    // Both loads at once, as before.
    let both = async { patient.recovery(rate / 2.5, 0.9, Duration::from_secs(5)).await };
    tokio::join!(both, impatient.recovery(rate / 2.5, 0.9, Duration::from_secs(5)));
    // 08006: a query that was cancelled for a client that had left took its server along.
    patient.finish().await.assert_clear(&["53H01", "08001", "57014"]);
    impatient.finish().await.assert_clear(&["53H01", "08001", "57014"]);
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stopped_for_8_s_is_told_and_overcome() {
    stopped_for(Duration::from_secs(8)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stopped_for_30_s_is_told_and_overcome() {
    if !long_forms() {
        return not_run("the long form runs with HOLDFAST_LONG=1");
    }
    stopped_for(Duration::from_secs(30)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_frozen_for_7_s_is_overcome_within_2_s() {
    let house = House::start_behind_relay(|setup| ten_servers(setup).setting("query_wait_timeout", "4"));
    let ledger = Ledger::open(&house).await;
    house.relay().delay_new(Duration::from_millis(50));
    let load = Load::start(&house.options(), 80, Duration::from_millis(10), Duration::from_secs(5));
    let rate = steady_rate(&load).await;
    house.relay().freeze();
    sleep(Duration::from_secs(7)).await;
    assert!(load.heard().errors.contains_key("53H01"), "{:?}", load.heard());
    house.relay().thaw();
    load.recovery(rate, 0.9, Duration::from_secs(2)).await;
    load.finish().await.assert_clear(&["53H01"]);
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_answers_while_the_database_stands_still() {
    let mut house = House::start(ten_servers);
    let load = busy_load(&house.options(), 40);
    steady_rate(&load).await;
    house.postgres.pause().unwrap();
    sleep(Duration::from_millis(500)).await;
    let asked = within(Duration::from_secs(1), "SHOW POOLS of a frozen database", house.pool()).await;
    assert_eq!(asked["sv_active"], POOL.to_string());
    assert_eq!(asked["cl_waiting"], "30");
    house.postgres.resume().unwrap();
    within(PATIENCE, "the load ends", load.finish()).await.assert_clear(&[]);
}
