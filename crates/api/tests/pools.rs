//! Generations of pools: served while the database answers, and when it does not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "support/support.rs"]
mod support;

use std::time::Duration;

use client::api::{Caller, CandidatesQuery};
use drill::relay::Cut;
use selection::Country;
use selection::pool::{Member, encode};
use store::catalogue::Writer;
use store::{Generation, PoolRow};
use support::{Ask, House, now_ms, refusal};
use tokio::time::{Instant, sleep};
use trust::api::{ErrorCode, PoolsAnswer};
use trust::{BlobHash, ClientId, PoolManifest, Role};

fn member(id: u128, country: &str) -> Member {
    Member {
        provider: ClientId(uuid::Uuid::from_u128(id)).0,
        epoch: 5,
        connected_at_ms: 6,
        relay: "relay:443".into(),
        country: Country::parse(country).unwrap(),
        verified: id == 1,
        identity: [id as u8; 64],
    }
}

/// What the worker would publish: the best are two, and one of them is in Germany.
fn generation(number: u64) -> (Generation, Vec<(BlobHash, Vec<u8>)>) {
    let (one, two) = (member(1, "de"), member(2, "fr"));
    let pools = [("best", encode(&[&one, &two]), 2), ("de", encode(&[&one]), 1), ("fr", encode(&[&two]), 1)];
    let row = |(name, bytes, count): &(&str, Vec<u8>, u32)| PoolRow {
        name: (*name).into(),
        hash: BlobHash::of(bytes),
        listed: *count,
        connected: *count,
        verified: u32::from(*name != "fr"),
    };
    let generation = Generation {
        number,
        built_at_ms: now_ms(),
        confirmed_at_ms: now_ms(),
        every_ms: 10_000,
        registered: 7,
        held_cause: None,
        pools: pools.iter().map(row).collect(),
    };
    let blobs = pools.into_iter().map(|(_, bytes, _)| (BlobHash::of(&bytes), bytes)).collect();
    (generation, blobs)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_is_served_signed_and_outlives_the_database_and_a_restart_without_it() {
    let mut house = House::start().await;
    let proxy = house.member(Role::Proxy, None).await;
    let stranger = house.member(Role::App, None).await;
    let token = proxy.membership.token();
    let caller = Caller { identity: proxy.membership.identity(), token: &token };
    let none = house.api().pools(caller, None).await.unwrap_err();
    assert_eq!(refusal(&none), ErrorCode::Unavailable);

    let (published, blobs) = generation(1_000);
    let worker = house.store(Writer::Worker);
    assert!(worker.publish_generation(published.clone(), blobs.clone()).await.unwrap());
    let (answer, tag) = pools(&house, caller, |_| true).await;
    let manifest = PoolManifest::verify(&answer.manifest, &proxy.membership.key_ring(), now_ms()).unwrap();
    assert_eq!((manifest.number, manifest.pools.len(), manifest.registered), (1_000, 3, 7));
    assert!(!answer.stale);
    assert!(house.api().pools(caller, Some(&tag)).await.unwrap().is_none(), "nothing has changed");
    for (hash, bytes) in &blobs {
        assert_eq!(house.api().pool(caller, *hash).await.unwrap(), *bytes);
    }
    let unknown = house.api().pool(caller, BlobHash([1; 32])).await.unwrap_err();
    assert_eq!(refusal(&unknown), ErrorCode::NotFound);
    assert_eq!(house.ask(&Ask::get("/v1/pools")).await.status, 401, "not for everybody");

    // The worker holds the next one: what is served is the same, and said to be stale, with the cause.
    worker.confirm_generation(1_000, now_ms(), Some("0 of 1 relays beat".into())).await.unwrap();
    let (held, held_tag) = pools(&house, caller, |answer| answer.stale).await;
    assert_eq!(held.cause.as_deref(), Some("0 of 1 relays beat"));
    assert_eq!(held.manifest, answer.manifest);
    assert_ne!(held_tag, tag);
    worker.confirm_generation(1_000, now_ms(), None).await.unwrap();
    pools(&house, caller, |answer| !answer.stale).await;
    let locations = house.api().locations(caller).await.unwrap();
    let told: Vec<_> = locations
        .locations
        .iter()
        .map(|place| (place.country.as_deref().unwrap(), place.connected, place.verified))
        .collect();
    assert_eq!(told, [("DE", 1, Some(1)), ("FR", 1, Some(0))], "listed, and verified");

    // The next generation is there, and whoever reads the one before may finish.
    let (mut next, _) = generation(1_001);
    next.pools.truncate(1);
    assert!(worker.publish_generation(next, Vec::new()).await.unwrap());
    pools(&house, caller, |answer| answer.manifest != held.manifest).await;
    assert!(house.api().pool(caller, published.pools[1].hash).await.is_ok());

    // The database is gone.
    house.relay.refuse_new(true);
    house.relay.cut(Cut::Reset);
    gone(&house, caller, 1_001).await;
    // A start without it, from what is on the disk.
    house.down().await;
    house.begin();
    gone(&house, caller, 1_001).await;
    assert_eq!(house.get("/ready").await.status, 503, "not ready");
    assert_eq!(house.get("/status").await.status, 200, "but alive");
    // Nobody else is known: who never asked while the database answered has to wait.
    let token = stranger.membership.token();
    let unknown = Caller { identity: stranger.membership.identity(), token: &token };
    let refused = house.api().pools(unknown, None).await.unwrap_err();
    assert_eq!(refusal(&refused), ErrorCode::Unavailable);
    // And back.
    house.relay.refuse_new(false);
    let begun = Instant::now();
    while house.get("/ready").await.status != 200 {
        assert!(begun.elapsed() < support::PATIENCE, "it does not become ready");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(house.api().pools(unknown, None).await.is_ok());
}

/// What a proxy gets while the database is gone.
async fn gone(house: &House, caller: Caller<'_>, number: u64) {
    let (answer, _) = pools(house, caller, |_| true).await;
    let text = answer.manifest.split('.').nth(1).unwrap().to_owned();
    let claims = base64::Engine::decode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, text).unwrap();
    let manifest: PoolManifest = serde_json::from_slice(&claims).unwrap();
    assert_eq!(manifest.number, number);
    let found = house.api().candidates(caller, CandidatesQuery::default()).await.unwrap();
    assert_eq!((found.candidates.len(), found.connected, found.registered, found.stale), (2, 2, 7, true));
    assert!(found.as_of_ms.unwrap() <= now_ms());
    let query = CandidatesQuery { country: Some("FR"), ..CandidatesQuery::default() };
    let french = house.api().candidates(caller, query).await.unwrap().candidates;
    assert_eq!(
        (french.len(), french[0].provider, &*french[0].relay),
        (1, member(2, "fr").provider, "relay:443")
    );
    assert_eq!(french[0].country.as_deref(), Some("FR"));
}

/// The generation, as soon as it is like this.
async fn pools(
    house: &House,
    caller: Caller<'_>,
    is_so: impl Fn(&PoolsAnswer) -> bool,
) -> (PoolsAnswer, String) {
    let begun = Instant::now();
    loop {
        let answer = house.api().pools(caller, None).await;
        if let Ok(Some((answer, tag))) = answer
            && is_so(&answer)
        {
            return (answer, tag);
        }
        assert!(begun.elapsed() < support::PATIENCE, "it does not come");
        sleep(Duration::from_millis(50)).await;
    }
}
