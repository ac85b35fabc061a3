//! A server that is gone, stopped, cut off: calls fail within their deadline, nothing grows, and all comes back.

use super::*;
use drill::redis::PrivateRedis;
use drill::relay::{Cut, Direction, Relay};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_at_the_start_fails_at_once_and_is_found_when_it_comes() {
    let mut redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    redis.kill().unwrap();
    let cache = at(redis.url());
    let key = Key::new("test", "a");
    let mut hints = cache.subscribe(Channel::CHANGES).unwrap();
    heard(&mut hints).await;
    fails(&cache, &key).await;
    let (error, took) = fails(&cache, &key).await;
    assert!(matches!(error, CacheError::Unavailable { .. }), "{error}");
    assert!(took < DEADLINE, "waited {took:?} for a server that refuses");
    redis.start_again().unwrap();
    comes_back(&cache, &key).await;
    // What happened meanwhile has to be read.
    heard(&mut hints).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_connections_come_back_and_the_listener_is_told_to_read() {
    let redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    let cache = at(redis.url());
    let key = Key::new("test", "a");
    cache.put(&key, b"x", MINUTE).await.unwrap();
    let mut hints = listening(&cache, Channel::CHANGES).await;
    for _ in 0..3 {
        redis.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
        redis.command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
        heard(&mut hints).await;
        comes_back(&cache, &key).await;
    }
    assert_eq!(cache.get(&key).await.unwrap().as_deref(), Some(&b"x"[..]));
    quiet(&mut hints).await;
    publish(&cache, Channel::CHANGES).await;
    heard(&mut hints).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_costs_each_call_its_deadline_at_most_and_soon_nothing() {
    let mut redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    let config = CacheConfig { in_flight: 4, check_ms: 1_000, ..CacheConfig::at(redis.url()) };
    let cache = open(&config);
    let key = Key::new("test", "a");
    comes_back(&cache, &key).await;
    let mut hints = listening(&cache, Channel::CHANGES).await;
    redis.pause().unwrap();
    // Twenty at once: as many as may be wait, for one deadline; the others are told at once.
    let began = Instant::now();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (cache, key) = (cache.clone(), key.clone());
            tokio::spawn(async move { cache.get(&key).await.unwrap_err() })
        })
        .collect();
    let mut kinds = Vec::new();
    for call in calls {
        kinds.push(call.await.unwrap().kind());
    }
    assert!(began.elapsed() < DEADLINE + SLACK, "{:?}", began.elapsed());
    // The third without an answer gives the connection up, and with it the fourth.
    let waited = kinds.iter().filter(|kind| ["deadline", "unavailable"].contains(kind)).count();
    let refused = kinds.iter().filter(|kind| **kind == "busy").count();
    assert_eq!((waited, refused), (4, 16), "{kinds:?}");
    // The circuit is open: a hundred more take no time worth speaking of.
    sleep(Duration::from_millis(20)).await;
    let began = Instant::now();
    for _ in 0..100 {
        let error = cache.get(&key).await.unwrap_err();
        assert!(
            matches!(error, CacheError::Unavailable { retry_after_ms } if retry_after_ms <= 5_000),
            "{error}"
        );
    }
    assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
    // The listener notices as well, by its own check.
    let before = cache.counts().subscribed;
    sleep(Duration::from_millis(3_500)).await;
    redis.resume().unwrap();
    comes_back(&cache, &key).await;
    heard(&mut hints).await;
    assert!(cache.counts().subscribed > before);
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_that_are_cut_in_the_middle_are_no_answers() {
    let redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    let relay = Relay::start(redis.address()).unwrap();
    let cache = at(format!("redis://{}", relay.address()));
    let key = Key::new("test", "a");
    let value = vec![7; 60_000];
    comes_back(&cache, &key).await;
    cache.put(&key, &value, MINUTE).await.unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    let mut answered = 0;
    for round in 0..30 {
        // The reply is on its way in pieces when the cut comes, now earlier, now later.
        relay.delay_bytes(Direction::Down, Duration::from_millis(random.u64(0..8)));
        let call = tokio::spawn({
            let (cache, key) = (cache.clone(), key.clone());
            async move { cache.get(&key).await }
        });
        sleep(Duration::from_millis(random.u64(0..12))).await;
        relay.cut(if round % 2 == 0 { Cut::Reset } else { Cut::Close });
        match call.await.unwrap() {
            Ok(got) => {
                assert_eq!(
                    got.as_deref(),
                    Some(&value[..]),
                    "round {round}: another's answer, or part of one"
                );
                answered += 1;
            }
            Err(error) => assert!(error.retry_after_ms().is_some(), "round {round}: {error}"),
        }
        comes_back(&cache, &key).await;
    }
    relay.delay_bytes(Direction::Down, Duration::ZERO);
    assert!(answered < 30, "nothing was ever cut");
    assert_eq!(cache.get(&key).await.unwrap(), Some(value));
    assert!(relay.counts().live <= 2, "connections pile up: {:?}", relay.counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_fails_under_the_listener_does_not_end_it() {
    let redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    let relay = Relay::start(redis.address()).unwrap();
    let (listener, other) = (at(format!("redis://{}", relay.address())), at(redis.url()));
    let mut hints = listening(&listener, Channel::CHANGES).await;
    relay.cut(Cut::Reset);
    heard(&mut hints).await;
    quiet(&mut hints).await;
    publish(&other, Channel::CHANGES).await;
    heard(&mut hints).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_swallows_everything_is_noticed_by_the_check() {
    let redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    let relay = Relay::start(redis.address()).unwrap();
    let (listener, other) = (at(format!("redis://{}", relay.address())), at(redis.url()));
    let mut hints = listening(&listener, Channel::CHANGES).await;
    // No end of the connection is seen; only nothing comes any more.
    relay.freeze();
    publish(&other, Channel::CHANGES).await;
    sleep(Duration::from_secs(5)).await;
    relay.thaw();
    heard(&mut hints).await;
    // Not what the old connection brings late, but a subscription anew.
    let end = Instant::now() + PATIENCE;
    while listener.counts().subscribed < 2 {
        assert!(Instant::now() < end, "it never asked");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_that_could_not_be_published_is_owed_once() {
    let redis = PrivateRedis::start(RedisKind::Redis, &[]).unwrap();
    let relay = Relay::start(redis.address()).unwrap();
    let (publisher, listener) = (at(format!("redis://{}", relay.address())), at(redis.url()));
    comes_back(&publisher, &Key::new("test", "a")).await;
    let mut hints = listening(&listener, Channel::CHANGES).await;
    relay.refuse_new(true);
    relay.cut(Cut::Reset);
    let changes = publisher.publisher(Channel::CHANGES);
    for _ in 0..100 {
        changes.notify();
        sleep(Duration::from_millis(5)).await;
    }
    assert!(
        timeout(Duration::from_millis(100), hints.heard()).await.is_err(),
        "heard through a path that is cut"
    );
    let before = listener.counts().hints;
    relay.refuse_new(false);
    heard(&mut hints).await;
    quiet(&mut hints).await;
    let came = listener.counts().hints - before;
    assert!((1..=2).contains(&came), "{came} hints for one that is owed and those that came meanwhile");
}
