//! Without the database: one block for whoever is known, in the ledger once it is back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/support.rs"]
mod support;

use std::time::Duration;

use client::api::Caller;
use client::{Api, ApiError};
use drill::relay::Cut;
use store::catalogue::Writer;
use support::{House, Member, PATIENCE, now_ms, refusal};
use tokio::time::{Instant, sleep};
use trust::api::{ContractAnswer, ContractRequest, ErrorCode};
use trust::{ContractClaims, KeyRing, RequestId, Role};

const MIB: u64 = 1 << 20;

fn ask(previous: Option<uuid::Uuid>) -> ContractRequest {
    ContractRequest { request: RequestId::random().0, proxy_account: None, previous }
}

struct Opener {
    api: Api,
    member: Member,
    token: String,
}

impl Opener {
    async fn new(house: &House) -> Self {
        let member = house.member(Role::App, None).await;
        Self { api: house.api(), token: member.membership.token(), member }
    }

    async fn open(&self, request: &ContractRequest) -> Result<ContractAnswer, ApiError> {
        let caller = Caller { identity: self.member.membership.identity(), token: &self.token };
        self.api.open_contract(caller, request).await
    }

    /// Asks until there is a block, as an opener does; every refusal on the way names a cause and a time.
    async fn open_in_the_end(&self, request: &ContractRequest) -> ContractAnswer {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.open(request).await {
                Ok(answer) => return answer,
                Err(ApiError::Refused(answer)) => {
                    assert_eq!(answer.code, ErrorCode::Unavailable, "{}", answer.cause);
                    assert!(answer.retry_after_ms.is_some());
                }
                Err(_) => {}
            }
            assert!(Instant::now() < end, "no block without the database");
            sleep(Duration::from_millis(100)).await;
        }
    }
}

fn gone(house: &House, is_gone: bool) {
    house.relay.refuse_new(is_gone);
    if is_gone {
        house.relay.cut(Cut::Reset);
    }
}

fn rows(house: &House, sql: &str) -> String {
    house.postgres.admin(sql).unwrap()[0][0].clone().unwrap_or_default()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_account_gets_one_block_without_the_database_and_it_is_in_the_ledger_once_it_is_back() {
    let mut house = House::start().await;
    house.down().await;
    house.config.offline_after_ms = 400;
    house.up().await;
    let (known, stranger) = (Opener::new(&house).await, Opener::new(&house).await);
    house.grant(100 * MIB).await;
    let first = known.open(&ask(None)).await.unwrap();
    let ring = KeyRing::verify(&known.api.trust().await.unwrap().key_ring, house.network).unwrap();
    let claims = |answer: &ContractAnswer| ContractClaims::verify(&answer.signed, &ring, now_ms()).unwrap();
    assert!(!claims(&first).offline);

    gone(&house, true);
    let request = ask(Some(first.contract));
    let given = known.open_in_the_end(&request).await;
    let said = claims(&given);
    assert!(said.offline && said.bytes == given.bytes && said.opener == known.member.membership.client());
    assert_eq!(known.open(&request).await.unwrap().contract, given.contract, "the same request");
    let refused = known.open(&ask(Some(given.contract))).await.unwrap_err();
    assert_eq!(refusal(&refused), ErrorCode::Unavailable);
    assert!(refused.to_string().contains("has been given"), "{refused}");
    assert!(refused.retry_after_ms().is_some());
    assert_eq!(refusal(&stranger.open(&ask(None)).await.unwrap_err()), ErrorCode::Unavailable);

    // Started again without the database, it has neither forgotten what it gave nor to whom.
    house.down().await;
    house.begin();
    assert_eq!(known.open_in_the_end(&request).await.contract, given.contract);

    gone(&house, false);
    let offline = "select count(*) from contract where offline";
    until("it never comes into the ledger", || rows(&house, offline) == "1").await;
    let contract = rows(&house, "select contract from contract where offline");
    assert_eq!(contract, given.contract.to_string());
    let next = known.open_in_the_end(&ask(Some(given.contract))).await;
    assert!(!claims(&next).offline);
    house.down().await;
    house.up().await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(rows(&house, offline), "1");
    assert_eq!(rows(&house, "select count(*) from open_contract"), "3");
    let journal = std::fs::read_to_string(house.folder.path().join("offline-blocks.journal")).unwrap();
    assert_eq!(journal, "");
}

/// A refusal is an answer: the account is known to have nothing left, and gets nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_was_refused_gets_no_block_without_the_database() {
    let mut house = House::start().await;
    house.down().await;
    house.config.offline_after_ms = 400;
    house.up().await;
    let app = Opener::new(&house).await;
    house.grant(4 * MIB).await;
    app.open(&ask(None)).await.unwrap();
    house.postgres.admin("update byte_grant set expires_at = now()").unwrap();
    assert_eq!(refusal(&app.open(&ask(None)).await.unwrap_err()), ErrorCode::GrantExpired);
    gone(&house, true);
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        let refused = app.open(&ask(None)).await.unwrap_err();
        assert_eq!(refusal(&refused), ErrorCode::Unavailable);
        assert!(refused.retry_after_ms().is_some());
        sleep(Duration::from_millis(200)).await;
    }
}

/// Whoever was disabled while the database answered is soon not known any more.
#[tokio::test(flavor = "multi_thread")]
async fn the_standing_of_those_who_are_known_is_looked_at_while_the_database_answers() {
    let house = House::start().await;
    let app = Opener::new(&house).await;
    house.grant(4 * MIB).await;
    app.open(&ask(None)).await.unwrap();
    let store = house.store(Writer::Api);
    let account = rows(&house, "select account from byte_grant").parse().unwrap();
    let client = app.member.membership.client();
    let look = || store.unfit_payers(vec![client], vec![account], vec!["nobody".into()], now_ms());
    let fit = look().await.unwrap();
    assert_eq!((fit.clients.len(), fit.accounts.len(), fit.logins), (0, 0, vec!["nobody".to_owned()]));
    house.postgres.admin("update client set disabled_at = now()").unwrap();
    house.postgres.admin("insert into account_debt select account, 1, now() from byte_grant").unwrap();
    let unfit = look().await.unwrap();
    assert_eq!((unfit.clients, unfit.accounts), (vec![client], vec![account]));
}
