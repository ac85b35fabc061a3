//! The verbs on one server, of each kind that is installed.

use super::*;
use crate::{Count, GREATEST_VALUE_BYTES, MemoryLimits, Take};
use drill::port::PortLease;
use drill::redis::PrivateRedis;

fn taken(take: Take) -> crate::Lease {
    match take {
        Take::Taken(lease) => lease,
        Take::Held { for_ms } => panic!("held for {for_ms} ms"),
    }
}

/// What every cache does, wherever it is.
async fn verbs(cache: &Cache) {
    let key = Key::new("test", "a{b}:c");
    assert_eq!(cache.get(&key).await.unwrap(), None);
    let value: Vec<u8> = (0..=255).collect();
    cache.put(&key, &value, MINUTE).await.unwrap();
    assert_eq!(cache.get(&key).await.unwrap(), Some(value));
    cache.put(&key, b"", Duration::from_millis(50)).await.unwrap();
    sleep(Duration::from_millis(120)).await;
    assert_eq!(cache.get(&key).await.unwrap(), None, "expired");
    let beyond = vec![0; GREATEST_VALUE_BYTES + 1];
    assert!(matches!(cache.put(&key, &beyond, MINUTE).await, Err(CacheError::TooLarge { .. })));
    cache.put(&key, &beyond[1..], MINUTE).await.unwrap();

    let lease = Key::new("test", "lease");
    let first = taken(cache.take(&lease, "one", MINUTE).await.unwrap());
    assert_eq!(
        taken(cache.take(&lease, "one", MINUTE).await.unwrap()),
        first,
        "asked again after a lost answer"
    );
    let Take::Held { for_ms } = cache.take(&lease, "two", MINUTE).await.unwrap() else {
        panic!("two hold it")
    };
    assert!((1..=60_000).contains(&for_ms), "{for_ms}");
    assert!(cache.renew(&first, Duration::from_millis(80)).await.unwrap());
    sleep(Duration::from_millis(150)).await;
    assert!(!cache.renew(&first, MINUTE).await.unwrap(), "renewed after its end");
    let second = taken(cache.take(&lease, "two", MINUTE).await.unwrap());
    assert!(second.fence() > first.fence());
    assert!(!cache.give_back(first.clone()).await.unwrap(), "a late holder took it from the next");
    assert!(cache.give_back(second.clone()).await.unwrap());
    assert!(!cache.renew(&second, MINUTE).await.unwrap());
    let third = taken(cache.take(&lease, "one", MINUTE).await.unwrap());
    assert!(third.fence() > second.fence());

    let counter = Key::new("test", "counter");
    for round in 1..=3 {
        let Count { total, ends_in_ms } = cache.count(&counter, 2, MINUTE).await.unwrap();
        assert_eq!(total, 2 * round);
        assert!((1..=60_000).contains(&ends_in_ms));
    }
    let short = Key::new("test", "short");
    cache.count(&short, 5, Duration::from_millis(60)).await.unwrap();
    sleep(Duration::from_millis(120)).await;
    assert_eq!(cache.count(&short, 1, MINUTE).await.unwrap().total, 1, "a new window");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verbs_do_the_same_in_process_and_on_each_kind_of_server() {
    verbs(&Cache::in_process(NETWORK, MemoryLimits::default())).await;
    let kinds = RedisKind::installed();
    assert!(kinds.contains(&RedisKind::Redis), "redis-server is not installed");
    for kind in kinds {
        let redis = PrivateRedis::start(kind, &["--requirepass", "p%w"]).unwrap();
        verbs(&at(redis.url().replace("p%w", "p%25w"))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_leases_and_hear_each_other() {
    let redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    let (one, two) = (at(redis.url()), at(redis.url()));
    let mut hints = listening(&one, Channel::CHANGES).await;
    publish(&two, Channel::CHANGES).await;
    heard(&mut hints).await;
    quiet(&mut hints).await;
    publish(&two, Channel::POOLS).await;
    assert!(timeout(Duration::from_millis(300), hints.heard()).await.is_err(), "a hint of another channel");
    let lease = Key::new("test", "lease");
    taken(one.take(&lease, "one", MINUTE).await.unwrap());
    assert!(matches!(two.take(&lease, "two", MINUTE).await.unwrap(), Take::Held { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_on_one_server_do_not_meet() {
    let redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    let one = at(redis.url());
    let other = CacheConfig::at(redis.url()).open(NetworkId([8; 32])).unwrap();
    let key = Key::new("test", "a");
    one.put(&key, b"x", MINUTE).await.unwrap();
    assert_eq!(other.get(&key).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_a_refusal_that_does_not_wait_and_comes_right_by_itself() {
    let redis = PrivateRedis::start(RedisKind::Redis, &["--requirepass", "right"]).unwrap();
    let cache = at(redis.url().replace("right", "wrong"));
    let key = Key::new("test", "a");
    let (error, _) = fails(&cache, &key).await;
    assert!(!error.to_string().contains("wrong"), "{error}");
    let (error, took) = fails(&cache, &key).await;
    assert!(matches!(error, CacheError::Unavailable { .. }) && took < DEADLINE, "{error} {took:?}");
    redis.command(&["CONFIG", "SET", "requirepass", "wrong"]).unwrap();
    comes_back(&cache, &key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_cluster_taken_for_a_single_server_is_named() {
    // Its usual one, 10,000 above, may be somebody's outgoing connection.
    let bus = PortLease::take().unwrap();
    let bus_port = bus.number().to_string();
    let options = ["--cluster-enabled", "yes", "--cluster-port", &bus_port];
    let redis = PrivateRedis::start(RedisKind::Redis, &options).unwrap();
    redis.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "1"]).unwrap();
    let cache = at(redis.url());
    let key = Key::new("test", "a");
    let error = cache.get(&key).await.unwrap_err();
    assert!(matches!(error, CacheError::Unavailable { .. } | CacheError::Refused { .. }), "{error}");
}
