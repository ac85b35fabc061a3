//! Who gets a server, and how many there are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drill::postgres::DATABASE;
use drill::process::Signal;
use drill::wire::frame;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, connect, reply, value, within};

/// Users who shared the limit of a database were served by the order of their names: the last one starved.
/// pgbouncer #131
#[tokio::test(flavor = "multi_thread")]
async fn users_under_one_cap_get_fair_shares() {
    const USERS: [&str; 3] = ["a", "b", "c"];
    let house = House::start(|setup| {
        let setup = setup.setting("default_pool_size", "10").setting("max_db_connections", "10");
        USERS.into_iter().fold(setup, |setup, user| setup.user(user, ""))
    });
    let mut tasks = JoinSet::new();
    let counts = [0; 3].map(|_| Arc::new(AtomicU64::new(0)));
    for (user, count) in USERS.into_iter().zip(&counts) {
        house.postgres.admin(&format!("create role {user} login")).unwrap();
        for _ in 0..15 {
            let (options, count) = (house.pooler.connect_options(user, DATABASE), count.clone());
            tasks.spawn(async move {
                let mut client = connect(&options).await;
                loop {
                    value(&mut client, "select pg_sleep(0.02)").await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // The first user has taken all ten places before the next one comes.
        sleep(Duration::from_millis(300)).await;
    }
    sleep(Duration::from_secs(2)).await;
    let read = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    let before = read();
    let mut most = 0;
    let end = Instant::now() + Duration::from_secs(8);
    while Instant::now() < end {
        most = most.max(house.sessions_at_once());
        sleep(Duration::from_millis(50)).await;
    }
    let after = read();
    let done: Vec<u64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    assert!(tasks.try_join_next().is_none(), "a client failed");
    tasks.shutdown().await;
    assert!(most <= 10, "{most} server connections under a limit of 10");
    let (least, best) = (done.iter().min().unwrap(), done.iter().max().unwrap());
    assert!(*least as f64 >= 0.8 * *best as f64, "answers of users a, b and c: {done:?}");
}

/// More users than places: they take turns, nobody is left out.
/// pgbouncer #131
#[tokio::test(flavor = "multi_thread")]
async fn more_users_than_places_take_turns() {
    const USERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let house = House::start(|setup| {
        let setup = setup.setting("default_pool_size", "10").setting("max_db_connections", "2");
        USERS.into_iter().fold(setup, |setup, user| setup.user(user, ""))
    });
    let mut tasks = JoinSet::new();
    for user in USERS {
        house.postgres.admin(&format!("create role {user} login")).unwrap();
        let options = house.pooler.connect_options(user, DATABASE);
        tasks.spawn(async move {
            // Two busy clients each: no user's line is ever empty while it has the place.
            let mut clients = [connect(&options).await, connect(&options).await];
            let mut longest = Duration::ZERO;
            let end = Instant::now() + Duration::from_secs(12);
            while Instant::now() < end {
                let began = Instant::now();
                let [first, second] = &mut clients;
                tokio::join!(value(first, "select pg_sleep(0.01)"), value(second, "select pg_sleep(0.01)"));
                longest = longest.max(began.elapsed());
            }
            longest
        });
    }
    // Six users, two places, and a turn lasts about a second: three seconds, and room.
    while let Some(longest) = tasks.join_next().await {
        let longest = longest.unwrap();
        assert!(longest < Duration::from_secs(8), "one of the users waited {longest:?}");
    }
}

/// Waiters had no queue: they asked again and again, newcomers won, and the CPU burned.
/// pgagroal #1006
#[tokio::test(flavor = "multi_thread")]
async fn waiters_are_served_in_the_order_they_came() {
    const WAITERS: usize = 50;
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    house
        .postgres
        .admin(
            "create table served (place serial, waiter int); grant all on served, served_place_seq to bench",
        )
        .unwrap();
    let mut holder = house.client().await;
    value(&mut holder, "begin; select 1").await;
    let mut waiters = Vec::new();
    for number in 0..WAITERS {
        let mut waiter = house.client().await;
        waiter.send(&frame::query(&format!("insert into served (waiter) values ({number})"))).await.unwrap();
        house.wait_waiting(number + 1).await;
        waiters.push(waiter);
    }
    let before = drill::process::CpuSample::read(house.pooler.pid()).unwrap();
    sleep(Duration::from_millis(500)).await;
    let used = before.until(&drill::process::CpuSample::read(house.pooler.pid()).unwrap());
    assert!(used < Duration::from_millis(50), "waiting cost {used:?} of CPU in half a second");
    value(&mut holder, "commit").await;
    // A newcomer: behind all of them.
    assert_eq!(value(&mut holder, "select count(*) from served").await, WAITERS.to_string());
    for waiter in &mut waiters {
        assert!(reply(waiter).await.unwrap().errors.is_empty());
    }
    let order = value(&mut holder, "select string_agg(waiter::text, ' ' order by place) from served").await;
    let expected: Vec<String> = (0..WAITERS).map(|number| number.to_string()).collect();
    assert_eq!(order, expected.join(" "));
}

/// More server connections than the pool may have, after many of them were killed.
/// pgdog #483
#[tokio::test(flavor = "multi_thread")]
async fn killed_servers_are_replaced_within_the_pool_size() {
    const SIZE: usize = 20;
    let house = House::start(|setup| {
        setup.setting("default_pool_size", &SIZE.to_string()).setting("log_pooler_errors", "0")
    });
    let answered = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..40 {
        let (options, answered) = (house.options(), answered.clone());
        tasks.spawn(async move {
            loop {
                let mut client = connect(&options).await;
                while let Ok(reply) = client.query("select pg_sleep(0.01)").await {
                    assert!(reply.errors.iter().all(|error| error.code == "57P01"), "{reply:?}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    let mut most = 0;
    let mut pids = BTreeSet::new();
    let end = Instant::now() + Duration::from_secs(4);
    let mut round = 0;
    while Instant::now() < end {
        let now = house.backend_pids();
        most = most.max(house.sessions_at_once());
        pids.extend(now.iter().copied());
        round += 1;
        if round % 4 == 0 {
            for pid in now.iter().step_by(2) {
                // It may be gone already.
                let _ = house.postgres.kill_backend(*pid, Signal::TERM);
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert!(tasks.try_join_next().is_none(), "a client failed");
    assert!(most <= SIZE, "{most} server connections, {SIZE} are allowed");
    assert!(
        pids.len() > SIZE + SIZE / 2,
        "only {} server connections were seen: nothing was tried",
        pids.len()
    );
    let before = answered.load(Ordering::Relaxed);
    let served = async {
        while answered.load(Ordering::Relaxed) < before + 100 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    within(PATIENCE, "clients are served again", served).await;
    tasks.shutdown().await;
}
