//! Three primaries: slots that move under an idle listener, nodes that stop and die.

use super::*;
use crate::names::{Class, Names};
use crate::slot::slot_of;
use drill::redis::RedisCluster;

fn channel_slot() -> u16 {
    slot_of(Names::new(NETWORK).channel(Channel::CHANGES).as_bytes())
}

fn slot(key: &Key) -> u16 {
    slot_of(Names::new(NETWORK).key(Class::Value, key).as_bytes())
}

fn url(cluster: &RedisCluster, node: usize) -> String {
    cluster.node(node).url()
}

/// A key of each node.
fn key_of(cluster: &RedisCluster, node: usize) -> Key {
    (0..)
        .map(|number| Key::new("test", &format!("k{number}")))
        .find(|key| cluster.owner(slot(key)).unwrap() == node)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_under_an_idle_listener_takes_its_hints_along() {
    for kind in RedisKind::installed() {
        let cluster = RedisCluster::start(kind, 3).unwrap();
        // The listener sends nothing by itself: its check is ten minutes away.
        let (listener, publisher) = (cluster_at(url(&cluster, 0)), cluster_at(url(&cluster, 1)));
        let mut hints = listening(&listener, Channel::CHANGES).await;
        for round in 1..=3 {
            let from = cluster.owner(channel_slot()).unwrap();
            cluster.move_slot(channel_slot(), (from + 1) % 3).unwrap();
            // Told to read at once, since something may have been said between the two subscriptions.
            heard(&mut hints).await;
            let counts = listener.counts();
            assert!(counts.moved >= round && counts.subscribed > round, "{counts:?}");
            quiet(&mut hints).await;
            publish(&publisher, Channel::CHANGES).await;
            heard(&mut hints).await;
            quiet(&mut hints).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_and_this_house_agree_on_slots() {
    let cluster = RedisCluster::start(RedisKind::Redis, 2).unwrap();
    for name in ["a", "{a}b", "x{}y", "a{{b}c}", "ü", "holdfast:AB:hint:changes"] {
        let said: u16 = cluster.node(0).command(&["CLUSTER", "KEYSLOT", name]).unwrap().parse().unwrap();
        assert_eq!(slot_of(name.as_bytes()), said, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_follow_their_slot_also_while_it_is_on_its_way() {
    let cluster = RedisCluster::start(RedisKind::Redis, 3).unwrap();
    let cache = cluster_at(url(&cluster, 2));
    let keys: Vec<Key> = (0..3).map(|node| key_of(&cluster, node)).collect();
    for (value, key) in keys.iter().enumerate() {
        cache.put(key, &[u8::try_from(value).unwrap()], MINUTE).await.unwrap();
    }
    let moving = slot(&keys[0]);
    // Half way: the key is at the new owner already, the slot still at the old one (ASK).
    let names = [0, 1].map(|node| cluster.node(node).command(&["CLUSTER", "MYID"]).unwrap());
    let number = moving.to_string();
    cluster.node(1).command(&["CLUSTER", "SETSLOT", &number, "IMPORTING", &names[0]]).unwrap();
    cluster.node(0).command(&["CLUSTER", "SETSLOT", &number, "MIGRATING", &names[1]]).unwrap();
    let name = Names::new(NETWORK).key(Class::Value, &keys[0]);
    let port = cluster.node(1).port().to_string();
    cluster.node(0).command(&["MIGRATE", "127.0.0.1", &port, &name, "0", "5000"]).unwrap();
    assert_eq!(cache.get(&keys[0]).await.unwrap().as_deref(), Some(&[0][..]), "asked for half way");
    cluster.node(1).command(&["CLUSTER", "SETSLOT", &number, "STABLE"]).unwrap();
    cluster.node(0).command(&["CLUSTER", "SETSLOT", &number, "STABLE"]).unwrap();
    cluster.move_slot(moving, 1).unwrap();
    cache.put(&keys[0], b"new", MINUTE).await.unwrap();
    assert_eq!(cache.get(&keys[0]).await.unwrap().as_deref(), Some(&b"new"[..]));
    for (value, key) in keys.iter().enumerate().skip(1) {
        assert_eq!(cache.get(key).await.unwrap(), Some(vec![u8::try_from(value).unwrap()]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_node_takes_only_its_own_slots_with_it() {
    let mut cluster = RedisCluster::start(RedisKind::Redis, 3).unwrap();
    let cache = open(&CacheConfig { cluster: true, in_flight: 8, ..CacheConfig::at(url(&cluster, 0)) });
    let keys: Vec<Key> = (0..3).map(|node| key_of(&cluster, node)).collect();
    for key in &keys {
        cache.put(key, b"x", MINUTE).await.unwrap();
    }
    cluster.node_mut(1).pause().unwrap();
    let (_, took) = fails(&cache, &keys[1]).await;
    assert!(took < DEADLINE + SLACK, "{took:?}");
    // One after the other, so that each is answered or not on its own.
    for _ in 0..5 {
        for key in [&keys[0], &keys[2]] {
            assert!(cache.get(key).await.is_ok(), "a node that is well was taken along");
        }
        let (_, took) = fails(&cache, &keys[1]).await;
        assert!(took < DEADLINE + SLACK, "{took:?}");
    }
    let began = Instant::now();
    for _ in 0..50 {
        let _ = cache.get(&keys[1]).await.unwrap_err();
    }
    assert!(began.elapsed() < SLACK, "the circuit is not open: {:?}", began.elapsed());
    cluster.node_mut(1).resume().unwrap();
    comes_back(&cache, &keys[1]).await;
    cluster.node_mut(1).kill().unwrap();
    fails(&cache, &keys[1]).await;
    assert!(cache.get(&keys[0]).await.is_ok());
    cluster.node_mut(1).start_again().unwrap();
    comes_back(&cache, &keys[1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_whose_node_dies_hears_again_when_its_slot_has_an_owner() {
    let mut cluster = RedisCluster::start(RedisKind::Redis, 3).unwrap();
    let from = cluster.owner(channel_slot()).unwrap();
    let to = (from + 1) % 3;
    let cache = cluster_at(url(&cluster, to));
    let mut hints = listening(&cache, Channel::CHANGES).await;
    cluster.node_mut(from).kill().unwrap();
    sleep(Duration::from_millis(300)).await;
    assert!(cache.publish(Channel::CHANGES).await.is_err());
    // An operator gives the slot to another.
    let (slot, name) = (channel_slot().to_string(), cluster.node(to).command(&["CLUSTER", "MYID"]).unwrap());
    for node in [to, (to + 1) % 3] {
        cluster.node(node).command(&["CLUSTER", "SETSLOT", &slot, "NODE", &name]).unwrap();
    }
    heard(&mut hints).await;
    quiet(&mut hints).await;
    publish(&cache, Channel::CHANGES).await;
    heard(&mut hints).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_at_a_node_that_became_a_replica_of_another_is_found_by_the_check() {
    let mut cluster = RedisCluster::start(RedisKind::Redis, 3).unwrap();
    let from = cluster.owner(channel_slot()).unwrap();
    let replica = cluster.add_replica(from).unwrap();
    let config =
        CacheConfig { cluster: true, check_ms: 1_000, ..CacheConfig::at(url(&cluster, (from + 1) % 3)) };
    let (listener, publisher) = (open(&config), cluster_at(url(&cluster, (from + 2) % 3)));
    let mut hints = listening(&listener, Channel::CHANGES).await;
    cluster.fail_over(replica).unwrap();
    quiet(&mut hints).await;
    publish(&publisher, Channel::CHANGES).await;
    heard(&mut hints).await;
    // Where it listened, nothing of this slot arrives any more.
    cluster.follow(from, (from + 1) % 3).unwrap();
    sleep(Duration::from_secs(2)).await;
    quiet(&mut hints).await;
    publish(&publisher, Channel::CHANGES).await;
    heard(&mut hints).await;
    let listens = cluster.node(from).command(&["PUBSUB", "SHARDCHANNELS"]).unwrap();
    assert_eq!(listens, "", "still at the old node");
}
