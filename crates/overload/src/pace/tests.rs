use super::*;

fn at(ms: u64) -> Moment {
    Moment::from_micros(ms * 1_000)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Twenty servers in step, each 50 ms a piece, from `from_ms` to `to_ms`.
fn run(pace: &mut Pace, from_ms: u64, to_ms: u64) {
    for step in (from_ms..to_ms).step_by(50).skip(1) {
        for _ in 0..20 {
            pace.freed(20, at(step));
        }
    }
}

fn is_about(found: Duration, expected: Duration) -> bool {
    found > expected * 8 / 10 && found < expected * 12 / 10
}

#[test]
fn the_time_of_service_comes_out_of_the_rate_of_servers_that_become_free() {
    let mut pace = Pace::default();
    assert_eq!(pace.predicted_wait(100, 20, at(0)), None, "nothing is known");
    pace.began(at(0));
    run(&mut pace, 0, 2_000);
    let service = pace.service().unwrap();
    assert!(is_about(service, ms(50)), "{service:?}");
    let wait = pace.predicted_wait(399, 20, at(1_950)).unwrap();
    assert!(is_about(wait, ms(1_000)), "{wait:?}");
    let wait = pace.predicted_wait(399, 10, at(1_950)).unwrap();
    assert!(is_about(wait, ms(2_000)), "half of the servers take twice as long: {wait:?}");
}

#[test]
fn time_in_which_nobody_waits_does_not_count() {
    let mut pace = Pace::default();
    for second in 0..50 {
        pace.began(at(second * 1_000));
        for step in 1..=5 {
            pace.freed(20, at(second * 1_000) + Duration::from_micros(step * 2_500));
        }
    }
    let service = pace.service().unwrap();
    assert!(is_about(service, ms(50)), "{service:?}");
}

#[test]
fn a_stall_is_no_pace() {
    let mut pace = Pace::default();
    pace.began(at(0));
    run(&mut pace, 0, 1_000);
    pace.freed(20, at(31_000));
    run(&mut pace, 31_000, 31_500);
    let service = pace.service().unwrap();
    assert!(is_about(service, ms(50)), "{service:?}");
    let mut fresh = Pace::default();
    fresh.began(at(0));
    fresh.freed(20, at(30_000));
    run(&mut fresh, 30_000, 31_000);
    let service = fresh.service().unwrap();
    assert!(is_about(service, ms(50)), "nor when nothing was known before: {service:?}");
}

#[test]
fn silence_is_expected_to_last_as_long_again() {
    let mut pace = Pace::default();
    pace.began(at(0));
    run(&mut pace, 0, 1_000);
    let before = pace.predicted_wait(10, 20, at(950)).unwrap();
    let silent = pace.predicted_wait(10, 20, at(1_950)).unwrap();
    assert_eq!(silent, before + ms(1_000));
    assert!(pace.predicted_wait(0, 20, at(60_000)).unwrap() < ms(10), "nobody waits: nobody is silent");
}

#[test]
fn a_change_of_pace_is_followed_within_seconds() {
    let mut pace = Pace::default();
    pace.began(at(0));
    run(&mut pace, 0, 1_000);
    // Ten times as slow from now on: two servers in a hundred milliseconds each.
    for step in 1..=200 {
        pace.freed(20, at(1_000) + ms(25) * step);
    }
    let service = pace.service().unwrap();
    assert!(is_about(service, ms(500)), "{service:?}");
}

#[test]
fn numbers_of_any_size_do_not_overflow() {
    let mut pace = Pace::default();
    pace.began(at(0));
    pace.freed(usize::MAX, at(1_000));
    pace.freed(0, Moment::from_micros(u64::MAX));
    let _ = pace.predicted_wait(usize::MAX, 0, Moment::from_micros(u64::MAX));
}
