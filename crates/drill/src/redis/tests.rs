//! That a private server is what it says.

use super::*;

#[test]
fn a_server_keeps_values_until_it_is_killed_and_comes_back_empty_on_its_port() {
    let mut redis = PrivateRedis::start(RedisKind::Redis, &["--requirepass", "secret"]).unwrap();
    redis.command(&["SET", "a", "1"]).unwrap();
    assert_eq!(redis.command(&["GET", "a"]).unwrap(), "1");
    let port = redis.port();
    redis.kill().unwrap();
    assert!(redis.command(&["GET", "a"]).is_err());
    redis.start_again().unwrap();
    assert_eq!((redis.command(&["GET", "a"]).unwrap(), redis.port()), (String::new(), port));
}

#[test]
fn a_slot_moves_with_its_keys() {
    let cluster = RedisCluster::start(RedisKind::Redis, 3).unwrap();
    let slot: u16 = cluster.node(0).command(&["CLUSTER", "KEYSLOT", "foo"]).unwrap().parse().unwrap();
    let from = cluster.owner(slot).unwrap();
    cluster.node(from).command(&["SET", "foo", "bar"]).unwrap();
    let to = (from + 1) % 3;
    cluster.move_slot(slot, to).unwrap();
    assert_eq!(cluster.owner(slot).unwrap(), to);
    assert_eq!(cluster.node(to).command(&["GET", "foo"]).unwrap(), "bar");
    assert!(cluster.node(from).command(&["GET", "foo"]).is_err());
}
