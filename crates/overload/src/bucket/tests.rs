use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Moment {
    Moment::from_micros(millis * 1_000)
}

#[test]
fn a_quiet_time_saves_up_a_burst_and_no_more() {
    let mut bucket = TokenBucket::per_second(10, 3);
    assert_eq!(bucket.available(ms(0)), 3);
    bucket.spend(ms(0), 3);
    assert_eq!(bucket.available(ms(99)), 0);
    assert_eq!(bucket.available(ms(100)), 1);
    assert_eq!(bucket.available(ms(3_600_000)), 3);
}

#[test]
fn the_next_token_comes_at_the_moment_announced_and_not_before() {
    let mut bucket = TokenBucket::per_second(3, 1);
    assert!(bucket.take(ms(5)));
    let next = bucket.next_at(ms(5));
    assert_eq!(next.as_micros(), 5_000 + 333_334);
    assert!(!bucket.take(next - Duration::from_micros(1)));
    assert!(bucket.take(next));
    assert_eq!(TokenBucket::per_second(3, 1).next_at(ms(7)), ms(7), "one is there already");
}

#[test]
fn asking_often_loses_no_fraction() {
    let mut bucket = TokenBucket::per_second(300, 1);
    let taken = (0..1_000_000).step_by(7).filter(|micros| bucket.take(Moment::from_micros(*micros))).count();
    assert!((299..=301).contains(&taken), "{taken}");
}

#[test]
fn a_rate_of_zero_is_no_limit() {
    let mut bucket = TokenBucket::per_second(0, 1);
    bucket.spend(ms(0), 1_000_000);
    assert_eq!(bucket.available(ms(0)), usize::MAX);
    assert!(bucket.take(ms(0)));
    assert_eq!(bucket.next_at(ms(4)), ms(4));
}

#[test]
fn a_burst_of_zero_lets_one_through() {
    let mut bucket = TokenBucket::per_second(1, 0);
    assert!(bucket.take(ms(0)));
    assert!(!bucket.take(ms(999)));
    assert!(bucket.take(ms(1_000)));
}

#[test]
fn a_new_rate_takes_effect_at_once_and_keeps_what_was_saved_up() {
    let mut bucket = TokenBucket::per_second(10, 5);
    bucket.spend(ms(0), 5);
    bucket.set_rate(ms(200), 100, 50);
    assert_eq!(bucket.available(ms(200)), 2);
    assert_eq!(bucket.available(ms(210)), 3);
    bucket.set_rate(ms(10_000), 100, 1);
    assert_eq!(bucket.available(ms(10_000)), 1);
    bucket.set_rate(ms(10_000), 0, 1);
    assert_eq!(bucket.available(ms(10_000)), usize::MAX);
    bucket.set_rate(ms(10_000), 10, 4);
    assert_eq!(bucket.available(ms(10_000)), 4);
}

#[test]
fn a_clock_that_steps_back_gives_nothing_away() {
    let mut bucket = TokenBucket::per_second(10, 1);
    assert!(bucket.take(ms(1_000)));
    assert!(!bucket.take(ms(500)));
    assert!(!bucket.take(ms(1_099)));
    assert!(bucket.take(ms(1_100)));
    bucket.spend(ms(900), 1);
    assert!(!bucket.take(ms(1_199)));
}

#[test]
fn extreme_settings_do_not_overflow() {
    let mut bucket = TokenBucket::new(u32::MAX, Duration::MAX, u32::MAX);
    bucket.spend(Moment::from_micros(u64::MAX), usize::MAX);
    assert_eq!(bucket.available(Moment::from_micros(u64::MAX)), 0);
    assert!(bucket.next_at(Moment::from_micros(u64::MAX)) == Moment::from_micros(u64::MAX));
    assert!(TokenBucket::new(1, Duration::ZERO, 1).take(ms(0)));
}

#[test]
fn held_back_events_are_counted_until_the_next_that_passes() {
    let mut log = RateLimited::new(TokenBucket::new(1, Duration::from_secs(10), 2));
    assert_eq!(log.allow(ms(0)), Some(0));
    assert_eq!(log.allow(ms(0)), Some(0));
    assert_eq!(log.allow(ms(1)), None);
    assert_eq!(log.allow(ms(9_999)), None);
    assert_eq!(log.suppressed(), 2);
    assert_eq!(log.allow(ms(10_000)), Some(2));
    assert_eq!(log.suppressed(), 0);
    assert_eq!(log.allow(ms(20_000)), Some(0));
}

proptest! {
    #[test]
    fn no_interval_passes_more_than_its_rate_and_one_burst(
        rate in 1_u32..1_000,
        burst in 1_u32..100,
        gaps in prop::collection::vec(0_u64..20_000, 1..300),
    ) {
        let mut bucket = TokenBucket::per_second(rate, burst);
        let mut now = Moment::ORIGIN;
        let mut taken = 0_u64;
        for gap in gaps {
            now = now + Duration::from_micros(gap);
            while bucket.take(now) {
                taken += 1;
            }
            let most = u64::from(burst) + now.as_micros() * u64::from(rate) / 1_000_000;
            prop_assert!(taken <= most);
        }
    }
}
