//! From a grant to a contract, and from a connected provider to a candidate.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "support/support.rs"]
mod support;

use client::Api;
use client::api::{Caller, CandidatesQuery};
use store::catalogue::Writer;
use store::{Beat, Connected};
use support::{Ask, House, Member, PASSWORD, now_ms, refusal};
use trust::api::{
    AccountRequest, ContractRequest, ErrorCode, Exit, ExitsRequest, Limits, ProxyAccountRequest,
};
use trust::{ContractClaims, ContractId, KeyRing, RelayId, RequestId, Role};

const MIB: u64 = 1 << 20;

fn ask(previous: Option<uuid::Uuid>) -> ContractRequest {
    ContractRequest { request: RequestId::random().0, proxy_account: None, previous }
}

/// A client with what it calls by.
struct Opener {
    api: Api,
    member: Member,
    token: String,
}

impl Opener {
    async fn new(house: &House, role: Role) -> Self {
        let member = house.member(role, None).await;
        Self { api: house.api(), token: member.membership.token(), member }
    }

    fn caller(&self) -> Caller<'_> {
        Caller { identity: self.member.membership.identity(), token: &self.token }
    }

    async fn refusal(&self, request: &ContractRequest) -> ErrorCode {
        refusal(&self.api.open_contract(self.caller(), request).await.unwrap_err())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_double_a_replay_holds_nothing_twice_and_closing_gives_back() {
    let house = House::start().await;
    let app = Opener::new(&house, Role::App).await;
    assert_eq!(app.refusal(&ask(None)).await, ErrorCode::NoGrant);
    house.grant(100 * MIB).await;
    let request = ask(None);
    let first = app.api.open_contract(app.caller(), &request).await.unwrap();
    let again = app.api.open_contract(app.caller(), &request).await.unwrap();
    assert_eq!((first.bytes, first.contract), (4 * MIB, again.contract));
    let ring = KeyRing::verify(&app.api.trust().await.unwrap().key_ring, house.network).unwrap();
    let claims = ContractClaims::verify(&first.signed, &ring, now_ms()).unwrap();
    assert_eq!((claims.contract.0, claims.bytes), (first.contract, first.bytes));
    assert_eq!(claims.opener, app.member.membership.client());
    let second = app.api.open_contract(app.caller(), &ask(Some(first.contract))).await.unwrap();
    assert_eq!(second.bytes, 8 * MIB);
    let api = house.api();
    let session = api.sign_in("operator", PASSWORD).await.unwrap();
    assert_eq!(session.grants().await.unwrap().grants[0].held_bytes, 12 * MIB);
    let due = app.api.close_contract(app.caller(), ContractId(first.contract)).await.unwrap().settled_by_ms;
    assert_eq!(
        app.api.close_contract(app.caller(), ContractId(first.contract)).await.unwrap().settled_by_ms,
        due
    );
    assert_eq!(house.store(Writer::Worker).settle_contracts(10, due).await.unwrap().contracts, 1);
    assert_eq!(session.grants().await.unwrap().grants[0].held_bytes, 8 * MIB);
    let other = Opener::new(&house, Role::App).await;
    let elsewhere = other.api.open_contract(other.caller(), &ask(Some(first.contract))).await.unwrap();
    assert_eq!(elsewhere.bytes, 4 * MIB, "another's contract says nothing about the size");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_held_names_its_cause_and_when_to_come_back() {
    let house = House::start().await;
    house.grant(5 * MIB).await;
    let app = Opener::new(&house, Role::App).await;
    app.api.open_contract(app.caller(), &ask(None)).await.unwrap();
    assert_eq!(app.api.open_contract(app.caller(), &ask(None)).await.unwrap().bytes, MIB);
    let error = app.api.open_contract(app.caller(), &ask(None)).await.unwrap_err();
    assert!(error.retry_after_ms().is_some());
    assert_eq!(app.refusal(&ask(None)).await, ErrorCode::GrantSpent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_opens_for_the_logins_of_customers_within_their_limits() {
    let house = House::start().await;
    let proxy = Opener::new(&house, Role::Proxy).await;
    house.grant(100 * MIB).await;
    let api = house.api();
    let session = api.sign_in("operator", PASSWORD).await.unwrap();
    let limits = Limits { contracts: 1, streams: 7, ..Limits::default() };
    let login = ProxyAccountRequest { name: "shop".into(), limits, selection: "country-de".into() };
    let made = session.add_proxy_account(&login).await.unwrap();
    assert_eq!(made.secret.len(), 32);
    let kept = proxy.api.proxy_login(proxy.caller(), "shop").await.unwrap().unwrap();
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, made.secret.as_bytes());
    let text = base64::Engine::encode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, hash);
    assert_eq!((kept.secret_sha256, kept.limits, kept.disabled), (text, limits, false));
    assert!(proxy.api.proxy_login(proxy.caller(), "nobody").await.unwrap().is_none());
    let for_login = |name: &str| ContractRequest { proxy_account: Some(name.into()), ..ask(None) };
    proxy.api.open_contract(proxy.caller(), &for_login("shop")).await.unwrap();
    assert_eq!(proxy.refusal(&for_login("shop")).await, ErrorCode::LimitContracts);
    assert_eq!(proxy.refusal(&for_login("nobody")).await, ErrorCode::NotFound);
    assert_eq!(proxy.refusal(&ask(None)).await, ErrorCode::BadRequest);
    let app = Opener::new(&house, Role::App).await;
    assert_eq!(app.refusal(&for_login("shop")).await, ErrorCode::BadRequest);

    let provider = house.member(Role::Provider, None).await.membership.client();
    let at = now_ms();
    let exit = Exit {
        exit: uuid::Uuid::new_v4(),
        proxy_account: "shop".into(),
        provider: provider.0,
        port: 443,
        opened_at_ms: at,
        closed_at_ms: at + 1_000,
    };
    let report = ExitsRequest { exits: vec![exit] };
    for _ in 0..2 {
        proxy.api.report_exits(proxy.caller(), &report).await.unwrap();
    }
    let bearer = house.bearer("operator", PASSWORD).await;
    let authorization = format!("Bearer {bearer}");
    let look = format!("/v1/abuse?provider={provider}&time_ms={at}&port=443");
    let found = house.ask(&Ask::get(&look).header("authorization", &authorization)).await;
    assert_eq!(found.body["findings"].as_array().unwrap().len(), 1);
    assert_eq!(found.body["findings"][0]["account_name"], "operator");
    let path = "/v1/proxy-accounts/shop/disable";
    assert_eq!(house.ask(&Ask::post(path, "").header("authorization", &authorization)).await.status, 200);
    assert!(proxy.api.proxy_login(proxy.caller(), "shop").await.unwrap().unwrap().disabled);
    assert_eq!(proxy.refusal(&for_login("shop")).await, ErrorCode::AccountDisabled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connected_provider_is_a_candidate_with_the_keys_to_seal_to() {
    let house = House::start().await;
    let app = Opener::new(&house, Role::App).await;
    let provider = house.member(Role::Provider, Some("DE")).await;
    let query = CandidatesQuery::default();
    let none = app.api.candidates(app.caller(), query).await.unwrap();
    assert_eq!((none.candidates.len(), none.connected, none.registered), (0, 0, 1));
    let (store, relay) = (house.store(Writer::Relay), RelayId::random());
    let beat = Beat {
        relay,
        epoch: 1,
        address: "127.0.0.1:7540".into(),
        connections: 1,
        draining: false,
        started_at_ms: now_ms(),
        ring: 1,
        revocations: 1,
    };
    store.beat(beat).await.unwrap();
    let came =
        Connected { client: provider.membership.client(), epoch: 5, software: "x".into(), at_ms: now_ms() };
    store.record_connections(relay, 1, vec![came], Vec::new()).await.unwrap();
    let found =
        app.api.candidates(app.caller(), CandidatesQuery { country: Some("de"), ..query }).await.unwrap();
    let candidate = &found.candidates[0];
    assert_eq!((candidate.provider, candidate.epoch), (provider.membership.client().0, 5));
    assert_eq!(candidate.identity, provider.membership.identity().public().to_string());
    assert_eq!(candidate.relay, "127.0.0.1:7540");
    let french =
        app.api.candidates(app.caller(), CandidatesQuery { country: Some("fr"), ..query }).await.unwrap();
    assert!(french.candidates.is_empty());
    let places = app.api.locations(app.caller()).await.unwrap().locations;
    assert_eq!((places[0].country.as_deref(), places[0].connected), (Some("DE"), 1));
    app.member.membership.refresh().await.unwrap();
    assert_eq!(app.member.membership.relays(), ["127.0.0.1:7540"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_sees_its_own_and_an_operator_manages() {
    let house = House::start().await;
    let api = house.api();
    let operator = api.sign_in("operator", PASSWORD).await.unwrap();
    let new = AccountRequest { name: "customer".into(), password: "another long one".into() };
    operator.add_account(&new).await.unwrap();
    assert!(operator.add_account(&new).await.is_err(), "the name is taken");
    let customer = api.sign_in("customer", "another long one").await.unwrap();
    assert!(!customer.account().await.unwrap().operator);
    house.member(Role::Provider, None).await;
    assert_eq!(operator.clients().await.unwrap().clients.len(), 1);
    assert!(customer.clients().await.unwrap().clients.is_empty());
    assert!(customer.join_code(Role::Provider).await.is_ok());
    assert!(customer.join_code(Role::Proxy).await.is_err());
    let authorization = format!("Bearer {}", house.bearer("customer", "another long one").await);
    for path in ["/v1/accounts", "/v1/grants"] {
        let answer = house.ask(&Ask::post(path, "{}").header("authorization", &authorization)).await;
        assert_eq!(answer.refusal(), (403, "forbidden"), "{path}");
    }
    let out = Ask { method: "DELETE", ..Ask::get("/v1/session") }.header("authorization", &authorization);
    assert_eq!(house.ask(&out).await.status, 200);
    let after = house.ask(&Ask::get("/v1/accounts").header("authorization", &authorization)).await;
    assert_eq!(after.refusal(), (401, "unauthenticated"));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_are_slow_alike_and_limited() {
    let house = House::start().await;
    let body = |name: &str| format!(r#"{{"account": "{name}", "password": "wrong wrong wrong"}}"#);
    for n in 0..10 {
        let name = if n % 2 == 0 { "operator" } else { "nobody" };
        assert_eq!(
            house.ask(&Ask::post("/v1/session", &body(name))).await.refusal(),
            (401, "unauthenticated")
        );
    }
    let limited = house.ask(&Ask::post("/v1/session", &body("operator"))).await;
    assert_eq!(limited.refusal(), (429, "too_many"));
    assert!(limited.body["retry_after_ms"].as_u64().unwrap() > 500_000);
}
