use super::*;
use proptest::prelude::*;

const fn at(s: u64) -> Moment {
    Moment::from_micros(s * 1_000_000)
}

const PACE: Pace = Pace {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(300),
    stable_after: Duration::from_secs(60),
};

fn comeback() -> Comeback {
    let mut comeback = Comeback::new();
    comeback.set_pace(PACE);
    comeback
}

#[test]
fn waits_double_up_to_the_cap_and_stay_random_there() {
    let mut low = comeback();
    let mut high = comeback();
    for attempt in 0..40_u32 {
        let most = Duration::from_secs(1_u64.checked_shl(attempt).unwrap_or(u64::MAX).min(300));
        assert_eq!(low.ended(None, 0, at(0)), Duration::ZERO);
        let most_us = u64::try_from(most.as_micros()).unwrap();
        assert_eq!(high.ended(None, most_us, at(0)), most, "attempt {attempt}");
    }
}

#[test]
fn a_connection_that_did_not_hold_does_not_reset_the_count() {
    let mut client = comeback();
    client.ended(None, 0, at(0));
    client.ended(None, 0, at(1));
    client.connected(at(2));
    client.ended(None, 0, at(61));
    assert_eq!(client.attempts(), 3);
    client.connected(at(70));
    client.ended(None, 0, at(130));
    assert_eq!(client.attempts(), 1);
}

#[test]
fn a_named_time_is_kept_and_spread() {
    let mut client = comeback();
    assert_eq!(client.ended(Some(Duration::from_secs(60)), 0, at(0)), Duration::from_secs(60));
    assert_eq!(client.ended(Some(Duration::from_secs(60)), 12_000_000, at(0)), Duration::from_secs(72));
    assert!(client.ended(Some(Duration::MAX), u64::MAX, at(0)) <= GREATEST_WAIT + GREATEST_WAIT / 5);
}

#[test]
fn what_is_said_before_tls_is_read_and_bounded() {
    let mut said = Vec::new();
    write_wait(&mut said, 1_234);
    assert_eq!(said, b"holdfast-wait 00001234\n");
    assert_eq!(parse_wait(&said), Some(Duration::from_millis(1_234)));
    assert_eq!(parse_wait(&said[..22]), None);
    said.clear();
    write_wait(&mut said, u32::MAX);
    assert_eq!(parse_wait(&said), Some(Duration::from_secs(300)));
    assert_eq!(parse_wait(b"holdfast-wait +0001234\n"), None);
    assert_eq!(parse_wait(b"\x16\x03\x03 this is a TLS record"), None);
}

proptest! {
    #[test]
    fn no_wait_is_longer_than_the_cap(attempts in 1..60_usize, jitter in any::<u64>()) {
        let mut client = comeback();
        for _ in 0..attempts {
            prop_assert!(client.ended(None, jitter, at(0)) <= PACE.cap);
        }
    }
}
