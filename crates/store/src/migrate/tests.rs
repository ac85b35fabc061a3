use drill::peer::{Pgbouncer, PoolerSetup};
use drill::postgres::{ADMIN_USER, DATABASE, PrivatePostgres};

use super::*;

pub(crate) fn direct(postgres: &PrivatePostgres) -> DirectPath {
    let folder = postgres.socket_dir().display();
    format!("host={folder} port={} user={ADMIN_USER} dbname={DATABASE}", postgres.port()).parse().unwrap()
}

fn passwords() -> Passwords {
    Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() }
}

/// How many migrations there are.
fn all() -> usize {
    embedded::migrations::runner().get_migrations().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn migrating_twice_changes_nothing_and_two_at_once_take_turns() {
    let postgres = PrivatePostgres::start_default().unwrap();
    let path = direct(&postgres);
    let passwords = passwords();
    let (one, two) = tokio::join!(migrate(&path, Some(&passwords)), migrate(&path, Some(&passwords)));
    let (one, two) = (one.unwrap().applied, two.unwrap().applied);
    assert_eq!(one.len() + two.len(), all(), "each migration was applied once: {one:?} {two:?}");
    assert_eq!(migrate(&path, None).await.unwrap(), Migrated::default());
    let left = postgres.admin("select count(*) from pg_locks where locktype = 'advisory'").unwrap();
    assert_eq!(left[0][0].as_deref(), Some("0"));
    assert!(!postgres.log().contains("PASSWORD 'a'"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_meets_a_lock_gives_way_and_comes_again() {
    let postgres = PrivatePostgres::start_default().unwrap();
    postgres.admin("create table refinery_schema_history (version int4 primary key, name varchar(255), applied_on varchar(255), checksum varchar(255))").unwrap();
    let options = drill::wire::ConnectOptions::new(postgres.socket_address(), ADMIN_USER, DATABASE);
    let mut holder = drill::wire::Connection::connect(&options).await.unwrap();
    holder
        .query("begin; lock refinery_schema_history in access exclusive mode")
        .await
        .unwrap()
        .into_result()
        .unwrap();
    let path = direct(&postgres);
    let migration = tokio::spawn(async move { migrate(&path, Some(&passwords())).await });
    tokio::time::sleep(Duration::from_millis(TABLE_LOCK_MS + 300)).await;
    holder.query("commit").await.unwrap();
    assert_eq!(migration.await.unwrap().unwrap().applied.len(), all());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_through_a_transaction_pooler_is_refused_before_anything_is_done() {
    let postgres = PrivatePostgres::start_default().unwrap();
    let setup = PoolerSetup::new(postgres.tcp_address()).setting("pool_mode", "transaction");
    let pooler = Pgbouncer::find(None).unwrap().start(&setup).unwrap();
    let address = pooler.address();
    let path = format!("postgresql://{}@{address}/{DATABASE}", drill::postgres::USER).parse().unwrap();
    let refused = migrate(&path, None).await;
    assert!(matches!(refused, Err(MigrateError::NotDirect)), "{refused:?}");
    let tables = postgres.admin("select count(*) from pg_tables where schemaname = 'public'").unwrap();
    assert_eq!(tables[0][0].as_deref(), Some("0"));
}
