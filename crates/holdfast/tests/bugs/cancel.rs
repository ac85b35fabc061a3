//! Cancel requests: late, lost, stray, or in the way of others.

use std::time::Duration;

use drill::wire::{Connection, TransactionStatus, frame};
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, code, eventually, reply, value, within};

const CANCELED: &str = "57014";

/// A's cancel came late and killed the query of B, who had got the same server connection meanwhile.
/// pgbouncer #38, PR #717
#[tokio::test(flavor = "multi_thread")]
async fn late_cancel_never_kills_another_clients_query() {
    const ROUNDS: usize = 40;
    let house = House::start_behind_relay(|setup| setup.setting("default_pool_size", "1"));
    house.warm(1).await;
    // The only server connection is there: what is opened from now on are cancel requests, and they are slow.
    house.relay().delay_new(Duration::from_millis(50));
    let mut neighbour = house.client().await;
    let steady = tokio::spawn(async move {
        let mut answers = 0_usize;
        loop {
            let reply = neighbour.query("select pg_sleep(0.005)").await.unwrap();
            assert!(reply.errors.is_empty(), "the neighbour was hit: {reply:?}");
            answers += 1;
            if answers >= 4 * ROUNDS {
                return;
            }
        }
    });
    let mut impatient = house.client().await;
    let mut canceled = 0;
    for round in 0..ROUNDS as u64 {
        impatient.send(&frame::query("select pg_sleep(0.04)")).await.unwrap();
        // Around the query's own end: before it, at it, after it.
        sleep(Duration::from_millis(30 + round % 25)).await;
        impatient.cancel().await.unwrap();
        let reply = reply(&mut impatient).await.unwrap();
        canceled += usize::from(reply.error().is_some_and(|error| error.code == CANCELED));
        assert!(reply.errors.iter().all(|error| error.code == CANCELED), "{reply:?}");
    }
    within(PATIENCE, "the neighbour goes on", steady).await.unwrap();
    assert!(canceled < ROUNDS, "every cancel came in time: nothing was tried");
}

/// A stray ReadyForQuery after a cancel: from then on every answer belonged to the query before.
/// pgbouncer #141
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_never_one_behind_after_cancels() {
    let house = House::start(|setup| setup.setting("default_pool_size", "2"));
    let mut clients = Vec::new();
    for name in 0..4_u64 {
        let mut client = house.client().await;
        let address = house.options().address;
        clients.push(tokio::spawn(async move {
            let key = client.cancel_key().unwrap().clone();
            let mut random = fastrand::Rng::with_seed(name);
            let mut canceled = 0;
            for turn in 0..60 {
                let id = format!("{name}-{turn}");
                let sql = format!("select '{id}' from pg_sleep(0.0{:02})", random.u8(0..30));
                let query = match random.bool() {
                    true => frame::query(&sql),
                    false => frame::extended_query(&sql, &[]),
                };
                client.send(&query).await.unwrap();
                let wait = Duration::from_millis(random.u64(0..30));
                let (address, key) = (address.clone(), key.clone());
                let cancel = tokio::spawn(async move {
                    sleep(wait).await;
                    Connection::cancel_with(&address, key.process_id, &key.secret).await.unwrap();
                });
                let reply = reply(&mut client).await.unwrap();
                match reply.error() {
                    Some(error) => {
                        assert_eq!(error.code, CANCELED, "{error}");
                        canceled += 1;
                    }
                    None => assert_eq!(reply.value(), Some(&*id), "an answer to another query"),
                }
                assert_eq!(reply.status, Some(TransactionStatus::Idle));
                cancel.await.unwrap();
            }
            canceled
        }));
    }
    let mut canceled = 0;
    for client in clients {
        canceled += within(PATIENCE, "a client's turns", client).await.unwrap();
    }
    assert!(canceled > 0, "no cancel came in time: nothing was tried");
}

/// A client that waited for a server could not be cancelled: it hung until it was served.
/// pgbouncer #1222, #1314
#[tokio::test(flavor = "multi_thread")]
async fn queued_client_is_cancelled_at_once_and_its_session_goes_on() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut holder = house.client().await;
    value(&mut holder, "begin; select 1").await;
    for query in [frame::query("select 'simple'"), frame::extended_query("select 'extended'", &[])] {
        let mut queued = house.client().await;
        queued.send(&query).await.unwrap();
        house.wait_waiting(1).await;
        let began = Instant::now();
        queued.cancel().await.unwrap();
        let reply = reply(&mut queued).await.unwrap();
        // A tenth of a second is what the report asks for; the rest is room for a busy machine.
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
        assert_eq!(reply.kinds, "EZ", "exactly one error and one ReadyForQuery");
        assert_eq!(reply.error().unwrap().code, CANCELED);
        house.wait_waiting(0).await;
        holder.query("commit").await.unwrap();
        assert_eq!(value(&mut queued, "select 'usable'").await, "usable");
        value(&mut holder, "begin; select 1").await;
    }
}

/// A client died and its query ran on, for ten minutes, on a server connection that nobody could use.
/// pgbouncer #63, PR #497
#[tokio::test(flavor = "multi_thread")]
async fn query_of_a_dead_client_is_cancelled_and_its_server_reused() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut survivor = house.client().await;
    let pid = survivor.server_pid().await.unwrap();
    for death in ["close", "reset", "terminate"] {
        let mut dying = house.client().await;
        let query = match death {
            "close" => frame::extended_query("select pg_sleep(600)", &[]),
            _ => frame::query("begin; select pg_sleep(600)"),
        };
        dying.send(&query).await.unwrap();
        house.wait_pool("the query runs", |pool| pool["sv_active"] == "1").await;
        let running = || {
            house.postgres.backends().unwrap().iter().any(|backend| backend.query.contains("pg_sleep(600)"))
        };
        eventually(PATIENCE, "the query runs at the server", running).await;
        let began = Instant::now();
        match death {
            "close" => drop(dying),
            "reset" => dying.abort().unwrap(),
            _ => dying.terminate().await.unwrap(),
        }
        let again = within(Duration::from_secs(2), death, survivor.server_pid()).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(1), "{death}: {:?}", began.elapsed());
        assert_eq!(again, pid, "{death}: the server connection was replaced instead of reused");
    }
    assert!(house.metric("server_closes_total").await < 1.0);
}

/// After an outage each of hundreds of queued cancels took the one connect slot: minutes of "cannot connect".
/// pgbouncer #328, PR #329
#[tokio::test(flavor = "multi_thread")]
async fn queued_cancels_never_delay_new_server_connections() {
    let house = House::start_behind_relay(|setup| setup.setting("default_pool_size", "10"));
    house.warm(10).await;
    let mut busy = Vec::new();
    for _ in 0..10 {
        let mut client = house.client().await;
        client.send(&frame::query("select pg_sleep(600)")).await.unwrap();
        busy.push(client);
    }
    house.wait_pool("all servers are busy", |pool| pool["sv_active"] == "10").await;
    // From now on new connections to the database lead nowhere, as when its host has gone: the cancels hang.
    house.relay().swallow_new(true);
    let mut cancels = Vec::new();
    for client in busy.iter().cycle().take(200) {
        let mut cancel = Connection::open(&house.options().address, None).await.unwrap();
        let key = client.cancel_key().unwrap();
        cancel.send(&frame::cancel_request(key.process_id, &key.secret)).await.unwrap();
        cancels.push(cancel);
    }
    house.wait_pool("cancels hang", |pool| pool["sv_active_cancel"] == "10").await;
    // The servers die; the host is back.
    house.postgres.kill_backends(drill::process::Signal::TERM).unwrap();
    for client in &mut busy {
        let end = reply(client).await.unwrap_err();
        assert!(!code(&end).is_empty(), "a client was told nothing: {end}");
    }
    assert!(house.relay().counts().live >= 10, "the cancels no longer hang: nothing was tried");
    house.relay().swallow_new(false);
    let began = Instant::now();
    let mut client = house.client().await;
    assert_eq!(value(&mut client, "select 'served'").await, "served");
    assert!(began.elapsed() < Duration::from_secs(1), "first query after {:?}", began.elapsed());
}
