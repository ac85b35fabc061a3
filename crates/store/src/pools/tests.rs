use trust::{RelayId, Role};
use uuid::Uuid;

use super::*;
use crate::testing::{Database, now_ms};
use crate::{Beat, Connected, ExitRow, NewProxyAccount};

const SILENCE_MS: u64 = 30_000;
const SETTLING_MS: u64 = 60_000;

fn beat(relay: RelayId, started_at_ms: u64) -> Beat {
    Beat {
        relay,
        epoch: 1,
        address: "relay:443".into(),
        connections: 1,
        draining: false,
        started_at_ms,
        ring: 1,
        revocations: 1,
    }
}

fn row(name: &str, bytes: &[u8]) -> PoolRow {
    PoolRow { name: name.into(), hash: BlobHash::of(bytes), listed: 2, connected: 3, verified: 1 }
}

fn generation(number: u64, pools: &[(&str, &[u8])]) -> (Generation, Vec<(BlobHash, Vec<u8>)>) {
    let at_ms = 1_800_000_000_000 + number;
    let generation = Generation {
        number,
        built_at_ms: at_ms,
        confirmed_at_ms: at_ms,
        every_ms: 1_000,
        registered: 9,
        held_cause: None,
        pools: pools.iter().map(|(name, bytes)| row(name, bytes)).collect(),
    };
    (generation, pools.iter().map(|(_, bytes)| (BlobHash::of(bytes), bytes.to_vec())).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_sees_who_is_connected_who_has_carried_streams_and_which_relays_beat() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let one = database.client(account, Role::Provider, Some("DE")).await;
    let two = database.client(account, Role::Provider, None).await;
    let (relay, now) = (RelayId::random(), now_ms());
    database.relay.beat(beat(relay, now - 600_000)).await.unwrap();
    database.relay.beat(beat(RelayId::random(), now)).await.unwrap();
    let came = |client| Connected { client, epoch: 5, software: String::new(), at_ms: now };
    database.relay.record_connections(relay, 1, vec![came(one), came(two)], Vec::new()).await.unwrap();
    let login = NewProxyAccount {
        name: "shop".into(),
        account,
        secret_sha256: [1; 32],
        most_streams: 1,
        streams_per_second: 1,
        bytes_per_second: 1,
        most_contracts: 1,
        selection: String::new(),
    };
    assert!(database.api.create_proxy_account(login).await.unwrap());
    let exit = |provider, opened_at_ms| ExitRow {
        exit: Uuid::new_v4(),
        proxy_account: "shop".into(),
        provider,
        port: 443,
        opened_at_ms,
        closed_at_ms: now,
    };
    let exits = vec![exit(one, now - 60_000), exit(two, now - 2 * VERIFIED_MS)];
    database.api.record_exits(exits).await.unwrap();
    let found = database.worker.live_network(now, SILENCE_MS, SETTLING_MS).await.unwrap();
    let mut told: Vec<_> = found
        .providers
        .iter()
        .map(|live| (live.provider, live.country.as_deref(), live.verified, live.relay.as_str(), live.epoch))
        .collect();
    told.sort_unstable();
    let mut wanted = vec![(one, Some("DE"), true, "relay:443", 5), (two, None, false, "relay:443", 5)];
    wanted.sort_unstable();
    assert_eq!(told, wanted);
    let inputs = (found.registered, found.relays_fresh, found.relays_settling, found.relays_known);
    assert_eq!(inputs, (2, 2, 1, 2));
    // When nobody beats any more, that is seen, and nobody is gone for it.
    let later =
        database.worker.live_network(now + SILENCE_MS + 1_000, SILENCE_MS, SETTLING_MS).await.unwrap();
    assert_eq!((later.providers.len(), later.relays_fresh, later.relays_known), (2, 0, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_is_published_whole_and_only_the_last_ones_are_kept() {
    let database = Database::start().await;
    assert_eq!(database.api.generation().await.unwrap(), None);
    let (first, blobs) = generation(1, &[("best", b"a"), ("de", b"b")]);
    assert!(database.worker.publish_generation(first.clone(), blobs.clone()).await.unwrap());
    assert_eq!(database.api.generation().await.unwrap(), Some(first.clone()));
    // Another worker was slower.
    assert!(!database.worker.publish_generation(first, blobs).await.unwrap());
    let blob = async |bytes: &[u8]| database.api.pool_blob(BlobHash::of(bytes)).await.unwrap();
    assert_eq!(blob(b"b").await.as_deref(), Some(&b"b"[..]));
    for number in 2..=GENERATIONS_KEPT as u64 + 3 {
        // One pool stays as it is.
        let best = number.to_be_bytes();
        let (next, blobs) = generation(number, &[("best", &best), ("de", b"b")]);
        assert!(database.worker.publish_generation(next, blobs).await.unwrap());
    }
    let count = |table: &str| database.postgres.admin(&format!("select count(*) from {table}")).unwrap();
    assert_eq!(count("pool_generation")[0][0].as_deref(), Some("10"));
    assert_eq!(count("pool_blob")[0][0].as_deref(), Some("11"), "ten of the best, and one country");
    assert_eq!((blob(b"a").await, blob(b"b").await.as_deref()), (None, Some(&b"b"[..])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_that_is_held_is_not_confirmed_and_says_why() {
    let database = Database::start().await;
    let (first, blobs) = generation(7, &[("best", b"a")]);
    let built_at_ms = first.built_at_ms;
    database.worker.publish_generation(first, blobs).await.unwrap();
    database.worker.confirm_generation(7, built_at_ms + 500, None).await.unwrap();
    database.worker.confirm_generation(7, built_at_ms + 900, Some("doubt".into())).await.unwrap();
    let held = database.api.generation().await.unwrap().unwrap();
    assert_eq!((held.confirmed_at_ms, held.held_cause.as_deref()), (built_at_ms + 500, Some("doubt")));
    database.worker.confirm_generation(7, built_at_ms + 1_000, None).await.unwrap();
    let free = database.api.generation().await.unwrap().unwrap();
    assert_eq!((free.confirmed_at_ms, free.held_cause), (built_at_ms + 1_000, None));
}
