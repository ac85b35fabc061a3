//! Two workers at one database: who does what, and what becomes of it when one is gone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use drill::postgres::{ADMIN_USER, DATABASE, PrivatePostgres};
use store::catalogue::Writer;
use store::migrate::{Passwords, migrate};
use store::{DatabaseConfig, Store};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use trust::NetworkId;
use worker::Config;

const NETWORK: NetworkId = NetworkId([7; 32]);
/// Far more than anything here takes on a machine that is not overrun.
const PATIENCE: Duration = Duration::from_secs(60);

struct House(PrivatePostgres);

impl House {
    async fn start() -> Self {
        let postgres = PrivatePostgres::start_default().unwrap();
        let (folder, port) = (postgres.socket_dir().display(), postgres.port());
        let direct = format!("host={folder} port={port} user={ADMIN_USER} dbname={DATABASE}");
        let passwords = Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() };
        migrate(&direct.parse().unwrap(), Some(&passwords)).await.unwrap();
        Self(postgres)
    }

    fn store(&self, writer: Writer) -> Store {
        self.database(writer).open(NETWORK).unwrap()
    }

    fn database(&self, writer: Writer) -> DatabaseConfig {
        let (role, address) = (writer.database_role(), self.0.tcp_address());
        DatabaseConfig::new(format!("postgresql://{role}@{address}/{DATABASE}"))
    }

    fn config(&self) -> Config {
        let mut config = Config::new(NETWORK, self.database(Writer::Worker));
        config.settle_every_ms = 50;
        config.late_every_ms = 50;
        config.lease_ms = 5_000;
        config
    }

    fn value(&self, sql: &str) -> String {
        self.0.admin(sql).unwrap()[0][0].clone().unwrap_or_default()
    }

    async fn until(&self, sql: &str, wanted: &str) {
        let end = Instant::now() + PATIENCE;
        while self.value(sql) != wanted {
            assert!(Instant::now() < end, "{sql} is {}, not {wanted}", self.value(sql));
            sleep(Duration::from_millis(30)).await;
        }
    }
}

type Running = (oneshot::Sender<()>, tokio::task::JoinHandle<Result<(), store::DatabaseConfigError>>);

fn begin(config: Config) -> Running {
    let (stop, stopping) = oneshot::channel::<()>();
    (stop, tokio::spawn(worker::run(config, async { drop(stopping.await) })))
}

async fn end((stop, running): Running) {
    drop(stop);
    running.await.unwrap().unwrap();
}

const JOBS: &str = "select count(*) from task_ready where repeat_ms is not null";
const CLAIMED: &str = "select count(*) from task_ready where claimed_by is not null";

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_begins_before_its_network_is_there_and_hands_back_what_it_holds_when_it_ends() {
    let house = House::start().await;
    let running = begin(house.config());
    sleep(Duration::from_millis(300)).await;
    assert_eq!(house.value(JOBS), "0");
    house.store(Writer::Api).ensure_network().await.unwrap();
    let end_of_wait = Instant::now() + PATIENCE;
    while house.value(JOBS).parse::<u32>().unwrap() < 5 {
        assert!(Instant::now() < end_of_wait);
        sleep(Duration::from_millis(30)).await;
    }
    // A job that takes for ever: the table that it settles is locked.
    let options = drill::wire::ConnectOptions::new(house.0.socket_address(), ADMIN_USER, DATABASE);
    let mut holder = drill::wire::Connection::connect(&options).await.unwrap();
    holder.query("begin; lock table open_contract").await.unwrap();
    let settle = "select count(*) from task_ready where kind = 'settle' and claimed_by is not null";
    house.until(settle, "1").await;
    sleep(Duration::from_millis(200)).await;
    end(running).await;
    assert_eq!(house.value(CLAIMED), "0", "at once, not when the lease ends");
    holder.query("rollback").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_worker_had_claimed_is_done_by_another_once_its_lease_is_over() {
    let house = House::start().await;
    house.store(Writer::Api).ensure_network().await.unwrap();
    let (dead, store) = (uuid::Uuid::from_u128(9), house.store(Writer::Worker));
    let running = begin(house.config());
    let end_of_wait = Instant::now() + PATIENCE;
    while house.value(JOBS).parse::<u32>().unwrap() < 5 {
        assert!(Instant::now() < end_of_wait);
        sleep(Duration::from_millis(30)).await;
    }
    end(running).await;
    house.0.admin("update task_ready set ready_at = now()").unwrap();
    let claims = store.claim_tasks(dead, [10; tasks::LANES], 2_000).await.unwrap();
    assert!(claims.claimed.len() >= 5);
    let died = Instant::now();
    let running = begin(house.config());
    sleep(Duration::from_millis(500)).await;
    let held = format!("select count(*) from task_ready where claimed_by = '{dead}'");
    if died.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(house.value(&held), claims.claimed.len().to_string());
    }
    house.until(&held, "0").await;
    end(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_never_run_a_job_twice_at_once_and_both_work() {
    let house = House::start().await;
    house.store(Writer::Api).ensure_network().await.unwrap();
    // Each run of a job leaves a row: who, from when to when.
    house
        .0
        .admin(
            "create table seen (worker uuid, job text, at timestamptz);
             grant insert on seen to holdfast_worker;
             create function note() returns trigger language plpgsql as $$ begin
                if new.claimed_by is not null and new.claimed_by is distinct from old.claimed_by then
                    if old.claimed_by is not null then raise exception 'claimed twice at once'; end if;
                    insert into seen values (new.claimed_by, new.kind, clock_timestamp());
                end if;
                return new;
             end $$;
             create trigger note before update on task_ready for each row execute function note()",
        )
        .unwrap();
    let (one, two) = (begin(house.config()), begin(house.config()));
    let end_of_wait = Instant::now() + PATIENCE;
    let workers = "select count(distinct worker) from seen where job = 'settle'";
    while house.value(workers) != "2" || house.value("select count(*) from seen").parse::<u32>().unwrap() < 60
    {
        assert!(Instant::now() < end_of_wait, "{}", house.value(workers));
        sleep(Duration::from_millis(50)).await;
    }
    end(one).await;
    end(two).await;
    assert_eq!(house.value(CLAIMED), "0");
}
