//! `overload_policy` in front of a real PostgreSQL: a request that is told to go costs its session nothing.

use std::process::{Command, Stdio};
use std::time::Duration;

use drill::wire::{Connection, frame};

use crate::support::{House, PATIENCE, code, connect, error, number, value, within};

/// One server, and a client that holds it.
async fn held(policy: &str) -> (House, Connection) {
    let house = House::start(|setup| {
        setup
            .setting("default_pool_size", "1")
            .setting("query_wait_timeout", "60")
            .setting("overload_policy", policy)
    });
    let mut holder = house.client().await;
    value(&mut holder, "begin").await;
    (house, holder)
}

async fn shed(house: &House, column: &str) -> usize {
    let rows = house.show("OVERLOAD").await;
    rows.iter().map(|row| number(row, column)).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_after_a_request_that_was_told_to_go() {
    let (house, mut holder) = held("on").await;
    let mut client = connect(&house.options().parameter("holdfast.patience", "200ms")).await;
    let told = error(&mut client, "select 1").await;
    assert_eq!((told.code.as_str(), told.severity.as_str()), ("53H03", "ERROR"), "{told:?}");
    let extended =
        within(PATIENCE, "a batch", client.extended_query("select $1", &[Some("x")])).await.unwrap();
    assert_eq!(extended.error().map(|told| told.code.as_str()), Some("53H03"));

    // Two requests in one write.
    let batches = [frame::extended_query("select $1", &[Some("1")]), frame::query("select 2")].concat();
    client.send(&batches).await.unwrap();
    for _ in 0..2 {
        let told = within(PATIENCE, "a reply", client.read_reply()).await.unwrap();
        assert_eq!(told.error().map(|told| told.code.as_str()), Some("53H03"));
    }
    assert_eq!(shed(&house, "shed_deadline").await, 4);

    value(&mut holder, "commit").await;
    assert_eq!(value(&mut client, "select 3").await, "3");
    assert_eq!(
        value(&mut client, "select count(*) from pg_settings where name = 'holdfast.patience'").await,
        "0"
    );
    // What a statement_timeout says, set on the way, is a patience too, and follows its client.
    let mut other = house.client().await;
    value(&mut other, "set statement_timeout = '250ms'").await;
    value(&mut holder, "begin").await;
    let told = error(&mut other, "select 4").await;
    assert_eq!(told.code, "53H03", "{told:?}");
    value(&mut holder, "commit").await;
    assert_eq!(value(&mut other, "show statement_timeout").await, "250ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_goes_on_with_its_next_command() {
    let (house, mut holder) = held("on").await;
    let mut command = Command::new(house.postgres.binaries().program("psql"));
    let options = house.options();
    command.env_clear().env("LC_ALL", "C").env("PGOPTIONS", "-c holdfast.patience=200ms");
    command.args(["-X", "-A", "-t", "-w", "-h", "127.0.0.1", "-p", &house.pooler.port().to_string()]);
    command.args(["-U", &options.user, "-d", &options.database, "-v", "VERBOSITY=verbose"]);
    for at in 0..100 {
        command.args(["-c", &format!("select {at}")]);
    }
    let psql = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    within(PATIENCE, "a refusal", async {
        while shed(&house, "shed_deadline").await < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    value(&mut holder, "commit").await;
    let output = tokio::task::spawn_blocking(move || psql.wait_with_output()).await.unwrap().unwrap();
    let (out, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let refused = told.matches("ERROR:  53H03: the database is overloaded").count();
    assert!(refused >= 2, "{told}");
    assert_eq!(told.matches("retry after ").count(), refused, "{told}");
    assert_eq!(out.lines().count(), 100 - refused, "each command was either refused or answered: {out}");
    assert_eq!(out.lines().last(), Some("99"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_postgres_goes_on_with_its_pipeline() {
    let (house, mut holder) = held("on").await;
    let options = house.options();
    let (client, connection) = tokio_postgres::Config::new()
        .host("127.0.0.1")
        .port(house.pooler.port())
        .user(&options.user)
        .dbname(&options.database)
        .options("-c holdfast.patience=200ms")
        .connect(tokio_postgres::NoTls)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let (one, two) = tokio::join!(client.query("select 1", &[]), client.simple_query("select 2"));
    for told in [one.map(drop).unwrap_err(), two.map(drop).unwrap_err()] {
        assert_eq!(told.code().map(tokio_postgres::error::SqlState::code), Some("53H03"), "{told:?}");
        assert!(told.as_db_error().and_then(tokio_postgres::error::DbError::hint).is_some(), "{told:?}");
    }
    value(&mut holder, "commit").await;
    let row = within(PATIENCE, "a row", client.query_one("select 3", &[])).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 3);
    drop(client);
    within(PATIENCE, "the end", connection).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observe_lets_everybody_wait_and_counts_him() {
    let (house, mut holder) = held("observe").await;
    let mut client = connect(&house.options().parameter("holdfast.patience", "50ms")).await;
    let waiting = tokio::spawn(async move {
        let answer = client.query("select 1").await.map(|reply| reply.value().map(str::to_owned));
        answer.map_err(|told| code(&told))
    });
    within(PATIENCE, "the count", async {
        while shed(&house, "would_shed_deadline").await < 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(shed(&house, "shed_deadline").await, 0);
    value(&mut holder, "commit").await;
    assert_eq!(waiting.await.unwrap(), Ok(Some("1".to_owned())));
}
