//! A migrated database, and a store for each role of it.

use drill::postgres::{DATABASE, PrivatePostgres};
use trust::{AccountId, ClientId, CodeHash, GrantId, Identity, NetworkId, RequestId, Role};

use crate::catalogue::Writer;
use crate::migrate::{Passwords, migrate, tests::direct};
use crate::pool::{Pool, PoolOptions};
use crate::{Admission, JoinCodeRow, NewAccount, NewGrant, Registered, Registration, Store, Verdict};

pub(crate) const HOUR_MS: u64 = 3_600_000;

pub(crate) struct Database {
    pub(crate) postgres: PrivatePostgres,
    pub(crate) api: Store,
    pub(crate) relay: Store,
    pub(crate) worker: Store,
}

impl Database {
    pub(crate) async fn start() -> Self {
        let postgres = PrivatePostgres::start_default().unwrap();
        let passwords = Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() };
        migrate(&direct(&postgres), Some(&passwords)).await.unwrap();
        let store = |writer| store(&postgres, writer);
        let (api, relay, worker) = (store(Writer::Api), store(Writer::Relay), store(Writer::Worker));
        api.ensure_network().await.unwrap();
        api.ensure_network().await.unwrap();
        Self { postgres, api, relay, worker }
    }

    pub(crate) async fn account(&self, name: &str) -> AccountId {
        let account = AccountId::random();
        let new = NewAccount { account, name: name.into(), password: String::new(), operator: false };
        assert!(self.api.create_account(new).await.unwrap());
        account
    }

    pub(crate) async fn client(&self, account: AccountId, role: Role, country: Option<&str>) -> ClientId {
        let code = self.code(account, role).await;
        let mut registration = registration(role, code);
        registration.country = country.map(str::to_owned);
        match self.api.register(registration, now_ms()).await.unwrap() {
            Registered::Yes(client) => client,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn code(&self, account: AccountId, role: Role) -> CodeHash {
        let hash = CodeHash(random());
        let expires_at_ms = now_ms() + 600_000;
        self.api.create_join_code(JoinCodeRow { hash, account, role, expires_at_ms }).await.unwrap();
        hash
    }

    pub(crate) async fn grant(&self, account: AccountId, bytes: u64) -> GrantId {
        let (grant, now) = (GrantId::random(), now_ms());
        let (starts_at_ms, expires_at_ms) = (now - 1_000, now + 30 * 24 * HOUR_MS);
        let new = NewGrant { grant, account, bytes, starts_at_ms, expires_at_ms };
        assert!(self.api.create_grant(new).await.unwrap());
        grant
    }

    /// A contract of this size, or why not.
    pub(crate) async fn admit(&self, account: AccountId, opener: ClientId, wanted_bytes: u64) -> Verdict {
        self.api.admit(admission(account, opener, wanted_bytes), now_ms()).await.unwrap()
    }

    pub(crate) fn value(&self, sql: &str) -> String {
        self.postgres.admin(sql).unwrap()[0][0].clone().unwrap_or_default()
    }
}

pub(crate) fn store(postgres: &PrivatePostgres, writer: Writer) -> Store {
    store_of(NetworkId([7; 32]), postgres, writer)
}

pub(crate) fn store_of(network: NetworkId, postgres: &PrivatePostgres, writer: Writer) -> Store {
    let (role, address) = (writer.database_role(), postgres.tcp_address());
    let path = format!("postgresql://{role}@{address}/{DATABASE}").parse().unwrap();
    let options =
        PoolOptions { connections: 6, acquire_ms: 20_000, work_ms: 20_000, ..PoolOptions::default() };
    Store::new(Pool::new(path, options).unwrap(), network)
}

pub(crate) fn admission(account: AccountId, opener: ClientId, wanted_bytes: u64) -> Admission {
    Admission {
        contract: trust::ContractId::random(),
        account,
        proxy_account: None,
        most_open_of_login: 0,
        opener,
        request: RequestId::random(),
        wanted_bytes,
    }
}

pub(crate) fn registration(role: Role, code: CodeHash) -> Registration {
    Registration {
        client: ClientId::random(),
        request: RequestId::random(),
        role,
        identity: *Identity::generate().unwrap().public(),
        code,
        label: "one".into(),
        software: "test 1".into(),
        country: None,
    }
}

pub(crate) fn now_ms() -> u64 {
    clock::unix_ms()
}

pub(crate) fn random() -> [u8; 32] {
    std::array::from_fn(|_| fastrand::u8(..))
}
