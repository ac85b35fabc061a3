//! Logins at the database that cannot work: the server's own word, at once, and no hammering.

use std::time::Duration;

use drill::postgres::{PostgresOptions, PrivatePostgres};
use drill::wire::Connection;
use tokio::time::{Instant, sleep};

use crate::ledger::Ledger;
use crate::load::Load;
use crate::support::{House, PATIENCE, code, holdfast, value, within};

/// "At once", with room for a busy machine.
const AT_ONCE: Duration = Duration::from_millis(1500);

/// A database with a user that needs a password, known to the pooler by a wrong one as `locked`.
fn locked_house() -> House {
    let options = PostgresOptions::default().hba_line("host all erin 127.0.0.1/32 scram-sha-256");
    let postgres = PrivatePostgres::start(options).unwrap();
    postgres.admin("create role erin login password 'right'").unwrap();
    House::build_on(&holdfast(), postgres, false, |setup, postgres| {
        let target = format!("host=127.0.0.1 port={} dbname=bench", postgres.port());
        setup.database(&format!("locked = {target} user=erin password=wrong"))
    })
}

fn refused_logins(house: &House) -> usize {
    house.postgres.log().matches("password authentication failed for user \"erin\"").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_told_at_once_in_the_servers_words_and_mended_by_reload() {
    let house = locked_house();
    let ledger = Ledger::open(&house).await;
    let options = house.pooler.connect_options("bench", "locked");
    let began = Instant::now();
    let refused = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap_err();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let told = refused.server().unwrap();
    assert_eq!((told.code.as_str(), told.is_fatal()), ("28P01", true));
    assert_eq!(told.message, "password authentication failed for user \"erin\"");

    // Nobody else suffers.
    let mut neighbour = house.client().await;
    assert_eq!(value(&mut neighbour, "select 1").await, "1");

    let text =
        std::fs::read_to_string(house.pooler.config()).unwrap().replace("password=wrong", "password=right");
    std::fs::write(house.pooler.config(), text).unwrap();
    value(&mut house.console().await, "reload").await;
    let mut client = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap();
    assert_eq!(value(&mut client, "select current_user").await, "erin");
    drop((client, neighbour));
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_insist_on_a_wrong_password_do_not_hammer_the_server() {
    let house = locked_house();
    let ledger = Ledger::open(&house).await;
    let options = house.pooler.connect_options("bench", "locked");
    let load = Load::start(&options, 20, Duration::ZERO, Duration::from_secs(5));
    sleep(Duration::from_secs(5)).await;
    let attempts = refused_logins(&house);
    let heard = load.finish().await;
    heard.assert_clear(&["28P01"]);
    assert_eq!(heard.gave_up, 0, "everybody hears it at once");
    assert!(heard.error_count() > 100, "{heard:?}");
    // 1 s after the first, then twice as long each time.
    assert!((1..=6).contains(&attempts), "{attempts} attempts in 5 s");
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_database_is_told_at_once_in_the_servers_words() {
    let house = House::start(|setup| setup);
    let ledger = Ledger::open(&house).await;
    let options = house.pooler.connect_options("bench", "nowhere");
    let began = Instant::now();
    let refused = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap_err();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(code(&refused), "3D000");
    assert_eq!(refused.server().unwrap().message, "database \"nowhere\" does not exist");
    let mut neighbour = house.client().await;
    assert_eq!(value(&mut neighbour, "select 1").await, "1");
    drop(neighbour);
    ledger.assert_balanced(&house).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_made_later_is_found_without_a_restart() {
    let house = House::start(|setup| setup);
    let options = house.pooler.connect_options("bench", "later");
    assert_eq!(code(&Connection::connect(&options).await.unwrap_err()), "3D000");
    house.postgres.admin("create database later owner bench").unwrap();
    let began = Instant::now();
    let mut client = loop {
        match within(PATIENCE, "a login", Connection::connect(&options)).await {
            Ok(client) => break client,
            Err(refused) => assert_eq!(code(&refused), "3D000"),
        }
        assert!(began.elapsed() < Duration::from_secs(5), "still not found");
        sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(value(&mut client, "select current_database()").await, "later");
}
