use proptest::prelude::*;

use super::*;

const FIRST: Duration = Duration::from_millis(50);
const GREATEST: Duration = Duration::from_secs(1);

#[test]
fn waits_double_up_to_the_greatest() {
    let mut backoff = Backoff::new();
    let waits: Vec<u128> = (0..7).map(|_| backoff.failed(FIRST, GREATEST, 0).as_millis()).collect();
    assert_eq!(waits, [50, 100, 200, 400, 800, 1_000, 1_000]);
    assert_eq!(backoff.failures(), 7);
}

#[test]
fn a_success_starts_over() {
    let mut backoff = Backoff::new();
    backoff.failed(FIRST, GREATEST, 0);
    backoff.failed(FIRST, GREATEST, 0);
    backoff.reset();
    assert_eq!(backoff.failed(FIRST, GREATEST, 0), FIRST);
}

#[test]
fn jitter_spreads_those_who_have_reached_the_greatest_wait() {
    let mut backoff = Backoff { failures: 30 };
    let least = backoff.failed(FIRST, GREATEST, u64::MAX);
    let middle = backoff.failed(FIRST, GREATEST, u64::MAX / 2);
    let most = backoff.failed(FIRST, GREATEST, 0);
    assert_eq!(most, GREATEST);
    assert!(least < middle && middle < most, "{least:?} {middle:?} {most:?}");
    assert!(least >= GREATEST - GREATEST / JITTER_SHARE);
    assert!(least <= GREATEST / JITTER_SHARE + Duration::from_micros(1));
}

#[test]
fn failures_without_end_do_not_overflow() {
    let mut backoff = Backoff { failures: u32::MAX };
    assert_eq!(backoff.failed(FIRST, GREATEST, 0), GREATEST);
    assert_eq!(backoff.failed(Duration::MAX, Duration::MAX, 0), Duration::MAX);
    assert_eq!(backoff.failures(), u32::MAX);
}

proptest! {
    #[test]
    fn a_wait_lies_between_half_of_the_step_and_the_greatest(failures in 0_u32..100, jitter: u64) {
        let mut backoff = Backoff { failures };
        let wait = backoff.failed(FIRST, GREATEST, jitter);
        let step = FIRST.saturating_mul(1 << failures.min(20)).min(GREATEST);
        prop_assert!(wait <= step);
        prop_assert!(wait >= step - step / JITTER_SHARE);
    }
}
