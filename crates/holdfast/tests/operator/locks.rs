//! Pile-ups behind a lock, with a real database: who is named, and who is told to stop.

use std::time::Duration;

use drill::peer::PoolerSetup;
use drill::postgres::{ADMIN_USER, DATABASE, PostgresOptions, PrivatePostgres, USER};
use drill::wire::{Address, ConnectOptions, Connection, Error, Reply};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, Row, code, connect, eventually, holdfast, value, within};

fn setup(setup: PoolerSetup, policy: &str) -> PoolerSetup {
    setup.setting("default_pool_size", "2").setting("lock_pileup", policy)
}

fn ask(mut client: Connection, sql: &'static str) -> JoinHandle<Result<Reply, Error>> {
    tokio::spawn(async move { within(PATIENCE, sql, client.query(sql)).await?.into_result() })
}

/// A report that reads `t` in a transaction, beside the pooler; an ALTER TABLE that waits for it; two readers that fill the
/// pool of two, and one more client that waits for a server.
struct Pile {
    report: Connection,
    ddl: JoinHandle<Result<Reply, Error>>,
    ddl_pid: u32,
    readers: Vec<JoinHandle<Result<Reply, Error>>>,
    began: Instant,
}

async fn pile(house: &House, migrator: &ConnectOptions, alter: &'static str) -> Pile {
    let mut report = house.direct().await;
    value(&mut report, "create table t (a int); create table other (a int)").await;
    house.warm(2).await;
    value(&mut report, "begin; select count(*) from t").await;
    let mut migrator = connect(migrator).await;
    let ddl_pid = migrator.server_pid().await.unwrap();
    let ddl = ask(migrator, alter);
    sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    let mut readers = Vec::new();
    for sql in ["select count(*) from t", "select count(*) from t", "select 1"] {
        readers.push(ask(house.client().await, sql));
    }
    Pile { report, ddl, ddl_pid, readers, began }
}

async fn locks_row(house: &House) -> Row {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(row) = house.show("locks").await.pop() {
            return row;
        }
        assert!(Instant::now() < deadline, "no pile-up is seen: {}", house.pooler.log());
        sleep(Duration::from_millis(20)).await;
    }
}

const ALTER: &str = "alter table t add b text default 'secret'";

fn looks(house: &House) -> usize {
    let backends = house.postgres.backends().unwrap();
    backends.iter().filter(|backend| backend.application_name == "holdfast locks").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_waiting_ddl_is_cancelled_after_the_grace_and_those_behind_it_go_on() {
    let house = House::start(|house| setup(house, "cancel-waiting-ddl"));
    let direct = house.postgres_options(USER);
    let pile = pile(&house, &direct, ALTER).await;
    let refused = within(PATIENCE, "the DDL", pile.ddl).await.unwrap().unwrap_err();
    assert_eq!(code(&refused), "57014");
    assert!(pile.began.elapsed() >= Duration::from_millis(500), "{:?}", pile.began.elapsed());
    for reader in pile.readers {
        reader.await.unwrap().unwrap();
    }
    let log = house.pooler.log();
    assert!(log.contains("told to stop") && log.contains("alter table t add b text default ?"), "{log}");
    assert!(!log.contains("secret"), "{log}");
    assert_eq!(house.metric_of("lock_actions_total", "outcome=\"done\"").await, 1.0);
    assert!(house.metric("lock_pileups_total").await >= 1.0);
    // Nothing stands there any more, and nobody looks.
    eventually(PATIENCE, "the looks' connection is closed", || looks(&house) == 0).await;
    assert!(house.show("locks").await.is_empty());
    drop(pile.report);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warn_names_who_waits_for_whom_and_cancels_nothing() {
    let house = House::start(|house| setup(house, "warn"));
    let direct = house.postgres_options(USER);
    let mut pile = pile(&house, &direct, ALTER).await;
    let row = locks_row(&house).await;
    assert_eq!((row["relation"].as_str(), row["sv_behind"].as_str()), ("public.t", "2"));
    assert_eq!(row["waiter_pid"], pile.ddl_pid.to_string());
    assert_eq!(row["waiter_statement"], "alter table t add b text default ?");
    let report_pid = pile.report.server_pid().await.unwrap();
    assert_eq!(row["blocker_pids"], report_pid.to_string());
    assert_eq!(row["blocker_state"], "idle in transaction");
    assert!(looks(&house) <= 1, "one look at once");
    sleep(Duration::from_secs(1)).await;
    assert!(!pile.ddl.is_finished() && pile.readers.iter().all(|reader| !reader.is_finished()));
    value(&mut pile.report, "commit").await;
    pile.ddl.await.unwrap().unwrap();
    for reader in pile.readers {
        reader.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocker_that_idles_in_its_transaction_is_ended_and_the_ddl_goes_through() {
    let house = House::start(|house| setup(house, "cancel-blocker"));
    let direct = house.postgres_options(USER);
    let mut pile = pile(&house, &direct, ALTER).await;
    within(PATIENCE, "the DDL", pile.ddl).await.unwrap().unwrap();
    for reader in pile.readers {
        reader.await.unwrap().unwrap();
    }
    assert!(pile.report.query("select 1").await.is_err(), "the report was in the way");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ddl_of_another_role_is_named_and_the_missing_right_is_said() {
    let postgres = PrivatePostgres::start(PostgresOptions::default()).unwrap();
    let house = House::build_on(&holdfast(), postgres, false, |house, _| setup(house, "cancel-waiting-ddl"));
    let admin = house.postgres_options(ADMIN_USER);
    let mut pile = pile(&house, &admin, ALTER).await;
    locks_row(&house).await;
    eventually(PATIENCE, "the log says what is missing", || {
        let log = house.pooler.log();
        log.contains("GRANT pg_signal_backend") && log.contains(&format!("process_id={}", pile.ddl_pid))
    })
    .await;
    assert!(!pile.ddl.is_finished());
    assert!(house.metric_of("lock_actions_total", "outcome=\"not permitted\"").await >= 1.0);
    value(&mut pile.report, "commit").await;
    pile.ddl.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ddl_that_waits_while_no_queue_stands_is_nobodys_business() {
    let house = House::start(|house| setup(house, "cancel-waiting-ddl"));
    let mut report = house.direct().await;
    value(&mut report, "create table t (a int)").await;
    value(&mut report, "begin; select count(*) from t").await;
    let ddl = ask(house.direct().await, ALTER);
    // One of two servers waits behind it, and nobody waits for a server.
    let reader = ask(house.client().await, "select count(*) from t");
    sleep(Duration::from_millis(1200)).await;
    assert!(!ddl.is_finished());
    assert_eq!(looks(&house), 0);
    value(&mut report, "commit").await;
    ddl.await.unwrap().unwrap();
    reader.await.unwrap().unwrap();
}

impl House {
    fn postgres_options(&self, user: &str) -> ConnectOptions {
        ConnectOptions::new(Address::Tcp(self.postgres.tcp_address()), user, DATABASE)
    }
}
