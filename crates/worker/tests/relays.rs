//! A worker that watches relays: real sockets, a real database, short times.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clock::unix_ms;
use drill::port::PortLease;
use drill::postgres::{ADMIN_USER, DATABASE, PrivatePostgres};
use store::catalogue::Writer;
use store::migrate::{Passwords, migrate};
use store::{Beat, Connected, DatabaseConfig, JoinCodeRow, NewAccount, Registered, Registration, Store};
use tls::{TlsSession, TlsStream};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use trust::{AccountId, CertificateRole, ClientId, CodeHash, Identity, RelayId, RequestId, Role, RootKey};
use worker::Config;

/// Dead after 27 of them.
const BEAT_MS: u64 = 300;
/// Far more than anything here takes on a machine that is not overrun.
const PATIENCE: Duration = Duration::from_secs(120);

/// A relay: a socket that answers as one, and a beat.
struct Relay {
    id: RelayId,
    listening: Option<JoinHandle<()>>,
    beating: JoinHandle<()>,
    client: ClientId,
    _port: PortLease,
}

struct House {
    postgres: PrivatePostgres,
    root: RootKey,
    account: AccountId,
    relays: Vec<Relay>,
    /// Beats are written.
    open: Arc<AtomicBool>,
    worker: JoinHandle<Result<(), store::DatabaseConfigError>>,
}

impl House {
    async fn start(count: u8) -> Self {
        let postgres = PrivatePostgres::start_default().unwrap();
        let (folder, port) = (postgres.socket_dir().display(), postgres.port());
        let direct = format!("host={folder} port={port} user={ADMIN_USER} dbname={DATABASE}");
        let passwords = Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() };
        migrate(&direct.parse().unwrap(), Some(&passwords)).await.unwrap();
        let root = RootKey::generate().unwrap();
        let api = store(&postgres, &root, Writer::Api);
        api.ensure_network().await.unwrap();
        let account = AccountId::random();
        let new = NewAccount { account, name: "owner".into(), password: String::new(), operator: false };
        api.create_account(new).await.unwrap();
        let (open, mut relays) = (Arc::new(AtomicBool::new(true)), Vec::new());
        for number in 0..count {
            let client = provider(&api, account, number).await;
            relays.push(relay(store(&postgres, &root, Writer::Relay), &root, client, &open).await);
        }
        let config = Config {
            relay_beat_ms: BEAT_MS,
            ..Config::new(root.network(), database(&postgres, Writer::Worker))
        };
        let worker = tokio::spawn(worker::run(config, std::future::pending()));
        let house = Self { postgres, root, account, relays, open, worker };
        house.until("everybody is connected", async || house.connected().await == usize::from(count)).await;
        house
            .until("the worker looks", async || house.api().relays_listed().await.unwrap().1.len() == 1)
            .await;
        house
    }

    fn api(&self) -> Store {
        store(&self.postgres, &self.root, Writer::Api)
    }

    async fn connected(&self) -> usize {
        let clients = self.api().clients(Some(self.account)).await.unwrap();
        clients.iter().filter(|client| client.connected).count()
    }

    async fn is_connected(&self, client: ClientId) -> bool {
        let clients = self.api().clients(Some(self.account)).await.unwrap();
        clients.iter().any(|listed| listed.client.client == client && listed.connected)
    }

    /// Relays that are gone, in the worker's words.
    async fn dead(&self) -> Vec<RelayId> {
        let (relays, _) = self.api().relays_listed().await.unwrap();
        let dead = relays
            .into_iter()
            .filter(|listed| listed.seen.verdict.as_ref().is_some_and(|verdict| verdict.state == "dead"));
        dead.map(|listed| listed.seen.relay).collect()
    }

    async fn hold(&self) -> Option<String> {
        let (_, workers) = self.api().relays_listed().await.unwrap();
        workers[0].hold.as_ref().map(|(cause, _)| cause.clone())
    }

    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds().await {
            assert!(Instant::now() < end, "it is not so: {what}; {:?}", self.api().relays_listed().await);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Its process is gone, its host is not.
    async fn kill(&mut self, number: usize) {
        let relay = &mut self.relays[number];
        relay.beating.abort();
        if let Some(listening) = relay.listening.take() {
            listening.abort();
            let _ = listening.await;
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

fn database(postgres: &PrivatePostgres, writer: Writer) -> DatabaseConfig {
    let (role, address) = (writer.database_role(), postgres.tcp_address());
    DatabaseConfig::new(format!("postgresql://{role}@{address}/{DATABASE}"))
}

fn store(postgres: &PrivatePostgres, root: &RootKey, writer: Writer) -> Store {
    database(postgres, writer).open(root.network()).unwrap()
}

async fn provider(api: &Store, account: AccountId, number: u8) -> ClientId {
    let hash = CodeHash([number; 32]);
    let expires_at_ms = unix_ms() + 60_000;
    api.create_join_code(JoinCodeRow { hash, account, role: Role::Provider, expires_at_ms }).await.unwrap();
    let registration = Registration {
        client: ClientId::random(),
        request: RequestId::random(),
        role: Role::Provider,
        identity: *Identity::generate().unwrap().public(),
        code: hash,
        label: String::new(),
        software: String::new(),
        country: None,
    };
    let Registered::Yes(client) = api.register(registration, unix_ms()).await.unwrap() else {
        panic!("not registered")
    };
    client
}

async fn relay(store: Store, root: &RootKey, client: ClientId, open: &Arc<AtomicBool>) -> Relay {
    let (id, port) = (RelayId::random(), PortLease::take().unwrap());
    let certificate = root.issue(CertificateRole::Relay, &["127.0.0.1".to_owned()], unix_ms()).unwrap();
    let tls = trust::server_config(&certificate, link_alpn()).unwrap();
    let listener = TcpListener::bind(port.address()).await.unwrap();
    let listening = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let mut stream = TlsStream::new(socket, TlsSession::accept(Arc::clone(&tls), false).unwrap());
            tokio::spawn(async move { stream.handshake().await });
        }
    });
    let came = Connected { client, epoch: 1, software: "x".into(), at_ms: unix_ms() };
    store.record_connections(id, 1, vec![came], Vec::new()).await.unwrap();
    let (address, open) = (port.address().to_string(), Arc::clone(open));
    let beating = tokio::spawn(async move {
        loop {
            if open.load(Ordering::Relaxed) {
                let address = address.clone();
                let beat = Beat {
                    relay: id,
                    epoch: 1,
                    address,
                    connections: 1,
                    draining: false,
                    started_at_ms: 0,
                    ring: 1,
                    revocations: 1,
                };
                let _ = store.beat(beat).await;
            }
            sleep(Duration::from_millis(BEAT_MS)).await;
        }
    });
    Relay { id, listening: Some(listening), beating, client, _port: port }
}

fn link_alpn() -> &'static [&'static [u8]] {
    &[b"holdfast/1"]
}

#[tokio::test(flavor = "multi_thread")]
async fn with_every_beat_late_nobody_is_removed_a_hold_is_reported_and_one_that_is_killed_afterwards_is_gone()
{
    let mut house = House::start(10).await;
    house.open.store(false, Ordering::Relaxed);
    house.until("a hold", async || house.hold().await.as_deref() == Some("many_late")).await;
    // Twice as long as it takes to be dead.
    let end = Instant::now() + Duration::from_millis(2 * 27 * BEAT_MS);
    while Instant::now() < end {
        assert_eq!((house.dead().await, house.connected().await), (Vec::new(), 10));
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(house.hold().await.as_deref(), Some("many_late"));
    assert_eq!(house.api().relay_addresses(16).await.unwrap().len(), 10);
    house.open.store(true, Ordering::Relaxed);
    house.until("the hold is over", async || house.hold().await.is_none()).await;

    house.kill(3).await;
    let (dead, client) = (house.relays[3].id, house.relays[3].client);
    house.until("one is gone", async || house.dead().await == [dead]).await;
    assert!(!house.is_connected(client).await, "its client is marked");
    assert_eq!(house.connected().await, 9);
    assert_eq!(house.api().relay_addresses(16).await.unwrap().len(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_that_is_killed_is_gone_and_one_whose_beats_are_lost_is_not() {
    let mut house = House::start(2).await;
    // It answers, and does not beat: its way to the database is in trouble.
    house.relays[1].beating.abort();
    let state = async |number: usize| {
        let (relays, _) = house.api().relays_listed().await.unwrap();
        let of = relays.into_iter().find(|listed| listed.seen.relay == house.relays[number].id);
        of.and_then(|listed| listed.seen.verdict).map(|verdict| (verdict.state, verdict.cause))
    };
    let unknown = Some(("unknown".to_owned(), "reached".to_owned()));
    house.until("it is said to be unknown", async || state(1).await == unknown).await;
    sleep(Duration::from_millis(2 * 27 * BEAT_MS)).await;
    assert_eq!((house.dead().await, house.connected().await), (Vec::new(), 2));
    house.kill(1).await;
    let dead = house.relays[1].id;
    house.until("it is gone", async || house.dead().await == [dead]).await;
    assert_eq!(house.connected().await, 1);
}
