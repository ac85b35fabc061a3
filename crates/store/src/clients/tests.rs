use super::*;
use crate::testing::{Database, now_ms, random, registration};

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_is_sent_again_gets_the_first_answer_and_a_code_is_used_once() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let code = database.code(account, Role::Provider).await;
    let first = registration(Role::Provider, code);
    let now = now_ms();
    assert_eq!(database.api.register(first.clone(), now).await.unwrap(), Registered::Yes(first.client));
    // Also when the code is over, and under another name made up for it.
    let replay = Registration { client: ClientId::random(), ..first.clone() };
    assert_eq!(database.api.register(replay, now + 900_000).await.unwrap(), Registered::Yes(first.client));
    let other = registration(Role::Provider, code);
    assert_eq!(database.api.register(other, now).await.unwrap(), Registered::CodeInvalid);
    assert_eq!(database.value("select count(*) from client"), "1");
    let client = database.api.client(first.client).await.unwrap().unwrap();
    assert_eq!((client.role, client.identity, client.account), (Role::Provider, first.identity, account));
    assert!(!client.disabled && !client.revoked && !client.account_disabled);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_forty_times_at_once_is_one_client() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let first = registration(Role::App, database.code(account, Role::App).await);
    let requests: Vec<_> = (0..40)
        .map(|_| {
            let (api, again) =
                (database.api.clone(), Registration { client: ClientId::random(), ..first.clone() });
            tokio::spawn(async move { api.register(again, now_ms()).await.unwrap() })
        })
        .collect();
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.await.unwrap());
    }
    answers.dedup();
    assert!(matches!(answers[..], [Registered::Yes(_)]), "{answers:?}");
    assert_eq!(database.value("select count(*) from client"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_code_for_forty_clients_at_once_lets_one_in() {
    let database = Database::start().await;
    let code = database.code(database.account("owner").await, Role::App).await;
    let requests: Vec<_> = (0..40)
        .map(|_| {
            let (api, wanted) = (database.api.clone(), registration(Role::App, code));
            tokio::spawn(async move { api.register(wanted, now_ms()).await.unwrap() })
        })
        .collect();
    let mut admitted = 0;
    for request in requests {
        match request.await.unwrap() {
            Registered::Yes(_) => admitted += 1,
            other => assert_eq!(other, Registered::CodeInvalid),
        }
    }
    assert_eq!(admitted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_is_over_unknown_or_for_another_role_lets_nobody_in() {
    let database = Database::start().await;
    let code = database.code(database.account("owner").await, Role::App).await;
    let register = |registration, at| database.api.register(registration, at);
    let invalid = Registered::CodeInvalid;
    assert_eq!(register(registration(Role::App, code), now_ms() + 600_001).await.unwrap(), invalid);
    assert_eq!(register(registration(Role::Provider, code), now_ms()).await.unwrap(), invalid);
    assert_eq!(register(registration(Role::App, CodeHash(random())), now_ms()).await.unwrap(), invalid);
    assert!(matches!(register(registration(Role::App, code), now_ms()).await.unwrap(), Registered::Yes(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_or_a_request_of_another_registration_are_a_conflict_and_leave_the_code_unused() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let first = registration(Role::App, database.code(account, Role::App).await);
    database.api.register(first.clone(), now_ms()).await.unwrap();
    let code = database.code(account, Role::App).await;
    let same_keys = Registration { identity: first.identity, ..registration(Role::App, code) };
    let same_request = Registration { request: first.request, ..registration(Role::App, code) };
    for wanted in [same_keys, same_request] {
        assert_eq!(database.api.register(wanted, now_ms()).await.unwrap(), Registered::Conflict);
    }
    let fresh = registration(Role::App, code);
    assert_eq!(database.api.register(fresh.clone(), now_ms()).await.unwrap(), Registered::Yes(fresh.client));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_account_disables_or_revokes_a_client() {
    let database = Database::start().await;
    let (owner, stranger) = (database.account("owner").await, database.account("stranger").await);
    let client = database.client(owner, Role::Provider, Some("DE")).await;
    let api = &database.api;
    assert!(!api.disable_client(client, Some(stranger)).await.unwrap());
    assert!(!api.revoke_client(client, Some(stranger), "theft".into()).await.unwrap());
    assert!(api.revoked_clients(0, 10).await.unwrap().is_empty());
    assert!(api.disable_client(client, Some(owner)).await.unwrap());
    let listed = api.clients(Some(owner)).await.unwrap();
    assert!(listed[0].client.disabled && !listed[0].client.revoked && !listed[0].connected);
    assert_eq!((listed[0].country.as_deref(), listed[0].label.as_str()), (Some("DE"), "one"));
    for _ in 0..2 {
        assert!(api.revoke_client(client, None, "theft".into()).await.unwrap());
    }
    let revoked = api.revoked_clients(0, 10).await.unwrap();
    assert_eq!(revoked.iter().map(|(client, _)| *client).collect::<Vec<_>>(), [client]);
    assert!(api.client(client).await.unwrap().unwrap().revoked);
    assert!(api.clients(Some(stranger)).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_document_is_replaced_only_by_a_newer_one() {
    use crate::Document::{KeyRing, Revocations};
    let database = Database::start().await;
    let api = &database.api;
    assert_eq!(api.trust_document(KeyRing).await.unwrap(), None);
    assert!(api.put_trust_document(KeyRing, 5, "five".into()).await.unwrap());
    assert!(!api.put_trust_document(KeyRing, 5, "other".into()).await.unwrap());
    assert!(!api.put_trust_document(KeyRing, 4, "four".into()).await.unwrap());
    assert!(api.put_trust_document(KeyRing, 6, "six".into()).await.unwrap());
    // A relay reads it, and may not write it.
    assert_eq!(database.relay.trust_document(KeyRing).await.unwrap(), Some((6, "six".into())));
    assert_eq!(database.relay.trust_document(Revocations).await.unwrap(), None);
    let refused = database.relay.put_trust_document(KeyRing, 7, "seven".into()).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Refused { code, .. } if code == "42501"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_opens_its_account_until_it_ends() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let (bearer, now) = (random(), now_ms());
    let api = &database.api;
    api.open_account_session(bearer, account, now + 1_000).await.unwrap();
    assert_eq!(api.account_of_session(bearer, now).await.unwrap().unwrap().account, account);
    assert!(api.account_of_session(bearer, now + 1_000).await.unwrap().is_none());
    assert!(api.account_of_session(random(), now).await.unwrap().is_none());
    api.close_account_session(bearer).await.unwrap();
    assert!(api.account_of_session(bearer, now).await.unwrap().is_none());
}
