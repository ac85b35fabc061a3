use std::time::Duration;

use drill::postgres::PrivatePostgres;
use drill::relay::{Direction, Relay};
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;

use super::*;
use crate::ErrorKind;

const PATIENCE: Duration = Duration::from_secs(30);

/// A database, and a relay in front of it that counts connections.
struct House {
    relay: Relay,
    postgres: PrivatePostgres,
}

impl House {
    fn start() -> Self {
        let postgres = PrivatePostgres::start_default().unwrap();
        let relay = Relay::start(postgres.tcp_address()).unwrap();
        Self { relay, postgres }
    }

    fn pool(&self, options: PoolOptions) -> Pool {
        let text = format!("postgresql://bench@{}/bench", self.relay.address());
        Pool::new(text.parse().unwrap(), options).unwrap()
    }
}

/// Opens all connections of a pool.
async fn warm(pool: &Pool, connections: usize) {
    let sleepers: Vec<_> = (0..connections)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { query(&pool, "select pg_sleep(0.2)::text").await.map(drop) })
        })
        .collect();
    for sleeper in sleepers {
        sleeper.await.unwrap().unwrap();
    }
    assert_eq!(pool.status().idle, connections);
}

async fn query(pool: &Pool, sql: &'static str) -> Result<String, StoreError> {
    pool.run("a query", move |session| {
        Box::pin(async move { Ok(session.row(sql, &[]).await?.map(|row| row.get(0)).unwrap_or_default()) })
    })
    .await
}

/// Inserts a row in a transaction, with something in between.
async fn insert(pool: &Pool, number: i32, between: &'static str) -> Result<(), StoreError> {
    pool.run("an insert", move |session| {
        Box::pin(async move {
            session.begin().await?;
            session.execute("insert into t values ($1)", &[(&number, Type::INT4)]).await?;
            session.batch(between).await?;
            session.commit().await
        })
    })
    .await
}

async fn eventually(what: &str, so: impl Fn() -> bool) {
    let looked = timeout(PATIENCE, async {
        while !so() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(looked.await.is_ok(), "not so within {PATIENCE:?}: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_callers_that_stop_at_begin_open_no_connection() {
    let house = House::start();
    let options = PoolOptions { connections: 4, cancel_after_ms: 5_000, ..PoolOptions::default() };
    let pool = house.pool(options);
    warm(&pool, 4).await;
    let before = house.relay.counts().opened;
    let pids = house.postgres.backend_pids().unwrap();
    // BEGIN is on the wire, and its answer is not there yet.
    house.relay.delay_bytes(Direction::Up, Duration::from_millis(4));
    for round in 0..250 {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    pool.run("a transaction", |session| {
                        Box::pin(async move {
                            session.begin().await?;
                            std::future::pending::<Result<(), StoreError>>().await
                        })
                    })
                    .await
                })
            })
            .collect();
        sleep(Duration::from_millis(round % 4)).await;
        for caller in callers {
            caller.abort();
        }
    }
    house.relay.delay_bytes(Direction::Up, Duration::ZERO);
    eventually("all connections are at rest", || pool.status().idle == 4 && pool.status().busy == 0).await;
    let status = pool.status();
    assert!(status.stopped > 0, "no caller stopped at work: {status:?}");
    assert_eq!(house.relay.counts().opened, before, "neither a session nor a cancel request");
    assert_eq!((status.opened, status.broken, status.unsettled, status.waiting), (4, 0, 0, 0));
    assert_eq!(house.postgres.backend_pids().unwrap(), pids);
    assert_eq!(query(&pool, "select 1::text").await.unwrap(), "1");
    let open = "select count(*)::text from pg_stat_activity where state like 'idle in transaction%'";
    assert_eq!(query(&pool, open).await.unwrap(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_stops_in_a_statement_has_it_cancelled_and_rolled_back_and_the_connection_is_used_again()
 {
    let house = House::start();
    house.postgres.admin("create table t (n int); grant all on t to bench").unwrap();
    let pool = house.pool(PoolOptions { connections: 1, ..PoolOptions::default() });
    let pid = query(&pool, "select pg_backend_pid()::text").await.unwrap();
    for number in 0..20 {
        let caller = {
            let pool = pool.clone();
            tokio::spawn(async move { insert(&pool, number, "select pg_sleep(60)").await })
        };
        eventually("the statement runs", || pool.status().busy == 1).await;
        sleep(Duration::from_millis(20)).await;
        caller.abort();
        // At once, not after a minute; on the same session; and the cancel does not hit it.
        let next = timeout(PATIENCE, query(&pool, "select pg_backend_pid()::text || count(*) from t")).await;
        assert_eq!(next.unwrap().unwrap(), format!("{pid}0"));
    }
    let status = pool.status();
    assert_eq!((status.opened, status.stopped, status.cancelled, status.unsettled), (1, 20, 20, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_stops_never_gets_a_busy_connection_into_other_hands() {
    let house = House::start();
    house.postgres.admin("create table t (n int); grant all on t to bench").unwrap();
    let pool = house.pool(PoolOptions { connections: 3, cancel_after_ms: 3, ..PoolOptions::default() });
    warm(&pool, 3).await;
    let mut callers = Vec::new();
    for number in 0..300 {
        let pool = pool.clone();
        callers.push(tokio::spawn(async move {
            let patience = Duration::from_micros(fastrand::u64(0..15_000));
            let work = insert(&pool, number, "select pg_sleep(0.002)");
            // Whoever is not stopped has to succeed: no cancel, no rollback and no error of another's transaction.
            match timeout(patience, work).await {
                Err(_) => false,
                Ok(result) => result.map(|()| true).unwrap(),
            }
        }));
        if number % 5 == 0 {
            sleep(Duration::from_millis(3)).await;
        }
    }
    let mut done = 0;
    for caller in callers {
        done += i32::from(caller.await.unwrap());
    }
    eventually("all connections are at rest", || pool.status().busy == 0).await;
    let rows: i32 = query(&pool, "select count(distinct n)::text from t").await.unwrap().parse().unwrap();
    assert!(rows >= done, "{done} callers were told that their row stands, and {rows} rows are there");
    assert_eq!((pool.status().opened, pool.status().unsettled), (3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_transaction_is_rolled_back_and_its_error_named() {
    let house = House::start();
    house.postgres.admin("create table t (n int unique); grant all on t to bench").unwrap();
    let pool = house.pool(PoolOptions { connections: 1, ..PoolOptions::default() });
    insert(&pool, 1, "").await.unwrap();
    let error = insert(&pool, 1, "").await.unwrap_err();
    let StoreError::Refused { code, work, passing, .. } = &error else { panic!("{error}") };
    assert_eq!((code.as_str(), *work, *passing), ("23505", "an insert", false));
    insert(&pool, 2, "").await.unwrap();
    assert_eq!(pool.status().opened, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wait_has_its_own_limit_and_the_line_a_bound() {
    let house = House::start();
    let options = PoolOptions {
        connections: 1,
        most_waiting: 2,
        acquire_ms: 300,
        work_ms: 1_500,
        ..PoolOptions::default()
    };
    let pool = house.pool(options);
    let sleeper = {
        let pool = pool.clone();
        tokio::spawn(async move { query(&pool, "select pg_sleep(60)::text").await })
    };
    eventually("it sleeps", || pool.status().busy == 1).await;
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { query(&pool, "select 1::text").await })
        })
        .collect();
    eventually("two wait", || pool.status().waiting == 2).await;
    let refused = query(&pool, "select 1::text").await.unwrap_err();
    assert_eq!((refused.kind(), refused.nothing_was_done()), (ErrorKind::QueueFull, true));
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().unwrap_err().kind(), ErrorKind::AcquireDeadline);
    }
    let late = sleeper.await.unwrap().unwrap_err();
    assert_eq!((late.kind(), late.nothing_was_done()), (ErrorKind::StatementDeadline, false));
    assert_eq!(query(&pool, "select 2::text").await.unwrap(), "2");
    assert_eq!((pool.status().opened, pool.status().waiting), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_outlive_a_pause_of_the_database() {
    let mut house = House::start();
    let options = PoolOptions { connections: 3, acquire_ms: 8_000, work_ms: 6_000, ..PoolOptions::default() };
    let pool = house.pool(options);
    warm(&pool, 3).await;
    house.postgres.pause().unwrap();
    let callers: Vec<_> = (0..40)
        .map(|number| {
            let pool = pool.clone();
            let patience = Duration::from_millis(if number % 2 == 0 { 100 } else { 10_000 });
            tokio::spawn(async move { timeout(patience, query(&pool, "select 1::text")).await })
        })
        .collect();
    sleep(Duration::from_secs(2)).await;
    house.postgres.resume().unwrap();
    for (number, caller) in callers.into_iter().enumerate() {
        match caller.await.unwrap() {
            Ok(result) => assert_eq!(result.unwrap(), "1"),
            Err(_) => assert_eq!(number % 2, 0, "a patient caller was not served"),
        }
    }
    eventually("all connections are at rest", || pool.status().busy == 0).await;
    assert_eq!((pool.status().opened, pool.status().unsettled, pool.status().waiting), (3, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_gone_is_asked_at_a_growing_pace_and_found_again() {
    let house = House::start();
    let pool = house.pool(PoolOptions { connections: 8, acquire_ms: 600, ..PoolOptions::default() });
    house.relay.refuse_new(true);
    let before = house.relay.counts().opened;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        let callers = (0..50).map(|_| query(&pool, "select 1::text"));
        for caller in callers.map(|caller| timeout(Duration::from_millis(40), caller)) {
            if let Ok(result) = caller.await {
                let error = result.unwrap_err();
                assert!(
                    matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::AcquireDeadline),
                    "{error}"
                );
                assert!(error.retry_after_ms().is_some());
            }
        }
    }
    let attempts = pool.status().open_failed;
    assert!((2..=60).contains(&attempts), "{attempts} failed attempts in three seconds");
    assert_eq!(house.relay.counts().opened - before, attempts, "as many as the network saw");
    house.relay.refuse_new(false);
    let served = timeout(PATIENCE, async {
        while query(&pool, "select 1::text").await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    served.await.unwrap();
    assert_eq!(pool.status().opened, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_stops_while_a_connection_is_opened_leaves_it_to_the_next() {
    let house = House::start();
    let pool = house.pool(PoolOptions {
        connections: 1,
        acquire_ms: 5_000,
        cancel_after_ms: 5_000,
        ..PoolOptions::default()
    });
    house.relay.delay_bytes(Direction::Up, Duration::from_millis(100));
    for _ in 0..5 {
        let _ = timeout(Duration::from_millis(30), query(&pool, "select 1::text")).await;
    }
    house.relay.delay_bytes(Direction::Up, Duration::ZERO);
    assert_eq!(query(&pool, "select 1::text").await.unwrap(), "1");
    assert_eq!((pool.status().opened, house.relay.counts().opened), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_accepts_and_says_nothing_is_given_up_and_the_next_attempt_is_free() {
    // The kernel accepts; nobody answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!("postgresql://bench@{}/bench?connect_timeout=1", silent.local_addr().unwrap());
    let pool = Pool::new(text.parse().unwrap(), PoolOptions::default()).unwrap();
    for attempt in 0..2 {
        let asked = timeout(Duration::from_secs(10), query(&pool, "select 1::text")).await;
        let error = asked.expect("a caller waits without end").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{attempt}: {error}");
    }
    let status = pool.status();
    assert_eq!((status.open_failed, status.busy), (2, 0), "{status:?}");
}
