//! Session and statement pooling, against a real server.

use crate::support::{House, PATIENCE, error, number, value, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_keeps_its_temporary_table_and_its_lock_and_the_next_one_sees_neither() {
    let house = House::start(|setup| setup.setting("pool_mode", "session").setting("default_pool_size", "1"));
    let mut first = house.client().await;
    let backend = value(&mut first, "select pg_backend_pid()").await;
    within(PATIENCE, "a temporary table", first.query("create temp table t (x int)")).await.unwrap();
    within(PATIENCE, "a lock", first.query("select pg_advisory_lock(7)")).await.unwrap();
    within(PATIENCE, "a setting", first.query("set work_mem = '5MB'")).await.unwrap();
    within(PATIENCE, "a statement", first.query("prepare s as select 42")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(value(&mut first, "select count(*) from t").await, "0");
        assert_eq!(value(&mut first, "execute s").await, "42");
        assert_eq!(value(&mut first, "select pg_backend_pid()").await, backend);
    }
    let mut second = house.client().await;
    let waiting = tokio::spawn(async move {
        let next = value(&mut second, "select pg_backend_pid()").await;
        (second, next)
    });
    house.wait_waiting(1).await;
    first.terminate().await.unwrap();
    let (mut second, next) = within(PATIENCE, "the next session", waiting).await.unwrap();
    assert_eq!(next, backend, "the same server");
    assert_eq!(error(&mut second, "select count(*) from t").await.code, "42P01");
    assert_eq!(error(&mut second, "execute s").await.code, "26000");
    assert_eq!(value(&mut second, "select count(*) from pg_locks where locktype = 'advisory'").await, "0");
    assert_ne!(value(&mut second, "show work_mem").await, "5MB");
    assert_eq!(house.pool().await["pool_mode"], "session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_dies_in_a_transaction_leaves_a_clean_server() {
    let house = House::start(|setup| setup.setting("pool_mode", "session").setting("default_pool_size", "1"));
    let mut first = house.client().await;
    within(PATIENCE, "a table", first.query("create table kept (x int)")).await.unwrap();
    within(PATIENCE, "begin", first.query("begin; insert into kept values (1)")).await.unwrap();
    first.abort().unwrap();
    let mut second = house.client().await;
    assert_eq!(value(&mut second, "select count(*) from kept").await, "0");
    assert_eq!(house.backend_pids().len(), 1, "the connection was kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_mode_shares_after_each_statement_and_refuses_transactions() {
    let house =
        House::start(|setup| setup.setting("default_pool_size", "1").setting("pool_mode", "statement"));
    let mut first = house.client().await;
    let mut second = house.client().await;
    let backend = value(&mut first, "select pg_backend_pid()").await;
    assert_eq!(value(&mut second, "select pg_backend_pid()").await, backend);
    let refused = within(PATIENCE, "begin", first.query("begin")).await.unwrap_err();
    let told = refused.server().expect("it is told why").message.clone();
    assert_eq!(told, "transaction blocks not allowed in statement pooling mode");
    assert_eq!(value(&mut second, "select pg_backend_pid()").await, backend, "the server is clean and kept");
    assert_eq!(number(&house.pool().await, "sv_idle"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_may_have_another_mode_than_the_others() {
    let house = House::start(|setup| {
        setup.setting("default_pool_size", "1").section("[users]\nbench = pool_mode=session\n")
    });
    let mut client = house.client().await;
    within(PATIENCE, "a temporary table", client.query("create temp table t (x int)")).await.unwrap();
    assert_eq!(value(&mut client, "select count(*) from t").await, "0");
    assert_eq!(house.pool().await["pool_mode"], "session");
}
