use trust::Role;

use super::*;
use crate::catalogue::Writer;
use crate::testing::{Database, now_ms, store_of};
use crate::{ExitFound, ExitRow, NewProxyAccount};

fn beat(relay: RelayId, epoch: u64, address: &str) -> Beat {
    Beat {
        relay,
        epoch,
        address: address.into(),
        connections: 1,
        draining: false,
        started_at_ms: now_ms(),
        ring: 1,
        revocations: 1,
    }
}

fn came(client: ClientId, epoch: u64) -> Connected {
    Connected { client, epoch, software: "holdfast 0.1.0".into(), at_ms: now_ms() }
}

async fn found(database: &Database, country: Option<&str>) -> CandidatesFound {
    database.api.candidates(country.map(str::to_owned), None, 10).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beat_before_the_networks_first_api_is_told_from_one_of_an_earlier_start() {
    let database = Database::start().await;
    let elsewhere = store_of(trust::NetworkId([9; 32]), &database.postgres, Writer::Relay);
    let relay = RelayId::random();
    assert_eq!(elsewhere.beat(beat(relay, 2, "relay:443")).await.unwrap(), Beaten::NoNetwork);
    assert_eq!(database.relay.beat(beat(relay, 2, "relay:443")).await.unwrap(), Beaten::New);
    assert_eq!(database.relay.beat(beat(relay, 1, "relay:443")).await.unwrap(), Beaten::Superseded);
    assert_eq!(database.relay.beat(beat(relay, 2, "relay:443")).await.unwrap(), Beaten::Known);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_a_candidate_while_its_relay_beats_and_has_it() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let one = database.client(account, Role::Provider, Some("DE")).await;
    let two = database.client(account, Role::Provider, Some("FR")).await;
    let app = database.client(account, Role::App, Some("DE")).await;
    let (relay, store) = (RelayId::random(), &database.relay);
    assert_eq!((found(&database, None).await.connected, found(&database, None).await.registered), (0, 2));
    assert_eq!(store.beat(beat(relay, 1, "relay:443")).await.unwrap(), Beaten::New);
    let rows = vec![came(one, 10), came(two, 20), came(app, 30)];
    for _ in 0..2 {
        store.record_connections(relay, 1, rows.clone(), Vec::new()).await.unwrap();
    }
    let all = found(&database, None).await;
    assert_eq!((all.candidates.len(), all.connected, all.registered), (2, 2, 2));
    let german = found(&database, Some("DE")).await;
    let candidate = &german.candidates[0];
    assert_eq!((german.candidates.len(), german.connected), (1, 1));
    assert_eq!((candidate.provider, candidate.epoch, candidate.relay.as_str()), (one, 10, "relay:443"));
    assert_eq!(candidate.identity, database.api.client(one).await.unwrap().unwrap().identity);
    let few = database.api.candidates(None, None, 1).await.unwrap();
    assert_eq!((few.candidates.len(), few.connected), (1, 2));
    let places = database.api.locations().await.unwrap();
    assert_eq!(places, [(Some("DE".into()), 1), (Some("FR".into()), 1)]);
    assert!(database.api.clients(Some(account)).await.unwrap()[0].connected);

    let gone = Disconnected { client: one, epoch: 10, cause: 5, at_ms: now_ms() };
    store.record_connections(relay, 1, Vec::new(), vec![gone]).await.unwrap();
    assert!(found(&database, Some("DE")).await.candidates.is_empty());
    assert_eq!(found(&database, None).await.connected, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_start_of_a_relay_has_none_of_the_clients_of_the_one_before() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let (relay, store) = (RelayId::random(), &database.relay);
    let mut rows = Vec::new();
    for epoch in 0..5 {
        rows.push(came(database.client(account, Role::Provider, None).await, epoch));
    }
    store.beat(beat(relay, 1, "relay:443")).await.unwrap();
    store.record_connections(relay, 1, rows.clone(), Vec::new()).await.unwrap();
    assert_eq!(found(&database, None).await.connected, 5);
    assert_eq!(store.beat(beat(relay, 2, "relay:443")).await.unwrap(), Beaten::Known);
    assert_eq!(found(&database, None).await.connected, 0);
    assert_eq!(store.beat(beat(relay, 1, "relay:443")).await.unwrap(), Beaten::Superseded);
    // Providers come back with the same start of their own: the rows do not stand in the way.
    store.record_connections(relay, 2, rows, Vec::new()).await.unwrap();
    assert_eq!(found(&database, None).await.connected, 5);
    assert_eq!(store.close_earlier_connections(relay, 2).await.unwrap(), 5);
    assert_eq!(store.close_earlier_connections(relay, 2).await.unwrap(), 0);
    assert_eq!(found(&database, None).await.connected, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_a_relay_that_is_gone_for_good_do_not_stay_for_ever() {
    let database = Database::start().await;
    let provider = database.client(database.account("owner").await, Role::Provider, None).await;
    let (gone, stays, store) = (RelayId::random(), RelayId::random(), &database.relay);
    for relay in [gone, stays] {
        store.beat(beat(relay, 1, "relay:443")).await.unwrap();
        store.record_connections(relay, 1, vec![came(provider, 1)], Vec::new()).await.unwrap();
    }
    let dropped = async || database.worker.drop_orphaned_connections().await.unwrap();
    database.postgres.admin(&format!("delete from relay_beat where relay = '{gone}'")).unwrap();
    assert_eq!(dropped().await, 0, "its record may just have vanished");
    database.postgres.admin("update connection set connected_at = now() - interval '8 days'").unwrap();
    assert_eq!((dropped().await, dropped().await), (1, 0));
    assert_eq!(database.value("select relay from connection"), stays.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_start_of_a_provider_wins_and_draining_relays_are_left_out() {
    let database = Database::start().await;
    let provider = database.client(database.account("owner").await, Role::Provider, None).await;
    let (old, new, store) = (RelayId::random(), RelayId::random(), &database.relay);
    store.beat(beat(old, 1, "old:443")).await.unwrap();
    store.beat(Beat { connections: 0, ..beat(new, 1, "new:443") }).await.unwrap();
    store.record_connections(old, 1, vec![came(provider, 100)], Vec::new()).await.unwrap();
    store.record_connections(new, 1, vec![came(provider, 101)], Vec::new()).await.unwrap();
    let all = found(&database, None).await;
    assert_eq!((all.connected, all.candidates[0].relay.as_str()), (1, "new:443"));
    assert_eq!(database.api.relay_addresses(16).await.unwrap(), ["new:443", "old:443"]);
    store.beat(Beat { draining: true, ..beat(new, 1, "new:443") }).await.unwrap();
    assert_eq!(found(&database, None).await.candidates[0].relay, "old:443");
    assert_eq!(database.api.relay_addresses(16).await.unwrap(), ["old:443"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_comes_back_to_its_relay_is_connected_again_and_late_news_of_its_end_changes_nothing() {
    let database = Database::start().await;
    let provider = database.client(database.account("owner").await, Role::Provider, None).await;
    let (relay, store) = (RelayId::random(), &database.relay);
    store.beat(beat(relay, 1, "relay:443")).await.unwrap();
    let at = now_ms();
    let came = |at_ms| Connected { at_ms, ..came(provider, 10) };
    let gone = |at_ms| Disconnected { client: provider, epoch: 10, cause: 0, at_ms };
    store.record_connections(relay, 1, vec![came(at)], vec![gone(at + 10)]).await.unwrap();
    assert_eq!(found(&database, None).await.connected, 0);
    for _ in 0..2 {
        store.record_connections(relay, 1, vec![came(at + 20), came(at)], Vec::new()).await.unwrap();
        assert_eq!(found(&database, None).await.connected, 1);
        store.record_connections(relay, 1, vec![came(at)], vec![gone(at + 10)]).await.unwrap();
        assert_eq!(found(&database, None).await.connected, 1, "what was told before is told again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_writes_at_most_ten_thousand_rows() {
    let database = Database::start().await;
    let row = Usage { contract: ContractId::random(), sequence: 0, bytes: 1 };
    let rows: Vec<_> = (0..=MOST_ROWS as u64).map(|sequence| Usage { sequence, ..row }).collect();
    let relay = RelayId::random();
    let refused = database.relay.record_usage(relay, 1, rows.clone()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Invalid { .. }));
    database.relay.record_usage(relay, 1, rows[1..].to_vec()).await.unwrap();
    assert_eq!(database.value("select count(*) from usage"), MOST_ROWS.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_abuse_look_up_names_the_account_that_used_an_exit_at_a_time() {
    let database = Database::start().await;
    let account = database.account("customer").await;
    let provider = database.client(account, Role::Provider, None).await;
    let login = |name: &str| NewProxyAccount {
        name: name.into(),
        account,
        secret_sha256: [1; 32],
        most_streams: 5,
        streams_per_second: 0,
        bytes_per_second: 0,
        most_contracts: 2,
        selection: "country-de".into(),
    };
    let api = &database.api;
    assert!(api.create_proxy_account(login("shop")).await.unwrap());
    assert!(!api.create_proxy_account(login("shop")).await.unwrap());
    let kept = api.proxy_account("shop".into()).await.unwrap().unwrap();
    assert_eq!(
        (kept.made.most_streams, kept.made.selection.as_str(), kept.disabled_at_ms),
        (5, "country-de", None)
    );
    let now = now_ms();
    let exit = |proxy_account: &str, port, at: u64| ExitRow {
        exit: Uuid::new_v4(),
        proxy_account: proxy_account.into(),
        provider,
        port,
        opened_at_ms: at,
        closed_at_ms: at + 60_000,
    };
    let rows = vec![exit("shop", 443, now), exit("shop", 80, now + 600_000), exit("nobody", 443, now)];
    for _ in 0..2 {
        api.record_exits(rows.clone()).await.unwrap();
    }
    let who = |time, port| api.find_exits(provider, time, 2_000, port);
    let expected = ExitFound {
        account,
        account_name: "customer".into(),
        proxy_account: "shop".into(),
        opened_at_ms: now,
        closed_at_ms: now + 60_000,
    };
    assert_eq!(who(now + 30_000, Some(443)).await.unwrap(), [expected]);
    assert!(who(now + 30_000, Some(80)).await.unwrap().is_empty());
    assert!(who(now + 120_000, None).await.unwrap().is_empty());
    assert!(api.disable_proxy_account("shop".into(), account).await.unwrap());
    assert!(!api.disable_proxy_account("shop".into(), AccountId::random()).await.unwrap());
    assert!(api.proxy_accounts(account).await.unwrap()[0].disabled_at_ms.is_some());
}

use trust::AccountId;

/// The look-up with as many providers as the largest network has, on a machine that may be busy: a bound that only a plan gone
/// wrong exceeds.
#[tokio::test(flavor = "multi_thread")]
async fn candidates_are_found_among_75_000_providers() {
    let database = Database::start().await;
    database.account("owner").await;
    let relay = RelayId::random();
    database.relay.beat(beat(relay, 1, "relay:443")).await.unwrap();
    let fill = format!(
        "insert into client (client, network, request, role, identity, thumbprint, account, label, software, country)
         select md5('c' || n)::uuid, 1, md5('r' || n)::uuid, 1, sha512(n::text::bytea), sha256(n::text::bytea),
            (select account from account), '', '', (array['DE', 'FR', 'US', 'JP', 'BR'])[n % 5 + 1]
         from generate_series(1, 75000) n;
         insert into connection (client, epoch, relay, relay_epoch, network, software, connected_at, disconnected_at)
         select md5('c' || n)::uuid, e, '{relay}', 1, 1, '', now(), case when e < 3 then now() end
         from generate_series(1, 75000) n, generate_series(1, 3) e;
         analyze client, connection, relay_beat",
    );
    database.postgres.admin(&fill).unwrap();
    for (country, connected) in [(None, 75_000), (Some("DE"), 15_000)] {
        let begun = tokio::time::Instant::now();
        let all = found(&database, country).await;
        let took = begun.elapsed();
        assert_eq!((all.candidates.len(), all.connected, all.registered), (10, connected, connected));
        assert!(took < std::time::Duration::from_secs(3), "{took:?}");
    }
    let one = found(&database, None).await.candidates[0].provider;
    let begun = tokio::time::Instant::now();
    let single = database.api.candidates(None, Some(one), 10).await.unwrap();
    let took = begun.elapsed();
    assert_eq!((single.candidates.len(), single.connected, single.registered), (1, 1, 1));
    assert!(took < std::time::Duration::from_millis(500), "one provider is looked up by its name: {took:?}");
}
