//! The console, as psql and monitoring see it.

use drill::postgres::ADMIN_USER;
use drill::wire::Connection;

use crate::psql::{Way, psql};
use crate::support::{House, PATIENCE, code, error, show, value, within};

/// The columns of PgBouncer's SHOW POOLS, in its order.
const PGBOUNCER_POOLS: &str = "database|user|cl_active|cl_waiting|cl_active_cancel_req|cl_waiting_cancel_req|sv_active|\
     sv_active_cancel|sv_being_canceled|sv_idle|sv_used|sv_tested|sv_login|maxwait|maxwait_us|pool_mode|load_balance_hosts";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_shows_the_pools_with_the_columns_of_pgbouncer() {
    let house = House::start(|setup| setup.setting("default_pool_size", "3"));
    house.warm(2).await;
    let mut busy = house.client().await;
    value(&mut busy, "begin").await;
    let seen = psql(&house, Way::Tcp, ADMIN_USER, "pgbouncer", None, "SHOW POOLS");
    assert!(seen.worked, "{}", seen.stderr);
    let mut lines = seen.stdout.lines();
    assert!(lines.next().unwrap().starts_with(PGBOUNCER_POOLS), "{}", seen.stdout);
    let pool = lines.find(|line| line.starts_with("bench|bench|")).unwrap();
    assert!(pool.starts_with("bench|bench|1|0|0|0|1|0|0|1|0|0|0|0|"), "{pool}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_result_of_the_console_answers_in_psql() {
    let house = House::start(|setup| setup);
    let mut client = house.client().await;
    value(&mut client, "begin").await;
    for (what, contains) in [
        ("clients", "bench"),
        ("servers", "bench"),
        ("stats", "total_xact_count"),
        ("version", "holdfast"),
        ("config", "query_wait_timeout"),
        ("holders", "idle in transaction"),
    ] {
        let seen = psql(&house, Way::Tcp, ADMIN_USER, "pgbouncer", None, &format!("SHOW {what};"));
        assert!(seen.worked && seen.stdout.contains(contains), "SHOW {what}: {}{}", seen.stdout, seen.stderr);
    }
    let seen = psql(&house, Way::Tcp, ADMIN_USER, "pgbouncer", None, "PAUSE");
    assert!(!seen.worked && seen.stderr.contains("PAUSE"), "{}", seen.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stats_user_may_look_and_not_reload_and_others_may_do_neither() {
    let house = House::start(|setup| setup.setting("stats_users", "watcher").user("watcher", ""));
    let mut watcher = crate::support::connect(&house.pooler.connect_options("watcher", "pgbouncer")).await;
    assert!(!show(&mut watcher, "POOLS").await.is_empty());
    let told = error(&mut watcher, "RELOAD").await;
    assert_eq!(told.code, "42501", "{told}");
    // The session goes on.
    assert!(!show(&mut watcher, "STATS").await.is_empty());
    let mut admin = house.console().await;
    let reply = admin.query("RELOAD").await.unwrap().into_result().unwrap();
    assert_eq!(reply.tags, ["RELOAD"]);
    let options = house.pooler.connect_options("bench", "pgbouncer");
    let refused = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap_err();
    assert_eq!(code(&refused), "28000", "{refused}");
    let seen = psql(&house, Way::Tcp, "watcher", "pgbouncer", None, "RELOAD");
    assert!(!seen.worked, "{}", seen.stdout);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_of_show_stats_count_what_was_done() {
    let house = House::start(|setup| setup);
    let mut client = house.client().await;
    for _ in 0..5 {
        value(&mut client, "select 1").await;
    }
    value(&mut client, "begin; select 2; commit").await;
    let rows = house.show("STATS").await;
    let stats = rows.iter().find(|row| row["database"] == "bench").unwrap();
    assert_eq!(stats["total_xact_count"], "6");
    assert_eq!(stats["total_query_count"], "6");
    assert_eq!(stats["total_server_assignment_count"], "6");
    assert_eq!(stats["total_client_login_count"], "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_is_reached_when_no_client_may_come_any_more() {
    let house = House::start(|setup| setup.setting("max_client_conn", "1"));
    let _client = house.client().await;
    let refused = within(PATIENCE, "a login", Connection::connect(&house.options())).await.unwrap_err();
    assert_eq!(code(&refused), "53300");
    assert_eq!(house.pool().await["cl_active"], "1");
}
