use super::*;
use crate::options::Stickiness;

const TTL: Duration = Duration::from_secs(600);
const ONE: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

fn key(name: &str) -> SessionKey {
    SessionKey::new("acme", &Session { name: name.into(), ttl: TTL, stickiness: Stickiness::Soft })
}

fn at(seconds: u64) -> Moment {
    Moment::from_micros(1_000_000 * seconds)
}

#[test]
fn a_pin_ends_with_its_life_or_without_use() {
    let mut pins = Pins::new(8);
    pins.opened(&key("x"), ONE, TTL, at(0));
    // A stream that is still there keeps it, however long.
    assert_eq!(pins.find(&key("x"), at(599)), Some(ONE));
    pins.closed(&key("x"), ONE, at(300));
    assert_eq!(pins.find(&key("x"), at(419)), Some(ONE));
    assert_eq!(pins.find(&key("x"), at(420)), None);
    pins.opened(&key("x"), ONE, TTL, at(500));
    assert_eq!(pins.find(&key("x"), at(1_099)), Some(ONE));
    assert_eq!(pins.find(&key("x"), at(1_100)), None, "used all the time, but its life is over");
}

#[test]
fn moving_to_another_provider_does_not_lengthen_its_life() {
    let mut pins = Pins::new(8);
    pins.opened(&key("x"), ONE, TTL, at(0));
    pins.opened(&key("x"), OTHER, TTL, at(500));
    // The end of a stream through the old one means nothing to the new one.
    pins.closed(&key("x"), ONE, at(510));
    assert_eq!(pins.find(&key("x"), at(599)), Some(OTHER));
    assert_eq!(pins.find(&key("x"), at(600)), None);
}

#[test]
fn the_number_of_pins_is_bounded() {
    let mut pins = Pins::new(100);
    for name in 0..1_000 {
        pins.opened(&key(&name.to_string()), ONE, TTL, at(0));
    }
    assert_eq!(pins.len(), 100);
    assert_eq!((pins.find(&key("899"), at(1)), pins.find(&key("999"), at(1))), (None, Some(ONE)));
}

#[test]
fn accounts_and_sessions_are_told_apart() {
    let session = |account: &str, name: &str| {
        let session = Session { name: name.into(), ttl: TTL, stickiness: Stickiness::Soft };
        SessionKey::new(account, &session).hash()
    };
    assert_ne!(session("ab", "c"), session("a", "bc"));
    assert_ne!(weight(session("a", "b"), ONE), weight(session("a", "b"), OTHER));
}
