//! There are no descriptors left.

use std::time::Duration;

use drill::process::CpuSample;
use drill::wire::{Address, Connection};
use tokio::time::{Instant, sleep};

use crate::ledger::Ledger;
use crate::support::{House, PATIENCE, code, holdfast_with_descriptors, number, value, within};

/// Descriptors of the process: what the pools and the reserve leave is room for some 50 clients.
const DESCRIPTORS: u32 = 128;

/// More than there are descriptors, fewer than those and the backlog together.
const SILENT: usize = 200;

fn small_house(folder: &std::path::Path) -> House {
    let program = holdfast_with_descriptors(DESCRIPTORS, folder);
    House::build(&program, drill::postgres::PostgresOptions::default(), false, |setup| {
        setup.setting("default_pool_size", "5").setting("client_login_timeout", "60")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn surplus_clients_of_a_small_descriptor_table_hear_53300_and_the_console_stays() {
    let folder = tempfile::tempdir().unwrap();
    let house = small_house(folder.path());
    let ledger = Ledger::open(&house).await;
    let room = house.metric("client_limit").await as usize;
    assert!((30..100).contains(&room), "{room}");
    let mut clients = Vec::new();
    for number in 0..room {
        let client = within(PATIENCE, "a login", Connection::connect(&house.options())).await;
        clients.push(client.unwrap_or_else(|error| panic!("client {number}: {error}")));
    }
    for _ in 0..100 {
        let refused = within(PATIENCE, "a refusal", Connection::connect(&house.options())).await.unwrap_err();
        assert_eq!(code(&refused), "53300", "{refused}");
    }
    // Those who are in are served, and the console is there for the one who has to act.
    for client in &mut clients {
        assert_eq!(value(client, "select 1").await, "1");
    }
    assert_eq!(number(&house.pool().await, "cl_active"), room);
    drop(clients.split_off(room / 2));
    eventually_lets_in(&house).await;
    drop(clients);
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_descriptor_table_filled_by_silent_connections_costs_no_cpu_and_no_log_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let house = small_house(folder.path());
    let ledger = Ledger::open(&house).await;
    let mut client = house.client().await;
    let mut console = house.console().await;
    value(&mut client, "select 1").await;
    let address = Address::Tcp(house.pooler.address());
    let mut silent = Vec::new();
    for _ in 0..SILENT {
        silent.push(Connection::open(&address, None).await.unwrap());
    }
    sleep(Duration::from_millis(500)).await;

    let before = CpuSample::read(house.pooler.pid()).unwrap();
    let span = Duration::from_secs(4);
    sleep(span).await;
    let used = before.until(&CpuSample::read(house.pooler.pid()).unwrap());
    assert!(used < span / 20, "{used:?} of {span:?}");
    // Once in its period, however often it is tried.
    let lines = house.pooler.log().matches("cannot accept connections").count();
    assert!(lines == 1, "{lines} lines\n{}", house.pooler.log());

    // Who is in is served.
    assert_eq!(value(&mut client, "select 2").await, "2");
    assert!(!crate::support::show(&mut console, "POOLS").await.is_empty());

    drop(silent);
    eventually_lets_in(&house).await;
    drop((client, console));
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_shut_the_door_neither_to_clients_nor_to_the_console_nor_fill_the_descriptor_table()
 {
    let folder = tempfile::tempdir().unwrap();
    let program = holdfast_with_descriptors(512, folder.path());
    let house = House::build(&program, drill::postgres::PostgresOptions::default(), false, |setup| {
        setup.setting("default_pool_size", "5").setting("listen_backlog", "1000")
    });
    let ledger = Ledger::open(&house).await;
    let address = Address::Tcp(house.pooler.address());
    let mut silent = Vec::new();
    for _ in 0..800 {
        silent.push(Connection::open(&address, None).await.unwrap());
    }
    let mut client = house.client().await;
    assert_eq!(value(&mut client, "select 1").await, "1");
    assert_eq!(house.pool().await["cl_active"], "1");
    // Those who were there first had the longest time to say something.
    let told = within(PATIENCE, "the farewell", silent[0].wait_closed()).await.unwrap().unwrap();
    assert_eq!(told.code, "53300", "{told}");
    assert!(!house.pooler.log().contains("cannot accept connections"), "{}", house.pooler.log());
    drop((client, silent));
    ledger.assert_balanced(&house).await;
}

async fn eventually_lets_in(house: &House) {
    let began = Instant::now();
    loop {
        match within(PATIENCE, "a login", Connection::connect(&house.options())).await {
            Ok(_) => return,
            Err(refused) => assert!(began.elapsed() < Duration::from_secs(3), "still refused: {refused}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}
