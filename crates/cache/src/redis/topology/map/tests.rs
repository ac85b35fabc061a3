//! What servers answer, and what they should not.

use super::*;

fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
    let node = Value::Array(vec![
        host,
        Value::Int(port),
        Value::BulkString(b"id".to_vec()),
        Value::Array(Vec::new()),
    ]);
    Value::Array(vec![Value::Int(first), Value::Int(last), node])
}

fn text(host: &str) -> Value {
    Value::BulkString(host.as_bytes().to_vec())
}

#[test]
fn every_slot_has_the_owner_that_was_told_and_the_rest_nobody() {
    let answer = Value::Array(vec![
        range(0, 99, text("10.0.0.1"), 7000),
        range(200, 16_383, text("::1"), 7001),
        range(100, 100, text(""), 7002),
    ]);
    let map = SlotMap::read(&answer, "example.net:7009").unwrap();
    assert_eq!(map.owner(0), Some("10.0.0.1:7000"));
    assert_eq!(map.owner(100), Some("example.net:7002"));
    assert_eq!(map.owner(101), None);
    assert_eq!(map.owner(16_383), Some("[::1]:7001"));
}

#[test]
fn what_is_no_map_is_none() {
    for wrong in [
        Value::Nil,
        Value::Array(Vec::new()),
        Value::Array(vec![range(5, 16_384, text("a"), 1)]),
        Value::Array(vec![range(9, 3, text("a"), 1)]),
        Value::Array(vec![range(-1, 3, text("a"), 1)]),
        Value::Array(vec![range(0, 3, text("a"), 70_000)]),
        Value::Array(vec![range(0, 3, Value::Int(1), 7)]),
    ] {
        assert_eq!(SlotMap::read(&wrong, "a:1"), None, "{wrong:?}");
    }
}

#[test]
fn a_moved_slot_is_news_once_and_addresses_are_bounded() {
    let mut map = SlotMap::read(&Value::Array(vec![range(0, 16_383, text("a"), 1)]), "a:1").unwrap();
    assert!(map.moved(7, "b:2"));
    assert!(!map.moved(7, "b:2"));
    assert_eq!((map.owner(7), map.owner(8)), (Some("b:2"), Some("a:1")));
    for number in 0..2 * MAX_ADDRESSES {
        map.moved(9, &format!("n:{number}"));
    }
    assert_eq!(map.addresses.len(), MAX_ADDRESSES);
}
