//! Clients that die, at any point: what they leave behind must hurt nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drill::postgres::USER;
use drill::wire::{ConnectOptions, Connection, Error, Reply, frame};
use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{House, PATIENCE, connect, number, reply, value, within};

/// A client died after half an extended request; the server connection waited an hour for the rest, with its locks.
/// pgdog #803
#[tokio::test(flavor = "multi_thread")]
async fn half_an_extended_request_of_a_dead_client_holds_no_lock() {
    let house = House::start(|setup| setup.setting("default_pool_size", "2"));
    house.postgres.admin("create table t (a int); grant all on t to bench").unwrap();
    let mut survivor = house.client().await;
    let parse = frame::parse("", "insert into t values ($1)");
    let bind = frame::bind("", "", &[Some("1")]);
    let execute = frame::execute("", 0);
    let whole = [parse, bind, execute].concat();
    // In the middle of Parse, of Bind, of Execute, between them, and all of it without Sync.
    let cuts = [5, 20, 40, whole.len() - 12, whole.len() - 4, whole.len()];
    for (cut, in_transaction) in cuts.into_iter().flat_map(|cut| [(cut, true), (cut, false)]) {
        let mut dying = house.client().await;
        if in_transaction {
            value(&mut dying, "begin; lock table t in access exclusive mode").await;
        }
        dying.send(&whole[..cut]).await.unwrap();
        sleep(Duration::from_millis(20)).await;
        let began = Instant::now();
        dying.abort().unwrap();
        within(Duration::from_secs(2), "the lock", survivor.query("select count(*) from t")).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(1), "cut at {cut}: free after {:?}", began.elapsed());
    }
    house.wait_pool("nothing is in use", |pool| pool["sv_active"] == "0" && pool["sv_used"] == "0").await;
    let stuck = house
        .postgres
        .backends()
        .unwrap()
        .into_iter()
        .find(|backend| backend.user == USER && backend.state != "idle");
    assert_eq!(stuck, None, "a backend was left in the middle of something");
    assert_eq!(value(&mut survivor, "select count(*) from t").await, "0", "half a request was carried out");
}

/// Under load, with clients that died or timed out, rows of another client's query came back.
/// pgdog #759
#[tokio::test(flavor = "multi_thread")]
async fn rows_never_go_to_another_client() {
    let house = House::start(|setup| setup.setting("default_pool_size", "5"));
    let counts = select_own_ids(&house, 200, 20).await;
    assert!(counts.answers > 1_000 && counts.deaths > 200, "nothing was tried: {counts:?}");
    assert_eq!(house.metric_of("server_closes_total", "cause=\"desync\"").await, 0.0);
}

/// The same with a thousand clients, simple and extended.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_clients_dying_at_random_never_see_a_foreign_row() {
    drill::process::raise_descriptor_limit();
    let house = House::start(|setup| setup.setting("default_pool_size", "20"));
    let counts = select_own_ids(&house, 1_000, 10).await;
    assert!(counts.answers > 3_000 && counts.deaths > 1_000, "nothing was tried: {counts:?}");
}

/// Results were one behind from one session to the next.
/// pgagroal #142
#[tokio::test(flavor = "multi_thread")]
async fn successive_sessions_get_their_own_result() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    for number in 0..150 {
        let mut client = house.client().await;
        assert_eq!(value(&mut client, &format!("select {number}")).await, number.to_string());
        match number % 3 {
            0 => client.terminate().await.unwrap(),
            1 => drop(client),
            _ => {
                // Leaves its next answer behind.
                client.send(&frame::query("select 'left behind'")).await.unwrap();
                client.abort().unwrap();
            }
        }
    }
}

/// Clients that vanished without Terminate emptied the pool, one connection each.
/// pgagroal PR #709
#[tokio::test(flavor = "multi_thread")]
async fn clients_vanishing_while_idle_cost_no_server() {
    let house = House::start(|setup| setup.setting("default_pool_size", "3"));
    house.warm(3).await;
    let pids = house.backend_pids();
    for _ in 0..60 {
        let mut client = house.client().await;
        value(&mut client, "select 1").await;
        client.abort().unwrap();
    }
    house.wait_pool("the clients have gone", |pool| pool["cl_active"] == "0").await;
    assert_eq!(house.backend_pids(), pids, "server connections were closed or replaced");
}

/// 500 clients wait and 499 leave, in every way there is: the live one gets the server, none is spent on the dead.
#[tokio::test(flavor = "multi_thread")]
async fn freed_server_goes_to_the_one_waiter_that_is_alive() {
    const WAITERS: usize = 500;
    drill::process::raise_descriptor_limit();
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut holder = house.client().await;
    value(&mut holder, "begin; select 1").await;
    let mut waiters = Vec::new();
    for number in 0..WAITERS {
        let mut waiter = house.client().await;
        let sql = format!("select {number}");
        let query = if number % 2 == 0 { frame::query(&sql) } else { frame::extended_query(&sql, &[]) };
        waiter.send(&query).await.unwrap();
        waiters.push(waiter);
    }
    house.wait_waiting(WAITERS).await;
    // Neither the first nor the last in line.
    let mut alive = waiters.remove(WAITERS / 2);
    for (number, waiter) in waiters.into_iter().enumerate() {
        match number % 3 {
            0 => waiter.terminate().await.unwrap(),
            1 => drop(waiter),
            _ => waiter.abort().unwrap(),
        }
    }
    house.wait_waiting(1).await;
    value(&mut holder, "commit").await;
    let reply = within(Duration::from_secs(1), "the live waiter", alive.read_reply()).await.unwrap();
    assert_eq!(reply.value(), Some(&*(WAITERS / 2).to_string()));
    let pool = house.pool().await;
    assert_eq!((number(&pool, "cl_waiting"), number(&pool, "cl_active")), (0, 2), "{pool:?}");
    assert_eq!(house.metric("dead_waiters_total").await, (WAITERS - 1) as f64);
    assert_eq!(house.metric("dead_handoffs_total").await, 0.0);
    // The holder's transaction and the live waiter: no other query has reached the database.
    assert_eq!(house.metric("server_assignments_total").await, 2.0);
    assert_eq!(house.metric("server_closes_total").await, 0.0);
}

/// A waiter that has sent more than is read ahead: its reset shows at once, its orderly end only behind what it sent.
/// Serving such a dead one costs a query that nobody reads, but neither the server connection nor anybody's turn.
#[tokio::test(flavor = "multi_thread")]
async fn waiters_with_long_requests_that_leave_cost_no_server() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut holder = house.client().await;
    let pid = holder.server_pid().await.unwrap();
    value(&mut holder, "begin; select 1").await;
    let long = frame::query(&format!("select length('{}'), pg_sleep(600)", "x".repeat(300_000)));
    let mut waiters = Vec::new();
    for _ in 0..4 {
        let mut waiter = house.client().await;
        let (sent, request) = (waiters.len() + 1, long.clone());
        waiters.push(tokio::spawn(async move {
            // It fits the kernel's buffers together with the pooler's, or it is still being sent.
            let _ = timeout(Duration::from_secs(2), waiter.send(&request)).await;
            waiter
        }));
        house.wait_waiting(sent).await;
    }
    let mut live = house.client().await;
    live.send(&frame::query("select 'served'")).await.unwrap();
    house.wait_waiting(5).await;
    for (number, waiter) in waiters.into_iter().enumerate() {
        let waiter = within(PATIENCE, "it is sent", waiter).await.unwrap();
        match number % 2 {
            0 => waiter.abort().unwrap(),
            _ => waiter.terminate().await.unwrap(),
        }
    }
    house.wait_waiting(3).await;
    value(&mut holder, "commit").await;
    let served = within(Duration::from_secs(2), "the live one", live.read_reply()).await.unwrap();
    assert_eq!(served.value(), Some("served"));
    assert_eq!(holder.server_pid().await.unwrap(), pid, "the server connection was replaced");
}

/// What a load of clients has seen.
#[derive(Debug)]
struct Counts {
    answers: usize,
    deaths: usize,
}

/// Clients that select their own id, time after time, and die in between in every way.
async fn select_own_ids(house: &House, clients: usize, turns: usize) -> Counts {
    let [answers, deaths] = [0; 2].map(|_| Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let (options, answers, deaths) = (house.options(), answers.clone(), deaths.clone());
        tasks.spawn(async move {
            let mut random = Rng::with_seed(number as u64);
            let mut client = connect(&options).await;
            for turn in 0..turns {
                let id = format!("{number}-{turn}");
                if random.u8(0..4) == 0 {
                    die(client, &options, &id, &mut random).await;
                    deaths.fetch_add(1, Ordering::Relaxed);
                    client = connect(&options).await;
                }
                client.send(&own_id(&id, &mut random)).await.unwrap();
                let reply = reply(&mut client).await.unwrap();
                assert_own(&reply, &id);
                answers.fetch_add(1, Ordering::Relaxed);
            }
            client.terminate().await.unwrap();
        });
    }
    let all = async {
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
    };
    within(3 * PATIENCE, "all turns", all).await;
    Counts { answers: answers.load(Ordering::Relaxed), deaths: deaths.load(Ordering::Relaxed) }
}

/// A request for the client's own id, in one of the shapes that drivers send.
fn own_id(id: &str, random: &mut Rng) -> Vec<u8> {
    let pause = if random.u8(0..4) == 0 { "pg_sleep(0.01)" } else { "generate_series(1, 3)" };
    match random.u8(0..3) {
        0 => frame::query(&format!("select '{id}' from {pause}")),
        1 => frame::extended_query(&format!("select $1::text from {pause}"), &[Some(id)]),
        _ => [
            frame::parse("", &format!("select $1::text from {pause}")),
            frame::describe_statement(""),
            frame::bind("", "", &[Some(id)]),
            frame::execute("", 0),
            frame::sync(),
        ]
        .concat(),
    }
}

fn assert_own(reply: &Reply, id: &str) {
    assert!(reply.errors.is_empty(), "{reply:?}");
    assert!(!reply.rows.is_empty(), "{reply:?}");
    for row in &reply.rows {
        assert_eq!(row[0].as_deref(), Some(id), "a foreign row");
    }
}

/// Leaves in one of many ways, most of them in the middle of something.
async fn die(mut client: Connection, options: &ConnectOptions, id: &str, random: &mut Rng) {
    let request = own_id(id, random);
    let part = random.usize(1..request.len());
    match random.u8(0..7) {
        0 => {}
        1 => client.send(&request).await.unwrap(),
        2 => client.send(&request[..part]).await.unwrap(),
        3 => {
            let begin = client.query("begin").await.unwrap();
            assert!(begin.errors.is_empty(), "{begin:?}");
            client.send(&request[..part]).await.unwrap();
        }
        4 => {
            // Out of patience: it may see its own answer, no other.
            client.send(&request).await.unwrap();
            if let Ok(Ok(reply)) =
                timeout(Duration::from_millis(random.u64(0..15)), client.read_reply()).await
            {
                assert_own(&reply, id);
            }
        }
        5 => {
            client.send(&request).await.unwrap();
            sleep(Duration::from_millis(random.u64(0..15))).await;
            let key = client.cancel_key().unwrap();
            // It does not wait for what becomes of its cancel.
            let mut cancel = Connection::open(&options.address, None).await.unwrap();
            cancel.send(&frame::cancel_request(key.process_id, &key.secret)).await.unwrap();
        }
        _ => client.send(&[request.clone(), request].concat()).await.unwrap(),
    }
    let left = match random.u8(0..3) {
        0 => client.terminate().await,
        1 => client.abort().map_err(Error::from),
        _ => {
            drop(client);
            Ok(())
        }
    };
    left.unwrap();
}
