//! Stalls, pools that do not refill, and churn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use drill::postgres::{DATABASE, PostgresOptions, USER};
use drill::wire::{ConnectOptions, Connection, frame};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{House, PATIENCE, connect, eventually, holdfast, number, show, value, within};

/// Hundreds of callers who all give up sooner than the pooler does: when the database had been frozen for a moment,
/// the pooler spent its servers on those who had left, and never recovered.
/// pgbouncer #1284
#[tokio::test(flavor = "multi_thread")]
async fn throughput_returns_after_a_freeze_though_callers_give_up_sooner() {
    const CLIENTS: usize = 200;
    let mut house = House::start(|setup| setup.setting("default_pool_size", "20"));
    let answered = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        // 20 servers give 1,000 answers a second, so each of 200 clients waits 200 ms: half of its patience.
        clients.spawn(impatient(house.options(), "select pg_sleep(0.02)", answered.clone()));
    }
    sleep(Duration::from_secs(2)).await;
    let before = rate(&answered, Duration::from_secs(2)).await;
    house.postgres.pause().unwrap();
    sleep(Duration::from_secs(3)).await;
    house.postgres.resume().unwrap();
    sleep(Duration::from_secs(2)).await;
    let after = rate(&answered, Duration::from_secs(2)).await;
    assert!(before > 300.0, "only {before} answers a second in quiet times");
    assert!(
        after >= 0.9 * before,
        "{after} answers a second two seconds after the freeze, {before} before it"
    );
    clients.shutdown().await;
}

/// Everybody waited while one server connection was in login, then the next one: opening them was serial.
/// pgbouncer #1019
#[tokio::test(flavor = "multi_thread")]
async fn slow_logins_run_side_by_side() {
    const CLIENTS: usize = 40;
    let house = House::start_behind_relay(|setup| setup.setting("default_pool_size", "40"));
    house.relay().delay_new(Duration::from_secs(1));
    let began = Instant::now();
    hold_all_at_once(&house, CLIENTS).await;
    // One login tells the parameters that clients are greeted with, the others go side by side; serial would be 40 s.
    assert!(began.elapsed() < Duration::from_secs(5), "served after {:?}", began.elapsed());
}

/// A cold pool grew by one connection per tick of its maintenance, so most of 64 clients met their limit first.
/// pgdog #1488 (in transaction mode: each client holds its server in a transaction until all have one)
#[tokio::test(flavor = "multi_thread")]
async fn cold_pool_grows_as_fast_as_it_is_needed() {
    let house = House::start(|setup| setup.setting("default_pool_size", "80"));
    let began = Instant::now();
    hold_all_at_once(&house, 64).await;
    assert!(began.elapsed() < Duration::from_secs(5), "all had a server after {:?}", began.elapsed());
}

/// A few more clients than connections, and throughput fell to nothing.
/// pgdog #1361
#[tokio::test(flavor = "multi_thread")]
async fn slightly_more_clients_than_servers_keep_the_throughput() {
    let house = House::start(|setup| setup.setting("default_pool_size", "10"));
    let (committed, at_work) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..12 {
        let mut client = house.client().await;
        let (committed, at_work) = (committed.clone(), at_work.clone());
        tasks.spawn(async move {
            loop {
                if number >= at_work.load(Ordering::Relaxed) {
                    sleep(Duration::from_millis(10)).await;
                    continue;
                }
                value(&mut client, "begin").await;
                for _ in 0..8 {
                    value(&mut client, "select 1 from pg_sleep(0.005)").await;
                }
                value(&mut client, "commit").await;
                committed.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    // In turns, so that what else the machine does weighs on both alike.
    let mut rates = [0.0; 2];
    for _ in 0..5 {
        for (rate_of, clients) in rates.iter_mut().zip([10, 12]) {
            at_work.store(clients, Ordering::Relaxed);
            sleep(Duration::from_millis(200)).await;
            *rate_of += rate(&committed, Duration::from_millis(800)).await;
        }
    }
    assert!(tasks.try_join_next().is_none(), "a client failed");
    tasks.shutdown().await;
    let [at_capacity, above] = rates.map(|rate| rate / 5.0);
    assert!(
        above >= 0.8 * at_capacity,
        "{above} transactions a second with 12 clients, {at_capacity} with 10"
    );
}

/// Clients that died made the pooler connect and disconnect without end, until the database had too many clients,
/// although the pooler's limit was far below.
/// pgbouncer #1285
#[tokio::test(flavor = "multi_thread")]
async fn dying_clients_never_push_the_servers_above_their_limit() {
    const LIMIT: usize = 24;
    let house = House::start(|setup| {
        setup
            .setting("default_pool_size", "20")
            .setting("max_db_connections", &LIMIT.to_string())
            .user("erin", "")
    });
    house.postgres.admin("create role erin login").unwrap();
    let mut clients = JoinSet::new();
    for number in 0..40_u64 {
        let options = house.pooler.connect_options(if number % 2 == 0 { USER } else { "erin" }, DATABASE);
        clients.spawn(async move {
            let mut random = fastrand::Rng::with_seed(number);
            loop {
                let mut client = connect(&options).await;
                client.send(&frame::query("select pg_sleep(30)")).await.unwrap();
                sleep(Duration::from_millis(random.u64(0..200))).await;
                client.abort().unwrap();
            }
        });
    }
    let mut most = 0;
    let mut pids = BTreeSet::new();
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        most = most.max(house.sessions_at_once());
        pids.extend(house.backend_pids());
        sleep(Duration::from_millis(50)).await;
    }
    assert!(clients.try_join_next().is_none(), "a client failed");
    clients.shutdown().await;
    assert!((20..=LIMIT).contains(&most), "{most} server connections, {LIMIT} are allowed");
    // Two pools share the places, so a few move between them; but a dead client is no reason for a new connection.
    assert!(pids.len() < 3 * LIMIT, "{} server connections were opened in five seconds", pids.len());
}

/// Clients gave up on a slow database, their server connections were closed, and logging in again cost it the rest of
/// its CPU. With `client_disconnect = close` that is what is asked for: then the pace of logins is the brake.
/// pgbouncer #478
#[tokio::test(flavor = "multi_thread")]
async fn expensive_logins_stay_under_the_set_rate() {
    const RATE: f64 = 10.0;
    const BURST: f64 = 5.0;
    let options = PostgresOptions::default().hba_line("host all erin 127.0.0.1/32 scram-sha-256");
    let house = House::build(&holdfast(), options, false, |setup| {
        setup
            .setting("default_pool_size", "20")
            .setting("client_disconnect", "close")
            .setting("server_login_rate", "10")
            .setting("server_login_concurrency", "5")
            .user("erin", "open sesame")
    });
    let verifier = verifier("open sesame", 100_000);
    house.postgres.admin(&format!("create role erin login password '{verifier}'")).unwrap();
    let answered = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    let began = Instant::now();
    for _ in 0..60 {
        let options = house.pooler.connect_options("erin", DATABASE);
        clients.spawn(impatient(options, "select pg_sleep(random() * 0.8)", answered.clone()));
    }
    sleep(Duration::from_secs(6)).await;
    let span = began.elapsed().as_secs_f64();
    let logins = house.postgres.log().matches("connection authorized: user=erin").count() as f64;
    clients.shutdown().await;
    assert!(logins <= RATE * span + BURST + 1.0, "{logins} logins in {span} s");
    assert!(logins >= 2.0 * BURST, "only {logins} logins in {span} s: nothing was tried");
    assert!(answered.load(Ordering::Relaxed) > 0, "nobody was served");
}

/// At the limit of clients, the servers in use went down to none.
/// pgbouncer #1070
#[tokio::test(flavor = "multi_thread")]
async fn client_limit_does_not_touch_servers_in_use() {
    let house = House::start(|setup| {
        setup
            .setting("default_pool_size", "20")
            .setting("max_client_conn", "50")
            .setting("log_pooler_errors", "0")
    });
    let mut console = house.console().await;
    house.warm(20).await;
    let pids = house.backend_pids();
    let mut tasks = JoinSet::new();
    for _ in 0..40 {
        let mut client = house.client().await;
        tasks.spawn(async move {
            loop {
                value(&mut client, "select pg_sleep(0.1)").await;
            }
        });
    }
    let refused = Arc::new(AtomicUsize::new(0));
    for _ in 0..20 {
        let (options, refused) = (house.options(), refused.clone());
        tasks.spawn(async move {
            loop {
                match Connection::connect(&options).await {
                    Ok(client) => {
                        sleep(Duration::from_millis(20)).await;
                        client.terminate().await.unwrap();
                    }
                    Err(error) => {
                        assert_eq!(error.server().unwrap().code, "53300", "{error}");
                        refused.fetch_add(1, Ordering::Relaxed);
                        sleep(Duration::from_millis(5)).await;
                    }
                }
            }
        });
    }
    sleep(Duration::from_millis(500)).await;
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        let rows = show(&mut console, "POOLS").await;
        let pool = rows.iter().find(|row| row["user"] == USER).unwrap();
        assert_eq!(number(pool, "sv_active"), 20, "servers rest while clients wait: {pool:?}");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(tasks.try_join_next().is_none(), "a client failed");
    assert!(refused.load(Ordering::Relaxed) > 0, "the limit was never met");
    assert_eq!(house.backend_pids(), pids, "server connections were replaced");
    tasks.shutdown().await;
}

/// 400 ms of patience, then CancelRequest, Terminate, close and a new connection, for ever.
async fn impatient(options: ConnectOptions, sql: &'static str, answered: Arc<AtomicU64>) {
    const DEADLINE: Duration = Duration::from_millis(400);
    loop {
        let Ok(Ok(mut client)) = timeout(DEADLINE, Connection::connect(&options)).await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        while let Ok(reply) = timeout(DEADLINE, client.query(sql)).await {
            let Ok(reply) = reply else { break };
            if reply.errors.is_empty() {
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }
        // It leaves either way.
        let _ = timeout(DEADLINE, client.cancel()).await;
        let _ = client.terminate().await;
    }
}

/// Events a second over `span`.
async fn rate(count: &AtomicU64, span: Duration) -> f64 {
    let (before, began) = (count.load(Ordering::Relaxed), Instant::now());
    sleep(span).await;
    (count.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64()
}

/// So many clients at once, each with a server of its own in a transaction at the same time.
async fn hold_all_at_once(house: &House, count: usize) {
    let all = Arc::new(Barrier::new(count));
    let mut clients = JoinSet::new();
    for _ in 0..count {
        let (options, all) = (house.options(), all.clone());
        clients.spawn(async move {
            let mut client = connect(&options).await;
            value(&mut client, "begin; select 1").await;
            all.wait().await;
            value(&mut client, "commit").await;
        });
    }
    let done = async {
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
    };
    within(PATIENCE, "all hold a server at the same time", done).await;
    eventually(PATIENCE, "no more servers than clients", || house.backend_pids().len() <= count).await;
}

/// A SCRAM-SHA-256 verifier as PostgreSQL keeps it (RFC 5803), with any count of iterations.
fn verifier(password: &str, iterations: u32) -> String {
    use aws_lc_rs::{digest, hmac, pbkdf2};
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let salt = [7; 16];
    let mut salted = [0; 32];
    let rounds = std::num::NonZeroU32::new(iterations).unwrap();
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), &mut salted);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
    let client_key = hmac::sign(&key, b"Client Key");
    let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
    let server_key = hmac::sign(&key, b"Server Key");
    let [salt, stored, server] =
        [&salt[..], stored_key.as_ref(), server_key.as_ref()].map(|part| STANDARD.encode(part));
    format!("SCRAM-SHA-256${iterations}:{salt}${stored}:{server}")
}
