//! How clients come in, stay, and are put out.

#[path = "support/support.rs"]
mod support;

use cache::{CacheConfig, Channel};
use client::api::Caller;
use client::{Joining, Membership};
use std::time::Duration;
use support::{Ask, House, PASSWORD, PATIENCE, now_ms, refusal, refusal_of_member};
use tokio::time::timeout;
use trust::api::{ErrorCode, RegisterRequest};
use trust::{Identity, JoinCode, Proof, RequestId, Role};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_joins_by_code_gets_a_token_and_refreshes_it() {
    let house = House::start().await;
    let member = house.member(Role::Provider, Some("DE")).await;
    let membership = &member.membership;
    let first = membership.token();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    membership.refresh().await.unwrap();
    assert_ne!(membership.token(), first);
    assert!(membership.token_expires_at_ms() > now_ms() + 6 * 86_400_000);
    let api = house.api();
    let session = api.sign_in("operator", PASSWORD).await.unwrap();
    let clients = session.clients().await.unwrap().clients;
    assert_eq!((clients[0].client, clients[0].role), (membership.client().0, 1));
    assert_eq!((clients[0].country.as_deref(), clients[0].label.as_str()), (Some("DE"), "test"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_lets_one_in_and_a_lost_answer_is_asked_for_again() {
    let house = House::start().await;
    let code = house.code(Role::App).await;
    let identity = Identity::generate().unwrap();
    let request = RequestId::random();
    let ask = RegisterRequest {
        request: request.0,
        role: 2,
        identity: identity.public().to_string(),
        code: code.reveal(),
        proof: Proof::registration(&identity, house.network, request, Role::App).to_string(),
        label: String::new(),
        software: String::new(),
        country: None,
    };
    let api = house.api();
    let first = api.register(&ask).await.unwrap().client;
    assert_eq!(api.register(&ask).await.unwrap().client, first);
    // The code with other keys; other keys under the same request; and somebody's keys without having them.
    let folder = tempfile::tempdir().unwrap();
    let joining = Joining { link: house.link(), role: Role::App, code, label: String::new(), country: None };
    let refused = Membership::join(&folder.path().join("m"), &joining).await.unwrap_err();
    assert_eq!(refusal_of_member(&refused), ErrorCode::CodeInvalid);
    let stranger = Identity::generate().unwrap();
    let proof = |keys: &Identity| Proof::registration(keys, house.network, request, Role::App).to_string();
    let other =
        RegisterRequest { identity: stranger.public().to_string(), proof: proof(&stranger), ..ask.clone() };
    assert_eq!(refusal(&api.register(&other).await.unwrap_err()), ErrorCode::Conflict);
    let stolen = RegisterRequest { proof: proof(&stranger), ..ask };
    assert_eq!(refusal(&api.register(&stolen).await.unwrap_err()), ErrorCode::ProofInvalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_codes_is_slowed_down_after_ten() {
    let house = House::start().await;
    let api = house.api();
    let (mut invalid, mut wait_ms) = (0, None);
    for _ in 0..12 {
        let identity = Identity::generate().unwrap();
        let request = RequestId::random();
        let ask = RegisterRequest {
            request: request.0,
            role: 1,
            identity: identity.public().to_string(),
            code: JoinCode::generate().unwrap().reveal(),
            proof: Proof::registration(&identity, house.network, request, Role::Provider).to_string(),
            label: String::new(),
            software: String::new(),
            country: None,
        };
        let error = api.register(&ask).await.unwrap_err();
        match refusal(&error) {
            ErrorCode::CodeInvalid => invalid += 1,
            ErrorCode::TooMany => wait_ms = error.retry_after_ms(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(invalid, 10);
    assert!(wait_ms.unwrap() > 500_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_worth_nothing_without_its_keys_or_for_another_request() {
    let house = House::start().await;
    let member = house.member(Role::App, None).await;
    let (token, keys, network) = (member.membership.token(), member.membership.identity(), house.network);
    let ask = || Ask::get("/v1/candidates");
    let at = now_ms();
    assert_eq!(house.ask(&ask().signed(&token, keys, network, at)).await.status, 200);
    let thief = Identity::generate().unwrap();
    let stolen = house.ask(&ask().signed(&token, &thief, network, at)).await;
    assert_eq!(stolen.refusal(), (401, "proof_invalid"));
    let bare = house.ask(&ask().header("authorization", format!("Holdfast {token}"))).await;
    assert_eq!(bare.refusal(), (401, "proof_invalid"));
    let old = house.ask(&ask().signed(&token, keys, network, at - 121_000)).await;
    assert_eq!(old.refusal(), (401, "clock_skew"));
    let mut moved = ask().signed(&token, keys, network, at);
    moved.path = "/v1/candidates?country=DE".into();
    assert_eq!(house.ask(&moved).await.refusal(), (401, "proof_invalid"));
    let forged = format!("{}x", token);
    assert_eq!(
        house.ask(&ask().signed(&forged, keys, network, at)).await.refusal(),
        (401, "unauthenticated")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_token_opens_no_path_of_accounts_and_none_that_is_unknown() {
    let house = House::start().await;
    let member = house.member(Role::App, None).await;
    let (token, keys, network) = (member.membership.token(), member.membership.identity(), house.network);
    let document = api::openapi();
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schemes = operation["security"].as_array().unwrap();
            let is_for_accounts =
                !schemes.is_empty() && schemes.iter().all(|scheme| scheme.get("account").is_some());
            if is_for_accounts {
                let method =
                    ["GET", "POST", "DELETE"].into_iter().find(|name| name.eq_ignore_ascii_case(method));
                let ask = Ask { method: method.unwrap(), ..Ask::get(path) };
                let answer = house.ask(&ask.signed(&token, keys, network, now_ms())).await;
                assert_eq!(answer.refusal(), (403, "forbidden"), "{path}");
                asked += 1;
            }
        }
    }
    assert!(asked >= 12, "{asked}");
    for path in ["/v1/nothing", "/admin", "/v1/contracts"] {
        let answer = house.ask(&Ask::get(path).signed(&token, keys, network, now_ms())).await;
        assert_eq!(answer.refusal(), (403, "forbidden"), "{path}");
    }
    assert_eq!(house.get("/v1/nothing").await.refusal(), (404, "not_found"));
    assert_eq!(house.get("/v1/contracts").await.refusal(), (405, "method_not_allowed"));
    let provider = house.member(Role::Provider, None).await;
    let (token, keys) = (provider.membership.token(), provider.membership.identity());
    let answer = house.ask(&Ask::get("/v1/candidates").signed(&token, keys, network, now_ms())).await;
    assert_eq!(answer.refusal(), (403, "forbidden"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_client_gets_no_token_and_a_revoked_one_is_on_the_signed_list() {
    let house = House::start().await;
    let (one, two) = (house.member(Role::Provider, None).await, house.member(Role::Provider, None).await);
    let bearer = house.bearer("operator", PASSWORD).await;
    let act = |member: &support::Member, what: &str| {
        let path = format!("/v1/clients/{}/{what}", member.membership.client());
        Ask::post(&path, "").header("authorization", format!("Bearer {bearer}"))
    };
    assert_eq!(house.ask(&act(&one, "disable")).await.status, 200);
    assert_eq!(refusal_of_member(&one.membership.refresh().await.unwrap_err()), ErrorCode::ClientDisabled);
    let number = two.membership.revocations().number();
    two.membership.refresh().await.unwrap();
    let revoked = house.ask(&act(&two, "revoke")).await;
    assert_eq!((revoked.status, &revoked.body["listed"]), (200, &true.into()));
    assert_eq!(refusal_of_member(&two.membership.refresh().await.unwrap_err()), ErrorCode::Revoked);
    let trust = house.api().trust().await.unwrap();
    let list = trust::RevocationList::verify(&trust.revocations, house.network).unwrap();
    assert!(list.number() > number);
    assert!(list.revokes(two.membership.client(), now_ms() / 1_000));
    assert!(!list.revokes(one.membership.client(), 0));
    let unknown = Ask::post("/v1/clients/018f0000-0000-7000-8000-000000000000/revoke", "");
    let unknown = house.ask(&unknown.header("authorization", format!("Bearer {bearer}"))).await;
    assert_eq!(unknown.refusal(), (404, "not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_the_documents_and_everybody_signed_in() {
    let mut house = House::start().await;
    let member = house.member(Role::App, None).await;
    let before = house.api().trust().await.unwrap();
    house.down().await;
    house.up().await;
    let after = house.api().trust().await.unwrap();
    assert_eq!((before.key_ring, before.revocations), (after.key_ring, after.revocations));
    member.membership.refresh().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_database_it_starts_says_so_and_gives_the_documents_that_it_kept() {
    let mut house = House::start().await;
    let member = house.member(Role::App, None).await;
    house.down().await;
    house.relay.refuse_new(true);
    house.begin();
    let trust = timeout(PATIENCE, async {
        loop {
            if let Ok(trust) = house.api().trust().await {
                return trust;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(!trust.await.unwrap().key_ring.is_empty());
    assert_eq!(house.get("/status").await.status, 200);
    assert_eq!(house.get("/ready").await.refusal(), (503, "unavailable"));
    let caller = Caller { identity: member.membership.identity(), token: &member.membership.token() };
    let error = house.api().refresh(caller, 0).await.unwrap_err();
    assert_eq!(refusal(&error), ErrorCode::Unavailable);
    assert!(error.retry_after_ms().is_some() && !error.is_final());
    house.relay.refuse_new(false);
    let back = timeout(PATIENCE, async {
        while member.membership.refresh().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    back.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_a_hint_to_the_readers_of_all_roles() {
    let house = House::start().await;
    let member = house.member(Role::Provider, None).await;
    // The cache of this process, as another role in it has it.
    let cache = CacheConfig::default().open(house.network).unwrap();
    let mut hints = cache.subscribe(Channel::CHANGES).unwrap();
    while timeout(Duration::from_millis(500), hints.heard()).await.is_ok() {}
    let bearer = house.bearer("operator", PASSWORD).await;
    let path = format!("/v1/clients/{}/disable", member.membership.client());
    let disabled = house.ask(&Ask::post(&path, "").header("authorization", format!("Bearer {bearer}"))).await;
    assert_eq!(disabled.status, 200);
    timeout(PATIENCE, hints.heard()).await.expect("nobody was told");
}
