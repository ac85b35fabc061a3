//! Limits on clients of a database and of a user, limits on what they send, and the notices that they get.

use std::time::Duration;

use drill::postgres::DATABASE;
use drill::wire::{Address, Connection, ServerError, frame};
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, code, connect, holdfast, number, value, within};

const QUEUED: &str = "No server connection available in postgres backend, client being queued";

/// How a client that may not come in is told so.
async fn refusal(house: &House, user: &str, database: &str) -> ServerError {
    let options = house.pooler.connect_options(user, database);
    let refused = within(PATIENCE, "a refusal", Connection::connect(&options)).await.unwrap_err();
    let told = refused.server().expect("a reason").clone();
    assert_eq!((told.code.as_str(), told.is_fatal()), ("53300", true), "{told}");
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_more_than_a_database_may_have_is_told_so_and_the_console_is_open() {
    let house = House::start(|setup| {
        setup.setting("max_db_client_connections", "2").setting("max_user_client_connections", "0")
    });
    let clients = [house.client().await, house.client().await];
    let told = refusal(&house, drill::postgres::USER, DATABASE).await;
    assert_eq!(told.message, "client connections exceeded (max_db_client_connections)");
    let mut consoles = Vec::new();
    for _ in 0..3 {
        consoles.push(house.console().await);
    }
    assert_eq!(house.metric("clients_refused_total").await, 1.0);
    let [first, _second] = clients;
    first.terminate().await.unwrap();
    house.wait_pool("one has left", |pool| pool["cl_active"] == "1").await;
    let mut again = house.client().await;
    assert_eq!(value(&mut again, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_own_limit_counts_over_all_databases_and_before_the_general_one() {
    let postgres = drill::postgres::PrivatePostgres::start_default().unwrap();
    postgres.admin("create role ann login").unwrap();
    let house = House::build_on(&holdfast(), postgres, false, |setup, postgres| {
        let target = format!("host=127.0.0.1 port={} dbname=bench", postgres.port());
        setup
            .setting("max_user_client_connections", "1")
            .database(&format!("alias = {target}"))
            .user("ann", "")
            .section("[users]\nann = max_user_client_connections=2\n")
    });
    let _anns = [
        connect(&house.pooler.connect_options("ann", DATABASE)).await,
        connect(&house.pooler.connect_options("ann", "alias")).await,
    ];
    let _other = house.client().await;
    for (user, database) in [("ann", "alias"), (drill::postgres::USER, "alias")] {
        let told = refusal(&house, user, database).await;
        assert_eq!(told.message, "client connections exceeded (max_user_client_connections)");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_is_told_once_and_its_answer_is_whole() {
    let house =
        House::start(|setup| setup.setting("default_pool_size", "1").setting("query_wait_notify", "1"));
    let (mut holder, mut waiter) = (house.client().await, house.client().await);
    value(&mut holder, "begin").await;
    let began = Instant::now();
    let asked = tokio::spawn(async move {
        let first = within(PATIENCE, "the notice", waiter.send(&frame::query("select 'served'"))).await;
        first.unwrap();
        let message = waiter.read_message().await.unwrap();
        let told_after = began.elapsed();
        let rest = waiter.read_reply().await.unwrap();
        (message, told_after, rest, waiter)
    });
    sleep(Duration::from_millis(2500)).await;
    value(&mut holder, "commit").await;
    let (message, told_after, reply, mut waiter) = within(PATIENCE, "the answer", asked).await.unwrap();
    let notice = ServerError::parse(&message.body);
    assert_eq!((message.kind, notice.message.as_str(), notice.code.as_str()), (b'N', QUEUED, "00000"));
    assert!((0.95..2.0).contains(&told_after.as_secs_f64()), "{told_after:?}");
    assert_eq!(reply.value(), Some("served"));
    assert!(reply.notices.is_empty(), "once for each wait");
    // Who is served at once is told nothing.
    let reply = within(PATIENCE, "an answer", waiter.query("select 1")).await.unwrap();
    assert!(reply.notices.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn login_notify_message_is_read_by_every_client_at_login_and_psql_shows_it() {
    let house = House::start(|setup| setup.setting("login_notify_message", "maintenance at noon"));
    let mut client = Connection::open(&Address::Tcp(house.pooler.address()), None).await.unwrap();
    client.send(&house.options().startup_frame()).await.unwrap();
    let mut told = Vec::new();
    loop {
        let message = within(PATIENCE, "the greeting", client.read_message()).await.unwrap();
        match message.kind {
            b'N' => told.push(ServerError::parse(&message.body).message),
            b'Z' => break,
            _ => {}
        }
    }
    assert_eq!(told, ["maintenance at noon"]);
    assert_eq!(value(&mut client, "select 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_disable_pqexec_only_the_extended_protocol_works() {
    let house = House::start(|setup| setup.setting("disable_pqexec", "1"));
    let (mut extended, mut simple) = (house.client().await, house.client().await);
    let reply =
        within(PATIENCE, "an answer", extended.extended_query("select $1::int + 1", &[Some("1")])).await;
    assert_eq!(reply.unwrap().value(), Some("2"));
    let told = within(PATIENCE, "a refusal", simple.query("select 1")).await.unwrap_err();
    assert_eq!(code(&told), "0A000");
    assert_eq!(told.server().unwrap().message, "PQexec disallowed");
    // The console knows no other protocol.
    let pool = house.pool().await;
    assert_eq!(number(&pool, "cl_active"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_max_packet_size_passes_and_one_byte_more_ends_the_session() {
    let house = House::start(|setup| setup.setting("max_packet_size", "100kB"));
    let (mut fits, mut large) = (house.client().await, house.client().await);
    // Length and the final zero count.
    let sql = |bytes: usize| format!("select '{}'", "x".repeat(bytes - "select ''".len() - 4 - 1));
    let reply = within(PATIENCE, "an answer", fits.query(&sql(100 * 1024))).await.unwrap();
    assert!(reply.error().is_none(), "{reply:?}");
    let told = within(PATIENCE, "a refusal", large.query(&sql(100 * 1024 + 1))).await.unwrap_err();
    assert_eq!(code(&told), "08P01", "{told}");
    assert_eq!(value(&mut fits, "select 1").await, "1");
}
