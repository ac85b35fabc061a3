//! The cache of one process as its callers see it, in paused time.

use std::time::Duration;

use tokio::time::timeout;
use trust::NetworkId;

use crate::{Cache, Channel, Key, MAX_CHANNELS, MemoryLimits};

fn cache() -> Cache {
    Cache::in_process(NetworkId([1; 32]), MemoryLimits::default())
}

#[tokio::test(start_paused = true)]
async fn expiry_follows_the_clock() {
    let cache = cache();
    let key = Key::new("test", "a");
    cache.put(&key, b"x", Duration::from_secs(5)).await.unwrap();
    tokio::time::advance(Duration::from_millis(4_999)).await;
    assert_eq!(cache.get(&key).await.unwrap().as_deref(), Some(&b"x"[..]));
    tokio::time::advance(Duration::from_millis(2)).await;
    assert_eq!(cache.get(&key).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_first_hint_comes_at_once_then_many_are_one_and_none_is_lost_with_a_dropped_wait() {
    let cache = cache();
    let mut hints = cache.subscribe(Channel::CHANGES).unwrap();
    let mut others = cache.subscribe(Channel::POOLS).unwrap();
    hints.heard().await;
    others.heard().await;
    assert!(timeout(Duration::from_secs(60), hints.heard()).await.is_err());
    for _ in 0..1_000 {
        cache.publish(Channel::CHANGES).await.unwrap();
    }
    hints.heard().await;
    assert!(timeout(Duration::from_secs(60), hints.heard()).await.is_err());
    assert!(timeout(Duration::from_secs(60), others.heard()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_publisher_does_not_wait_and_stops_with_its_owner() {
    let cache = cache();
    let mut hints = cache.subscribe(Channel::CHANGES).unwrap();
    hints.heard().await;
    let publisher = cache.publisher(Channel::CHANGES);
    publisher.notify();
    publisher.notify();
    hints.heard().await;
    assert_eq!(cache.counts().hints, 1);
}

#[tokio::test]
async fn channels_are_bounded_and_a_dropped_subscription_makes_room() {
    let names: Vec<&'static str> =
        (0..=MAX_CHANNELS).map(|number| &*Box::leak(number.to_string().into_boxed_str())).collect();
    let cache = cache();
    let mut kept: Vec<_> =
        names[..MAX_CHANNELS].iter().map(|name| cache.subscribe(Channel::new(name)).unwrap()).collect();
    assert!(cache.subscribe(Channel::new(names[MAX_CHANNELS])).is_err());
    kept.pop();
    assert!(cache.subscribe(Channel::new(names[MAX_CHANNELS])).is_ok());
}
