use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use client::api::CandidatesQuery;
use trust::api::{CandidatesAnswer, ContractAnswer, ContractRequest, ExitsRequest, Limits, PoolsAnswer};
use trust::{BlobHash, ContractId, KeyRing};
use uuid::Uuid;

use super::*;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

#[derive(Default)]
struct Api {
    logins: Mutex<HashMap<String, ProxyLogin>>,
    silent: AtomicBool,
    asked: AtomicU64,
}

impl Control for Api {
    async fn login(&self, name: &str) -> Result<Option<ProxyLogin>, ControlError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.silent.load(Ordering::Relaxed) {
            return Err(ControlError::Silent("nobody".into()));
        }
        Ok(lock(&self.logins).get(name).cloned())
    }

    async fn contract(&self, _: &ContractRequest) -> Result<ContractAnswer, ControlError> {
        Err(ControlError::Silent(String::new()))
    }

    async fn close_contract(&self, _: ContractId) -> Result<(), ControlError> {
        Ok(())
    }

    async fn candidates(&self, _: CandidatesQuery<'_>) -> Result<CandidatesAnswer, ControlError> {
        Err(ControlError::Silent(String::new()))
    }

    async fn pools(&self, _: Option<&str>) -> Result<Option<(PoolsAnswer, String)>, ControlError> {
        Err(ControlError::Silent(String::new()))
    }

    async fn pool(&self, _: BlobHash) -> Result<Vec<u8>, ControlError> {
        Err(ControlError::Silent(String::new()))
    }

    fn key_ring(&self) -> Arc<KeyRing> {
        crate::fixtures::Pools::default().ring()
    }

    async fn renew_key_ring(&self) -> Result<(), ControlError> {
        Ok(())
    }

    async fn report_exits(&self, _: &ExitsRequest) -> Result<(), ControlError> {
        Ok(())
    }
}

fn login(name: &str, secret: &str, selection: &str) -> ProxyLogin {
    ProxyLogin {
        name: name.into(),
        account: Uuid::now_v7(),
        secret_sha256: URL_SAFE_NO_PAD.encode(sha256(secret.as_bytes())),
        limits: Limits::default(),
        selection: selection.into(),
        disabled: false,
    }
}

fn accounts() -> (Accounts<Api>, Arc<Api>) {
    let api = Arc::new(Api::default());
    lock(&api.logins).insert("acme".into(), login("acme", "right", "country-de"));
    (Accounts::new(Arc::clone(&api), Clock::start(), 0), api)
}

async fn admit(accounts: &Accounts<Api>, name: &str, password: &str) -> Result<Arc<Options>, Reason> {
    let admitted = accounts.admit(name, password.as_bytes(), PEER, "").await;
    admitted.map(|(_, options)| options).map_err(|refusal| refusal.reason)
}

#[tokio::test]
async fn a_login_that_has_been_seen_needs_no_api() {
    let (accounts, api) = accounts();
    assert!(admit(&accounts, "acme", "right").await.is_ok());
    api.silent.store(true, Ordering::Relaxed);
    for _ in 0..100 {
        assert!(admit(&accounts, "acme-session-x", "right").await.is_ok());
    }
    accounts.refresh().await;
    assert!(admit(&accounts, "acme", "right").await.is_ok());
    assert_eq!(admit(&accounts, "other", "right").await, Err(Reason::Unavailable), "never seen here");
    assert_eq!(api.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn names_that_are_not_known_are_asked_for_once_a_while() {
    let (accounts, api) = accounts();
    for _ in 0..5 {
        assert_eq!(admit(&accounts, "nobody", "x").await, Err(Reason::LoginFailed));
    }
    assert_eq!(api.asked.load(Ordering::Relaxed), 1);
    assert_eq!(admit(&accounts, "No Account", "x").await, Err(Reason::LoginFailed));
    assert_eq!(api.asked.load(Ordering::Relaxed), 1, "what no account is called is not asked for");
}

#[tokio::test]
async fn what_the_name_asks_for_goes_over_the_port_and_that_over_the_account() {
    let (accounts, _) = accounts();
    let (_, options) = accounts.admit("acme", b"right", PEER, "").await.unwrap();
    assert_eq!(options.countries[0].as_str(), "de");
    let (_, options) = accounts.admit("acme-session-x", b"right", PEER, "country-at").await.unwrap();
    assert_eq!((options.countries[0].as_str(), options.session.is_some()), ("at", true));
    let (_, options) = accounts.admit("acme-cc-fr", b"right", PEER, "country-at").await.unwrap();
    assert_eq!(options.countries[0].as_str(), "fr");
    assert_eq!(admit(&accounts, "acme-cc-france", "right").await, Err(Reason::BadUsername));
    assert_eq!(
        admit(&accounts, "acme-cc-france", "wrong").await,
        Err(Reason::LoginFailed),
        "first who, then what"
    );
}

#[tokio::test]
async fn a_login_that_was_disabled_or_deleted_is_refused_after_a_look() {
    let (accounts, api) = accounts();
    assert!(admit(&accounts, "acme", "right").await.is_ok());
    lock(&api.logins).get_mut("acme").unwrap().disabled = true;
    accounts.ask("acme").await.unwrap();
    assert_eq!(admit(&accounts, "acme", "right").await, Err(Reason::AccountDisabled));
    lock(&api.logins).remove("acme");
    accounts.ask("acme").await.unwrap();
    assert_eq!(admit(&accounts, "acme", "right").await, Err(Reason::LoginFailed));
}

#[tokio::test]
async fn secrets_are_not_shown() {
    let (accounts, _) = accounts();
    let (account, _) = accounts.admit("acme", b"right", PEER, "").await.unwrap();
    let shown = format!("{account:?}");
    assert!(shown.contains("acme") && !shown.contains("secret"), "{shown}");
}
