use super::*;
use crate::fixtures::{Answer, Server};
use trust::Role;
use trust::api::{ErrorAnswer, PROOF_SKEW_MS};
use trust::{RequestId, RootKey};

#[tokio::test]
async fn a_signed_call_carries_the_token_and_a_proof_over_exactly_this_request() {
    let server = Server::start(|_| Answer::json(r#"{"settled_by_ms": 17}"#)).await;
    let identity = Identity::generate().unwrap();
    let contract = ContractId::random();
    let caller = Caller { identity: &identity, token: "a.b.c" };
    let answer = server.api().close_contract(caller, contract).await.unwrap();
    assert_eq!(answer.settled_by_ms, 17);
    let seen = server.seen().pop().unwrap();
    assert_eq!(
        (seen.method.as_str(), seen.path.clone()),
        ("POST", format!("/v1/contracts/{contract}/close"))
    );
    assert_eq!(seen.header("authorization"), "Holdfast a.b.c");
    let proof: RequestProof = seen.header(PROOF_HEADER).parse().unwrap();
    assert!(proof.is_of(identity.public(), server.network(), "POST", &seen.path, &seen.body));
    assert!(!proof.is_of(identity.public(), server.network(), "POST", "/v1/contracts", &seen.body));
    assert!(proof.is_timely(clock::unix_ms() + PROOF_SKEW_MS / 2));
}

#[tokio::test]
async fn another_network_at_the_address_is_told_as_that() {
    let server = Server::start(|_| Answer::json("{}")).await;
    let network = RootKey::generate().unwrap().network();
    let api = Api::new(&JoinLink { network, ..server.link() }).unwrap();
    let error = api.trust().await.unwrap_err();
    assert!(matches!(error, ApiError::NotPinned { .. }), "{error}");
    assert!(!error.is_final());
    assert!(server.seen().is_empty(), "nothing is said to a stranger");
}

#[tokio::test]
async fn a_refusal_tells_cause_and_time() {
    let answer = r#"{"code": "grant_spent", "cause": "all is held", "retry_after_ms": 1500}"#;
    let server = Server::start(|_| Answer { status: 402, body: answer.to_owned() }).await;
    let identity = Identity::generate().unwrap();
    let request = ContractRequest { request: RequestId::random().0, proxy_account: None, previous: None };
    let asked = server.api().open_contract(Caller { identity: &identity, token: "t" }, &request).await;
    let error = asked.unwrap_err();
    assert_eq!(error.retry_after_ms(), Some(1_500));
    assert_eq!(error.to_string(), "the api refused: all is held (grant_spent)");
}

#[tokio::test]
async fn an_endless_answer_and_one_without_sense_are_refused() {
    let server = Server::start(|_| Answer::json("<html>")).await;
    assert!(matches!(server.api().trust().await.unwrap_err(), ApiError::Malformed(_)));
    let long = " ".repeat(2 * trust::MAX_DOCUMENT_LEN + 100_000);
    let server = Server::start(move |_| Answer::json(&long)).await;
    assert!(matches!(server.api().trust().await.unwrap_err(), ApiError::Malformed(_)));
}

#[tokio::test]
async fn connections_are_kept_and_one_that_ended_meanwhile_costs_nothing() {
    let server = Server::start(|_| Answer::json(r#"{"key_ring": "", "revocations": ""}"#)).await;
    let api = server.api();
    api.trust().await.unwrap();
    api.trust().await.unwrap();
    assert_eq!(server.connections(), 1);
    server.drop_connections();
    api.trust().await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let server = Server::start(|_| Answer::json("{}")).await;
    let link = server.link();
    drop(server);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let error = Api::new(&link).unwrap().trust().await.unwrap_err();
    assert!(error.to_string().contains(&link.address()), "{error}");
}

#[tokio::test]
async fn a_login_that_does_not_exist_is_no_error() {
    let answer = serde_json::to_string(&ErrorAnswer {
        code: ErrorCode::NotFound,
        cause: "no such login".to_owned(),
        retry_after_ms: None,
    });
    let answer = answer.unwrap();
    let server = Server::start(move |_| Answer { status: 404, body: answer.clone() }).await;
    let identity = Identity::generate().unwrap();
    let caller = Caller { identity: &identity, token: "t" };
    assert!(server.api().proxy_login(caller, "nobody").await.unwrap().is_none());
    assert!(server.api().proxy_login(caller, "../contracts?x=").await.unwrap().is_none());
    assert_eq!(server.seen().len(), 1, "a name that is none is not asked for");
}

#[test]
fn a_query_holds_only_what_was_asked() {
    assert_eq!(CandidatesQuery::default().path().unwrap(), "/v1/candidates");
    let query = CandidatesQuery { country: Some("de"), provider: None, limit: Some(5) };
    assert_eq!(query.path().unwrap(), "/v1/candidates?country=DE&limit=5");
    let query = CandidatesQuery { country: Some("d&"), ..query };
    assert!(query.path().unwrap_err().is_final());
}

#[tokio::test]
async fn an_account_signs_in_and_makes_a_code() {
    let server = Server::start(|request| match request.path.as_str() {
        "/v1/session" => Answer::json(r#"{"bearer": "secret", "expires_at_ms": 1}"#),
        _ => Answer::json(r#"{"code": "0AAAA-BBBBB-CCCCC-DDDDD", "expires_at_ms": 2}"#),
    })
    .await;
    let api = server.api();
    let session = api.sign_in("operator", "long password").await.unwrap();
    assert!(!format!("{session:?}").contains("secret"));
    assert_eq!(session.join_code(Role::Provider).await.unwrap().expires_at_ms, 2);
    let seen = server.seen().pop().unwrap();
    assert_eq!(seen.header("authorization"), "Bearer secret");
    assert_eq!(seen.body, br#"{"role":1}"#);
}
