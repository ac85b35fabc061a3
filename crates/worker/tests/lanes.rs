//! A worker at a real database.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use clock::unix_ms;
use drill::postgres::{ADMIN_USER, DATABASE, PrivatePostgres};
use drill::relay::Relay;
use store::catalogue::Writer;
use store::migrate::{Passwords, migrate};
use store::{
    Admission, Beat, Connected, DatabaseConfig, Disconnected, Generation, JoinCodeRow, NewAccount, NewGrant,
    Registered, Registration, Store, Usage, Verdict,
};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use trust::{
    AccountId, ClientId, CodeHash, ContractId, GrantId, Identity, NetworkId, RelayId, RequestId, Role,
};
use worker::Config;

const NETWORK: NetworkId = NetworkId([7; 32]);
const MIB: u64 = 1 << 20;

struct House {
    postgres: PrivatePostgres,
    way: Relay,
    account: AccountId,
    opener: ClientId,
}

impl House {
    async fn start() -> Self {
        let postgres = PrivatePostgres::start_default().unwrap();
        let (folder, port) = (postgres.socket_dir().display(), postgres.port());
        let direct = format!("host={folder} port={port} user={ADMIN_USER} dbname={DATABASE}");
        let passwords = Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() };
        migrate(&direct.parse().unwrap(), Some(&passwords)).await.unwrap();
        let way = Relay::start(postgres.tcp_address()).unwrap();
        let account = AccountId::random();
        let mut house = Self { postgres, way, account, opener: ClientId::random() };
        let api = house.store(Writer::Api);
        api.ensure_network().await.unwrap();
        let new = NewAccount { account, name: "payer".into(), password: String::new(), operator: false };
        api.create_account(new).await.unwrap();
        let now = unix_ms();
        let code = CodeHash([3; 32]);
        let row = JoinCodeRow { hash: code, account, role: Role::App, expires_at_ms: now + 60_000 };
        api.create_join_code(row).await.unwrap();
        let registration = Registration {
            client: house.opener,
            request: RequestId::random(),
            role: Role::App,
            identity: *Identity::generate().unwrap().public(),
            code,
            label: String::new(),
            software: String::new(),
            country: None,
        };
        let Registered::Yes(opener) = api.register(registration, now).await.unwrap() else {
            panic!("not registered")
        };
        house.opener = opener;
        let (grant, bytes) = (GrantId::random(), 100 * MIB);
        let new =
            NewGrant { grant, account, bytes, starts_at_ms: now - 1_000, expires_at_ms: now + 86_400_000 };
        api.create_grant(new).await.unwrap();
        house
    }

    fn store(&self, writer: Writer) -> Store {
        let (role, address) = (writer.database_role(), self.postgres.tcp_address());
        DatabaseConfig::new(format!("postgresql://{role}@{address}/{DATABASE}")).open(NETWORK).unwrap()
    }

    fn config(&self) -> Config {
        let url = format!("postgresql://holdfast_worker@{}/{DATABASE}", self.way.address());
        let database = DatabaseConfig { acquire_ms: 1_000, ..DatabaseConfig::new(url) };
        Config {
            settle_every_ms: 20,
            late_every_ms: 20,
            sweep_every_ms: 50,
            ..Config::new(NETWORK, database)
        }
    }

    async fn contract(&self) -> ContractId {
        let wanted = Admission {
            contract: ContractId::random(),
            account: self.account,
            proxy_account: None,
            most_open_of_login: 0,
            opener: self.opener,
            request: RequestId::random(),
            wanted_bytes: 4 * MIB,
        };
        let Verdict::Admitted(admitted) = self.store(Writer::Api).admit(wanted, unix_ms()).await.unwrap()
        else {
            panic!("not admitted")
        };
        admitted.contract
    }

    async fn report(&self, contract: ContractId, sequence: u64, bytes: u64) {
        let report = Usage { contract, sequence, bytes };
        self.store(Writer::Relay).record_usage(RelayId::from_bytes([1; 16]), 1, vec![report]).await.unwrap();
    }

    async fn provider(&self, country: &str) -> ClientId {
        let api = self.store(Writer::Api);
        let (code, account) = (CodeHash([4; 32]), self.account);
        let row =
            JoinCodeRow { hash: code, account, role: Role::Provider, expires_at_ms: unix_ms() + 60_000 };
        api.create_join_code(row).await.unwrap();
        let registration = Registration {
            client: ClientId::random(),
            request: RequestId::random(),
            role: Role::Provider,
            identity: *Identity::generate().unwrap().public(),
            code,
            label: String::new(),
            software: String::new(),
            country: Some(country.into()),
        };
        let Registered::Yes(provider) = api.register(registration, unix_ms()).await.unwrap() else {
            panic!("not registered")
        };
        provider
    }

    /// Waits for a newest generation like this.
    async fn generation(&self, what: &str, is_so: impl Fn(&Generation) -> bool) -> Generation {
        let (api, end) = (self.store(Writer::Api), Instant::now() + Duration::from_secs(20));
        loop {
            if let Some(generation) = api.generation().await.unwrap().filter(&is_so) {
                return generation;
            }
            assert!(Instant::now() < end, "{what} did not come");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for this much to be spent, and nothing to be held.
    async fn spent(&self, bytes: u64) {
        let (api, end) = (self.store(Writer::Api), Instant::now() + Duration::from_secs(20));
        loop {
            let grant = api.grants(self.account, unix_ms()).await.unwrap()[0];
            if (grant.spent_bytes, grant.held_bytes) == (bytes, 0) {
                return;
            }
            assert!(Instant::now() < end, "{grant:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_settles_what_is_due_charges_what_came_late_and_sweeps() {
    let house = House::start().await;
    let contract = house.contract().await;
    house.report(contract, 1, MIB).await;
    house
        .postgres
        .admin(
            "insert into join_code select sha256(n::text::bytea), 1, (select account from account), 1,
        now(), now() - interval '40 days' from generate_series(1, 5) n",
        )
        .unwrap();
    let (stop, stopping) = oneshot::channel::<()>();
    let running = tokio::spawn(worker::run(house.config(), async { drop(stopping.await) }));
    sleep(Duration::from_millis(300)).await;
    let held = house.store(Writer::Api).grants(house.account, unix_ms()).await.unwrap()[0].held_bytes;
    assert_eq!(held, 4 * MIB, "nothing is settled before it is due");
    house.postgres.admin("update open_contract set due_at = now()").unwrap();
    house.spent(MIB).await;
    house.report(contract, 2, 2 * MIB).await;
    house.spent(3 * MIB).await;
    let codes = house.postgres.admin("select count(*) from join_code").unwrap();
    assert_eq!(codes[0][0].as_deref(), Some("1"), "the one that joined is kept");
    drop(stop);
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_outlives_a_database_that_comes_and_goes_and_another_takes_over_where_it_stopped() {
    let house = House::start().await;
    house.way.refuse_new(true);
    let one = tokio::spawn(worker::run(house.config(), std::future::pending()));
    let contract = house.contract().await;
    house.report(contract, 1, MIB).await;
    house.postgres.admin("update open_contract set due_at = now()").unwrap();
    sleep(Duration::from_millis(700)).await;
    assert!(!one.is_finished());
    house.way.refuse_new(false);
    house.spent(MIB).await;
    let (worker, end) = (house.store(Writer::Worker), Instant::now() + Duration::from_secs(20));
    while worker.cursor("late_reports").await.unwrap().is_none() {
        assert!(Instant::now() < end, "the late reports were never looked at");
        sleep(Duration::from_millis(20)).await;
    }
    one.abort();
    let _ = one.await;
    house.report(contract, 2, MIB).await;
    let two = tokio::spawn(worker::run(house.config(), std::future::pending()));
    house.spent(2 * MIB).await;
    two.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn pools_are_built_and_a_list_that_is_emptied_while_no_relay_beats_is_not_believed() {
    let house = House::start().await;
    let provider = house.provider("DE").await;
    let (relay, store) = (RelayId::from_bytes([2; 16]), house.store(Writer::Relay));
    let started_at_ms = unix_ms() - 600_000;
    let beat = Beat {
        relay,
        epoch: 1,
        address: "relay:443".into(),
        connections: 1,
        draining: false,
        started_at_ms,
        ring: 1,
        revocations: 1,
    };
    assert_eq!(store.beat(beat.clone()).await.unwrap(), store::Beaten::New);
    let came = Connected { client: provider, epoch: 9, software: String::new(), at_ms: unix_ms() };
    store.record_connections(relay, 1, vec![came], Vec::new()).await.unwrap();
    let running = tokio::spawn(worker::run(house.config(), std::future::pending()));
    let first = house.generation("the first", |_| true).await;
    let told: Vec<_> = first.pools.iter().map(|pool| (pool.name.as_str(), pool.connected)).collect();
    assert_eq!(told, [("best", 1), ("de", 1)]);
    let blob = house.store(Writer::Api).pool_blob(first.pools[1].hash).await.unwrap().unwrap();
    let listed = selection::pool::decode(&blob).unwrap();
    assert_eq!((listed[0].provider, listed[0].epoch, &*listed[0].relay), (provider.0, 9, "relay:443"));

    // No relay beats: that alone changes nothing. But what the records lose meanwhile is not believed.
    house.postgres.admin("update relay_beat set beat_at = now() - interval '2 minutes'").unwrap();
    house.postgres.admin("update connection set disconnected_at = now()").unwrap();
    let held = house.generation("the hold", |generation| generation.held_cause.is_some()).await;
    assert_eq!((held.number, held.pools.len()), (first.number, 2));
    let cause = held.held_cause.unwrap();
    assert!(cause.contains("would go from 1 to 0 providers, and 0 of 1 relays beat"), "{cause}");

    // It beats again, and has its clients: the list is believed again, without a new generation.
    house.postgres.admin("update connection set disconnected_at = null").unwrap();
    assert_ne!(store.beat(beat).await.unwrap(), store::Beaten::Superseded);
    let free = house.generation("the end of the hold", |generation| generation.held_cause.is_none()).await;
    assert_eq!(free.number, first.number);
    // And an end that is true is told.
    let gone = Disconnected { client: provider, epoch: 9, cause: 5, at_ms: unix_ms() };
    store.record_connections(relay, 1, Vec::new(), vec![gone]).await.unwrap();
    let empty = house.generation("the empty one", |generation| generation.pools.is_empty()).await;
    assert!(empty.number > first.number);
    running.abort();
}
