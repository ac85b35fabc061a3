use super::*;
use crate::migrate::tests::direct;
use crate::testing::{Database, now_ms};
use crate::{ApiBeat, Document, VerifierKind};
use drill::postgres::DATABASE;
use trust::{KeyId, Role};
use uuid::Uuid;

const LONG_AGO_MS: u64 = 0;

fn refusals(changes: &Changes) -> Vec<(ClientId, Option<ClientRefusal>)> {
    let mut found: Vec<_> =
        changes.clients.iter().map(|one| (one.client, one.refused.map(|(why, _)| why))).collect();
    found.sort_unstable_by_key(|(client, _)| *client);
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_hears_once_what_changed_and_what_holds_now() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let client = database.client(account, Role::Provider, None).await;
    let (api, relay) = (&database.api, &database.relay);
    let first = relay.changes(None, LONG_AGO_MS).await.unwrap();
    assert!(first.is_whole && first.clients.is_empty() && (first.ring, first.revocations) == (0, 0));
    api.disable_client(client, None).await.unwrap();
    api.put_trust_document(Document::KeyRing, 3, "ring".into()).await.unwrap();
    let second = relay.changes(Some(first.cursor), LONG_AGO_MS).await.unwrap();
    assert!(!second.is_whole && (second.ring, second.revocations) == (3, 0));
    assert_eq!(refusals(&second), [(client, Some(ClientRefusal::Disabled))]);
    let (_, since_ms) = second.clients[0].refused.unwrap();
    assert!(now_ms().abs_diff(since_ms) < 60_000, "{since_ms}");
    let quiet = relay.changes(Some(second.cursor), LONG_AGO_MS).await.unwrap();
    assert_eq!((quiet.clients, quiet.is_whole, quiet.ring), (Vec::new(), false, 3));
    // Off and on again between two reads: what holds is what counts.
    api.enable_client(client, None).await.unwrap();
    let third = relay.changes(Some(quiet.cursor), LONG_AGO_MS).await.unwrap();
    assert_eq!(refusals(&third), [(client, None)]);
    api.revoke_client(client, None, "theft".into()).await.unwrap();
    assert!(!api.enable_client(client, None).await.unwrap(), "what is revoked stays so");
    let fourth = relay.changes(Some(third.cursor), LONG_AGO_MS).await.unwrap();
    assert_eq!(refusals(&fourth), [(client, Some(ClientRefusal::Revoked))]);
    // And whoever begins anew hears the same.
    assert_eq!(relay.changes(None, LONG_AGO_MS).await.unwrap().clients, fourth.clients);
    assert!(relay.changes(None, now_ms() + 60_000).await.unwrap().clients.is_empty(), "refused before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_committed_late_is_not_jumped_over() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let (slow, fast) =
        (database.client(account, Role::App, None).await, database.client(account, Role::App, None).await);
    let begin = database.relay.changes(None, LONG_AGO_MS).await.unwrap();
    // The slow one takes its number and its transaction first, and commits last.
    let held = Session::open(direct(&database.postgres).config()).await.unwrap();
    let sql = format!(
        "begin; update client set disabled_at = now() where client = '{}';
         insert into change_log (network, kind, subject) select network, 1, '{}' from network",
        slow.0, slow.0
    );
    held.batch(&sql).await.unwrap();
    database.api.disable_client(fast, None).await.unwrap();
    let mut cursor = begin.cursor;
    for _ in 0..3 {
        let seen = database.relay.changes(Some(cursor), LONG_AGO_MS).await.unwrap();
        assert_eq!(refusals(&seen), [(fast, Some(ClientRefusal::Disabled))], "what comes again is the same");
        cursor = seen.cursor;
    }
    held.batch("commit").await.unwrap();
    let seen = database.relay.changes(Some(cursor), LONG_AGO_MS).await.unwrap();
    assert!(refusals(&seen).contains(&(slow, Some(ClientRefusal::Disabled))), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_account_is_a_change_of_each_of_its_clients() {
    let database = Database::start().await;
    let (owner, other) = (database.account("owner").await, database.account("other").await);
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(database.client(owner, Role::Provider, None).await);
    }
    database.client(other, Role::Provider, None).await;
    clients.sort_unstable();
    let begin = database.relay.changes(None, LONG_AGO_MS).await.unwrap();
    let code = database.code(owner, Role::Provider).await;
    assert!(database.api.set_account_disabled(owner, true).await.unwrap());
    let seen = database.relay.changes(Some(begin.cursor), LONG_AGO_MS).await.unwrap();
    let all: Vec<_> = clients.iter().map(|client| (*client, Some(ClientRefusal::AccountDisabled))).collect();
    assert_eq!(refusals(&seen), all);
    assert_eq!(refusals(&database.relay.changes(None, LONG_AGO_MS).await.unwrap()), all);
    // A code that was made before lets nobody in any more.
    let late = crate::testing::registration(Role::Provider, code);
    assert_eq!(database.api.register(late, now_ms()).await.unwrap(), crate::Registered::CodeInvalid);
    assert!(database.api.set_account_disabled(owner, false).await.unwrap());
    let back = database.relay.changes(Some(seen.cursor), LONG_AGO_MS).await.unwrap();
    assert!(back.clients.len() == 3 && back.clients.iter().all(|one| one.refused.is_none()), "{back:?}");
    assert!(!database.api.set_account_disabled(trust::AccountId::random(), true).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_another_database_and_more_than_is_read_one_by_one_are_read_whole() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let client = database.client(account, Role::App, None).await;
    database.api.disable_client(client, None).await.unwrap();
    let begin = database.relay.changes(None, LONG_AGO_MS).await.unwrap();
    let ahead = database.relay.changes(Some(ChangeCursor(1 << 60)), LONG_AGO_MS).await.unwrap();
    assert!(ahead.is_whole && ahead.clients.len() == 1);
    let insert = format!(
        "insert into change_log (network, kind, subject) select network, 1, '{}' from network, generate_series(0, {MOST_CHANGES})",
        client.0
    );
    database.postgres.admin(&insert).unwrap();
    assert!(database.relay.changes(Some(begin.cursor), LONG_AGO_MS).await.unwrap().is_whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_relay_may_read_of_accounts_is_who_is_refused_and_nothing_else() {
    let database = Database::start().await;
    let path = format!("postgresql://holdfast_relay@{}/{DATABASE}", database.postgres.tcp_address());
    let relay = Session::open(path.parse::<crate::PooledPath>().unwrap().config()).await.unwrap();
    for sql in ["select password from account", "insert into change_log (network, kind) values (1, 4)"] {
        let refused = relay.batch(sql).await.unwrap_err();
        assert!(matches!(&refused, StoreError::Refused { code, .. } if code == "42501"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verifiers_say_what_they_hold_and_those_that_are_silent_are_not_listed() {
    let database = Database::start().await;
    let (api, key) = (Uuid::from_u128(1), KeyId::of(&[7; 32]));
    let beat = ApiBeat {
        api,
        started_at_ms: now_ms(),
        ring: 1,
        revocations: 2,
        holds: vec![key],
        signs_with: Some(key),
    };
    database.api.beat_api(beat.clone()).await.unwrap();
    let first = database.api.verifiers(30_000).await.unwrap();
    let name = key.to_string();
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].name, first[0].ring, first[0].revocations), (api, 1, 2));
    assert_eq!(
        first[0].kind,
        VerifierKind::Api { holds: vec![name.clone()], signs_with: Some(name.clone()) }
    );
    // The same ring again keeps its moment; another one begins a new one.
    database.api.beat_api(beat.clone()).await.unwrap();
    let same = database.api.verifiers(30_000).await.unwrap();
    assert_eq!(same[0].ring_since_ms, first[0].ring_since_ms);
    assert!(same[0].beat_at_ms >= first[0].beat_at_ms);
    database.postgres.admin("update api_beat set ring_since = now() - interval '1 hour'").unwrap();
    database.api.beat_api(ApiBeat { ring: 2, ..beat }).await.unwrap();
    let newer = database.api.verifiers(30_000).await.unwrap();
    assert!(newer[0].ring == 2 && now_ms().abs_diff(newer[0].ring_since_ms) < 60_000);
    database.postgres.admin("update api_beat set beat_at = now() - interval '31 s'").unwrap();
    assert!(database.api.verifiers(30_000).await.unwrap().is_empty());
    database
        .api
        .beat_api(ApiBeat { api, started_at_ms: 1, ring: 2, revocations: 2, holds: vec![], signs_with: None })
        .await
        .unwrap();
    database.api.end_api(api).await.unwrap();
    assert!(database.api.verifiers(30_000).await.unwrap().is_empty(), "it has said that it ends");
}
