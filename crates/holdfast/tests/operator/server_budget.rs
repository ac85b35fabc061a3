//! One budget of connections for a database server, over pools, databases and poolers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drill::peer::{Peer, PoolerSetup};
use drill::postgres::{ADMIN_USER, PostgresOptions, PrivatePostgres, USER};
use drill::process::Signal;
use drill::relay::{Cut, Relay};
use drill::wire::{Address, ConnectOptions, Connection, Error};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{House, PATIENCE, connect, holdfast, number, value, within};

const BUDGET: usize = 30;
const POOLERS: usize = 3;
const DATABASES: usize = 10;
/// Clients of each pooler.
const CLIENTS: usize = 16;
const PROBE: &str = "budget-probe";

fn settings(setup: PoolerSetup, budget: &str) -> PoolerSetup {
    setup.setting("server_budget", budget).setting("budget_user", ADMIN_USER)
}

/// The only row of SHOW BUDGET.
async fn budget_of(house: &House) -> crate::support::Row {
    let mut rows = house.show("BUDGET").await;
    assert_eq!(rows.len(), 1, "one server");
    rows.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_budget_nothing_is_asked_and_with_one_it_is_shown_who_has_what() {
    let house = House::start(|setup| setup);
    value(&mut house.client().await, "select 1").await;
    assert!(house.show("BUDGET").await.is_empty());
    assert_eq!(house.postgres.backends().unwrap().len(), 1, "no control connection");

    // No superuser, and with a password.
    let options =
        PostgresOptions::default().max_connections(40).hba_line("host all guard 127.0.0.1/32 scram-sha-256");
    let postgres = PrivatePostgres::start(options).unwrap();
    postgres.admin("create role guard login password 'look'; grant pg_read_all_stats to guard").unwrap();
    let house = House::build_on(&holdfast(), postgres, false, |setup, _| {
        settings(setup, "auto").setting("budget_user", "guard").user("guard", "look")
    });
    value(&mut house.client().await, "select 1").await;
    let row = budget_of(&house).await;
    // 40, less 3 for superusers and a margin of 3.
    assert_eq!((number(&row, "budget"), row["lease"].as_str()), (34, "held"));
    assert_eq!((number(&row, "used"), number(&row, "places"), number(&row, "poolers")), (1, 4, 1));
    assert_eq!(house.metric("budget_connections").await, 34.0);
    let control = house.postgres.admin(
        "select count(*) from pg_stat_activity where application_name = 'holdfast budget' and datname = 'postgres'",
    );
    assert_eq!(control.unwrap()[0][0].as_deref(), Some("1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_budget_makes_clients_wait_as_for_a_full_pool_and_evicts_who_rests_elsewhere() {
    let house = House::start(|setup| {
        settings(setup, "8").setting("budget_reserved", "4").setting("query_wait_timeout", "2")
    });
    let of = |database: &str| house.pooler.connect_options(USER, database);
    house.postgres.admin("create database other owner bench").unwrap();
    // Four rest in one database.
    house.warm(4).await;
    // The other has none, and somebody who waits.
    let mut guest = connect(&of("other")).await;
    assert_eq!(value(&mut guest, "select current_database()").await, "other");
    let pool = house.pool().await;
    assert_eq!(number(&pool, "sv_idle") + number(&pool, "sv_closing"), 3, "{pool:?}");
    // All four are in use: the next waits, and is told what for.
    let mut holders = Vec::new();
    for _ in 0..3 {
        let mut client = house.client().await;
        value(&mut client, "begin").await;
        holders.push(client);
    }
    value(&mut guest, "begin").await;
    let mut late = house.client().await;
    let refused = within(PATIENCE, "the refusal", late.query("select 1")).await;
    let Err(Error::Closed { after: Some(error) }) = refused else { panic!("{refused:?}") };
    assert_eq!(error.code, "53H01", "{error:?}");
    assert!(error.detail.contains("server_budget"), "{error:?}");
    assert_eq!(number(&budget_of(&house).await, "exhausted"), 1);
    // One that ends its transaction makes room.
    let mut next = house.client().await;
    let waiting = tokio::spawn(async move { value(&mut next, "select 5").await });
    house.wait_waiting(1).await;
    value(&mut holders[0], "commit").await;
    assert_eq!(within(PATIENCE, "the answer", waiting).await.unwrap(), "5");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_control_connection_a_pooler_opens_nothing_and_goes_on_with_what_it_has() {
    let house = House::start_behind_relay(|setup| settings(setup, "20"));
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    for sql in [
        "alter database postgres allow_connections false",
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast budget'",
    ] {
        house.postgres.admin(sql).unwrap();
    }
    // Its last answer proves nothing any more.
    sleep(Duration::from_millis(300)).await;
    // What is open serves on.
    value(&mut client, "begin").await;
    let mut second = house.client().await;
    let waiting = tokio::spawn(async move { value(&mut second, "select 7").await });
    house.wait_waiting(1).await;
    let end = Instant::now() + PATIENCE;
    while budget_of(&house).await["lease"] != "lost" {
        assert!(Instant::now() < end, "the loss is not noticed");
        sleep(Duration::from_millis(20)).await;
    }
    sleep(Duration::from_millis(700)).await;
    assert_eq!(number(&house.pool().await, "cl_waiting"), 1);
    assert_eq!(house.backend_pids().len(), 1, "nothing new is opened");
    house.postgres.admin("alter database postgres allow_connections true").unwrap();
    assert_eq!(within(PATIENCE, "the answer", waiting).await.unwrap(), "7");
    assert_eq!(value(&mut client, "commit; select 8").await, "8");
}

/// What the storm is about, shared by all who take part.
struct Storm {
    poolers: Vec<Mutex<Option<Peer>>>,
    relays: Vec<Relay>,
    postgres: PrivatePostgres,
    over: AtomicBool,
    served: AtomicUsize,
}

impl Storm {
    fn start() -> Self {
        let options = PostgresOptions::default().max_connections(35);
        let postgres = PrivatePostgres::start(options).unwrap();
        for index in 0..DATABASES {
            postgres.admin(&format!("create database db{index} owner {USER}")).unwrap();
        }
        let relays: Vec<Relay> =
            (0..POOLERS).map(|_| Relay::start(postgres.tcp_address()).unwrap()).collect();
        let poolers = relays.iter().map(|relay| Mutex::new(Some(pooler(relay)))).collect();
        Self { poolers, relays, postgres, over: AtomicBool::new(false), served: AtomicUsize::new(0) }
    }

    fn options(&self, index: usize, user: &str, database: &str) -> Option<ConnectOptions> {
        let pooler = self.poolers[index].lock().unwrap();
        pooler.as_ref().map(|pooler| pooler.connect_options(user, database))
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

fn pooler(relay: &Relay) -> Peer {
    let setup = settings(PoolerSetup::new(relay.address()), &BUDGET.to_string())
        // A control connection for each, and its looks at locks.
        .setting("budget_reserved", "6")
        .setting("budget_chunk", "3")
        .setting("budget_settle", "1")
        .setting("query_wait_timeout", "5");
    holdfast().start(&setup).unwrap()
}

/// Comes, asks a few times, and leaves well or badly.
async fn client(storm: Arc<Storm>, index: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !storm.is_over() {
        let database = format!("db{}", random.usize(0..DATABASES));
        let patience = Duration::from_millis(random.u64(500..4_000));
        if let Some(options) = storm.options(index, USER, &database) {
            let asked = async {
                let mut connection = Connection::connect(&options).await?;
                for _ in 0..random.usize(1..6) {
                    // Some work on for seconds, whoever asked for it: what a dead pooler leaves behind.
                    let is_long = random.u8(0..5) == 0;
                    let millis = if is_long { random.u32(1_000..3_000) } else { random.u32(1..60) };
                    let sql = format!("select pg_sleep({})", f64::from(millis) / 1000.0);
                    connection.query(&sql).await?.into_result()?;
                    storm.served.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, Error>(())
            };
            let _ = timeout(patience, asked).await;
        }
        sleep(Duration::from_millis(random.u64(1..60))).await;
    }
}

/// The most backends that were ever there, of 50 ms looks.
async fn sample(storm: Arc<Storm>) -> (usize, usize) {
    let options = ConnectOptions::new(storm.postgres.socket_address(), ADMIN_USER, "postgres");
    let mut connection = connect(&options).await;
    let sql = format!(
        "select count(*) from pg_stat_activity where backend_type = 'client backend' and application_name <> '{PROBE}'"
    );
    let (mut most, mut looks) = (0, 0);
    while !storm.is_over() {
        let seen: usize = value(&mut connection, &sql).await.parse().unwrap();
        if seen > BUDGET {
            let who = connection
                .query("select string_agg(concat_ws(' ', pid, datname, usename, application_name, state, backend_start), E'\\n') from pg_stat_activity where backend_type = 'client backend'")
                .await
                .unwrap();
            panic!("{seen} connections:\n{}", who.value().unwrap_or_default());
        }
        (most, looks) = (most.max(seen), looks + 1);
        sleep(Duration::from_millis(50)).await;
    }
    (most, looks)
}

/// A plain user of the database can always log in beside the budget, and each pooler's console always answers.
async fn probe(storm: Arc<Storm>) -> usize {
    let direct = ConnectOptions::new(Address::Tcp(storm.postgres.tcp_address()), USER, "db0")
        .parameter("application_name", PROBE);
    let mut answers = 0;
    while !storm.is_over() {
        let mut connection = connect(&direct).await;
        value(&mut connection, "select 1").await;
        connection.terminate().await.unwrap();
        for index in 0..POOLERS {
            // One that is being killed may break off.
            let Some(options) = storm.options(index, ADMIN_USER, "pgbouncer") else { continue };
            let Ok(mut console) = Connection::connect(&options).await else { continue };
            let Ok(reply) = within(PATIENCE, "the console", console.query("SHOW BUDGET")).await else {
                continue;
            };
            answers += usize::from(reply.errors.is_empty());
        }
        sleep(Duration::from_millis(200)).await;
    }
    answers
}

/// Poolers die and come back, and are cut off from the database, at random.
async fn disturb(storm: &Arc<Storm>, span: Duration, random: &mut fastrand::Rng) -> usize {
    let end = Instant::now() + span;
    let mut kills = 0;
    while Instant::now() < end {
        sleep(Duration::from_millis(random.u64(200..900))).await;
        let index = random.usize(0..POOLERS);
        match random.u8(0..6) {
            0 | 1 => {
                let killed = storm.poolers[index].lock().unwrap().take();
                if let Some(mut killed) = killed {
                    killed.signal(Signal::KILL).unwrap();
                    killed.wait_end(PATIENCE);
                    kills += 1;
                }
                sleep(Duration::from_millis(random.u64(0..800))).await;
                let (again, relay) = (Arc::clone(storm), index);
                let started =
                    tokio::task::spawn_blocking(move || pooler(&again.relays[relay])).await.unwrap();
                *storm.poolers[index].lock().unwrap() = Some(started);
            }
            2 => storm.relays[index].cut(Cut::Close),
            3 => storm.relays[index].cut(Cut::Reset),
            4 => {
                storm.relays[index].freeze();
                sleep(Duration::from_millis(random.u64(100..1_500))).await;
                storm.relays[index].thaw();
            }
            _ => {
                storm.relays[index].refuse_new(true);
                storm.relays[index].cut(Cut::Reset);
                sleep(Duration::from_millis(random.u64(100..700))).await;
                storm.relays[index].refuse_new(false);
            }
        }
    }
    kills
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_deaths_and_cuts_never_takes_more_connections_than_the_budget() {
    // Longer with STORM_S, beyond the time that the runner gives a test.
    let storm_s = std::env::var("STORM_S").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(5);
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| std::process::id().into());
    println!("SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let storm = Arc::new(tokio::task::spawn_blocking(Storm::start).await.unwrap());
    let sampling = tokio::spawn(sample(Arc::clone(&storm)));
    let probing = tokio::spawn(probe(Arc::clone(&storm)));
    let clients: Vec<_> = (0..POOLERS * CLIENTS)
        .map(|number| tokio::spawn(client(Arc::clone(&storm), number % POOLERS, seed + number as u64)))
        .collect();
    let kills = disturb(&storm, Duration::from_secs(storm_s), &mut random).await;
    let began = Instant::now();
    // Then it is calm, and everybody is served by every pooler, in every database.
    let mut guests = Vec::new();
    for index in 0..POOLERS {
        for database in 0..DATABASES {
            let options = storm.options(index, USER, &format!("db{database}")).expect("all run again");
            guests.push(tokio::spawn(within(PATIENCE, "an answer", async move {
                loop {
                    let asked = async {
                        let mut connection = Connection::connect(&options).await.ok()?;
                        connection.query("select 9").await.ok()?.into_result().ok()
                    };
                    if asked.await.is_some() {
                        return;
                    }
                    sleep(Duration::from_millis(50)).await;
                }
            })));
        }
    }
    for guest in guests {
        guest.await.expect("every pooler serves every database");
    }
    let calm = began.elapsed();
    storm.over.store(true, Ordering::Relaxed);
    let (most, looks) = within(PATIENCE, "the looks", sampling).await.expect("never more than the budget");
    let answers = within(PATIENCE, "the probes", probing).await.expect("the reserved slice always answers");
    for client in clients {
        let _ = timeout(PATIENCE, client).await;
    }
    let served = storm.served.load(Ordering::Relaxed);
    println!(
        "{kills} kills, all served again after {calm:?}; {looks} looks, most {most} of {BUDGET}, {answers} answers of consoles, {served} queries"
    );
    assert!(most > BUDGET / 2, "{most}: the budget is used");
    assert!(answers > 0 && served > 100, "{answers} answers of consoles, {served} queries");
}
