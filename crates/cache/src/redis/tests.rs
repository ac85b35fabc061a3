//! Against real servers: one, and a Cluster of three. What is asserted is what a caller sees.

mod cluster;
mod faults;
mod single;
mod spread;
mod tls;

use std::time::Duration;

use drill::redis::RedisKind;
use tokio::time::{Instant, sleep, timeout};
use trust::NetworkId;

use crate::{Cache, CacheConfig, CacheError, Channel, Hints, Key};

const NETWORK: NetworkId = NetworkId([9; 32]);

/// Room for a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(20);

/// The deadline of calls in these tests.
const DEADLINE: Duration = Duration::from_millis(250);

/// A call that has failed by its deadline has done so by then, on a busy machine too.
const SLACK: Duration = Duration::from_millis(750);

/// For what nothing should wait for.
const MINUTE: Duration = Duration::from_secs(60);

fn open(config: &CacheConfig) -> Cache {
    config.open(NETWORK).unwrap()
}

fn at(url: impl Into<String>) -> Cache {
    open(&CacheConfig { check_ms: 2_000, ..CacheConfig::at(url) })
}

fn cluster_at(url: impl Into<String>) -> Cache {
    open(&CacheConfig { cluster: true, check_ms: 600_000, ..CacheConfig::at(url) })
}

/// Until the cache answers.
async fn comes_back(cache: &Cache, key: &Key) {
    let end = Instant::now() + PATIENCE;
    while let Err(error) = cache.get(key).await {
        assert!(Instant::now() < end, "still {error}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// The next hint, within the patience of a test.
async fn heard(hints: &mut Hints) {
    timeout(PATIENCE, hints.heard()).await.expect("no hint came");
}

/// Takes what hints there are, until none comes for a while.
async fn quiet(hints: &mut Hints) {
    while timeout(Duration::from_millis(400), hints.heard()).await.is_ok() {}
}

/// A subscription that stands: its first hint is there at once, the second says that the server has confirmed it.
async fn listening(cache: &Cache, channel: Channel) -> Hints {
    let mut hints = cache.subscribe(channel).unwrap();
    let end = Instant::now() + PATIENCE;
    while cache.counts().subscribed == 0 {
        assert!(Instant::now() < end, "never subscribed");
        sleep(Duration::from_millis(10)).await;
    }
    quiet(&mut hints).await;
    hints
}

/// Publishes until it is accepted.
async fn publish(cache: &Cache, channel: Channel) {
    let end = Instant::now() + PATIENCE;
    while let Err(error) = cache.publish(channel).await {
        assert!(Instant::now() < end, "still {error}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// How long a call took to fail.
async fn fails(cache: &Cache, key: &Key) -> (CacheError, Duration) {
    let began = Instant::now();
    let error = cache.get(key).await.unwrap_err();
    (error, began.elapsed())
}
