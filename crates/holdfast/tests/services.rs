//! The network's services reach PostgreSQL through a real pooler, by their own pool: callers that stop cost neither of the
//! two a connection.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "support/support.rs"]
mod support;

use std::time::Duration;

use clock::unix_ms;
use drill::postgres::{ADMIN_USER, DATABASE};
use drill::relay::{Direction, Relay};
use drill::wire::{ConnectOptions, Connection};
use store::migrate::{MigrateError, Passwords, migrate};
use store::pool::{Pool, PoolOptions};
use store::{Connected, DatabaseConfig, DirectPath, Disconnected, Store, Usage};
use support::{House, PATIENCE, connect, eventually, value};
use tokio::time::{sleep, timeout};
use trust::{ClientId, ContractId, NetworkId, RelayId};

const NETWORK: NetworkId = NetworkId([7; 32]);
const CONNECTIONS: usize = 4;

/// A migrated database, the pooler in front of it, a wire in front of that which can be slow, and a role's pool.
struct Services {
    pool: Pool,
    store: Store,
    wire: Relay,
    house: House,
}

impl Services {
    async fn start() -> Self {
        // No more servers than the services have connections: otherwise the pooler opens one where another is being settled.
        let house = House::start(|setup| {
            let setup = setup.user("holdfast_relay", "").user("holdfast_api", "");
            setup.setting("default_pool_size", &CONNECTIONS.to_string())
        });
        let passwords = Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() };
        migrate(&direct(&house), Some(&passwords)).await.unwrap();
        let api =
            DatabaseConfig::new(format!("postgresql://holdfast_api@{}/{DATABASE}", house.pooler.address()));
        api.open(NETWORK).unwrap().ensure_network().await.unwrap();
        let wire = Relay::start(house.pooler.address()).unwrap();
        let path = format!("postgresql://holdfast_relay@{}/{DATABASE}", wire.address());
        let options =
            PoolOptions { connections: CONNECTIONS, cancel_after_ms: 1_000, ..PoolOptions::default() };
        let pool = Pool::new(path.parse().unwrap(), options).unwrap();
        let services = Self { store: Store::new(pool.clone(), NETWORK), pool, wire, house };
        services.warm().await;
        services
    }

    /// Opens all connections, at the pool and at the pooler.
    async fn warm(&self) {
        let mut holder = self.holder().await;
        let writers: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(record(self.store.clone()))).collect();
        let pool = &self.pool;
        eventually(PATIENCE, "all connections work", || pool.status().opened == CONNECTIONS as u64).await;
        sleep(Duration::from_millis(100)).await;
        holder.query("rollback").await.unwrap();
        for writer in writers {
            assert!(writer.await.unwrap());
        }
        self.at_rest().await;
    }

    /// A session past the pooler that keeps everybody from writing.
    async fn holder(&self) -> Connection {
        let options = ConnectOptions::new(self.house.postgres.socket_address(), ADMIN_USER, DATABASE);
        let mut holder = connect(&options).await;
        value(&mut holder, "begin; lock connection, usage in exclusive mode").await;
        holder
    }

    async fn at_rest(&self) {
        let pool = &self.pool;
        eventually(PATIENCE, "all connections are at rest", || {
            (pool.status().busy, pool.status().idle) == (0, CONNECTIONS)
        })
        .await;
    }

    fn servers(&self) -> Vec<u32> {
        let mut pids = self.house.backend_pids();
        pids.sort_unstable();
        pids
    }

    fn count(&self, what: &str) -> String {
        self.house.postgres.admin(&format!("select count(*) from {what}")).unwrap()[0][0].clone().unwrap()
    }
}

fn direct(house: &House) -> DirectPath {
    let (folder, port) = (house.postgres.socket_dir().display(), house.postgres.port());
    format!("host={folder} port={port} user={ADMIN_USER} dbname={DATABASE}").parse().unwrap()
}

/// BEGIN, two statements, COMMIT. Whether it was done.
async fn record(store: Store) -> bool {
    let (client, epoch, at_ms) = (ClientId::random(), 1, unix_ms());
    let came = Connected { client, epoch, software: "test".into(), at_ms };
    let went = Disconnected { client, epoch, cause: 0, at_ms };
    store.record_connections(RelayId::from_bytes([1; 16]), 1, vec![came], vec![went]).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_callers_that_stop_in_their_transactions_open_no_connection_at_the_pooler_or_the_database()
{
    let services = Services::start().await;
    let (servers, clients) = (services.servers(), services.wire.counts().opened);
    let rows: u64 = services.count("connection").parse().unwrap();
    // Between 8 and 40 ms for a transaction: callers stop at BEGIN, in a statement, or at COMMIT.
    services.wire.delay_bytes(Direction::Up, Duration::from_millis(2));
    let (mut stopped, mut done) = (0, 0);
    while stopped < 1_000 {
        let callers: Vec<_> = (0..CONNECTIONS)
            .map(|_| timeout(Duration::from_micros(fastrand::u64(0..6_000)), record(services.store.clone())))
            .map(tokio::spawn)
            .collect();
        for caller in callers {
            match caller.await.unwrap() {
                Err(_) => stopped += 1,
                Ok(so) => done += u64::from(so),
            }
        }
    }
    services.wire.delay_bytes(Direction::Up, Duration::ZERO);
    services.at_rest().await;
    let status = services.pool.status();
    assert_eq!(services.wire.counts().opened, clients, "neither a session nor a cancel request: {status:?}");
    assert_eq!(services.servers(), servers, "{status:?}");
    assert_eq!((status.opened, status.broken, status.unsettled), (CONNECTIONS as u64, 0, 0));
    let now: u64 = services.count("connection").parse().unwrap();
    assert!(now >= rows + done, "{done} callers were told that their row stands");
    assert_eq!(services.count("pg_stat_activity where state like 'idle in transaction%'"), "0");
    assert!(record(services.store.clone()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_stops_in_a_statement_has_it_cancelled_through_the_pooler_and_rolled_back() {
    let services = Services::start().await;
    let servers = services.servers();
    let rows = services.count("connection");
    let mut holder = services.holder().await;
    let (pool, store) = (&services.pool, &services.store);
    for round in 1..=5 {
        let callers: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(record(store.clone()))).collect();
        let waiting = "pg_stat_activity where wait_event_type = 'Lock'";
        eventually(PATIENCE, "all wait for the lock", || services.count(waiting) == CONNECTIONS.to_string())
            .await;
        for caller in callers {
            caller.abort();
        }
        services.at_rest().await;
        assert_eq!(services.count(waiting), "0", "nobody waits at the database for someone who has left");
        assert_eq!(pool.status().cancelled, round * CONNECTIONS as u64);
    }
    // The sessions are as good as new, while the lock is still there.
    assert!(timeout(PATIENCE, store.is_ready()).await.unwrap().unwrap());
    holder.query("rollback").await.unwrap();
    let report = Usage { contract: ContractId::random(), sequence: 1, bytes: 1 };
    store.record_usage(RelayId::random(), 1, vec![report]).await.unwrap();
    assert_eq!((services.count("usage"), services.count("connection")), ("1".to_owned(), rows));
    assert_eq!(services.servers(), servers);
    assert_eq!((pool.status().opened, pool.status().unsettled), (CONNECTIONS as u64, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_through_the_pooler_is_refused() {
    let house = House::start(|setup| setup);
    let path = format!("postgresql://{ADMIN_USER}@{}/{DATABASE}", house.pooler.address());
    let refused = migrate(&path.parse().unwrap(), None).await;
    assert!(matches!(refused, Err(MigrateError::NotDirect)), "{refused:?}");
    let tables = house.postgres.admin("select count(*) from pg_tables where schemaname = 'public'").unwrap();
    assert_eq!(tables[0][0].as_deref(), Some("0"));
}
