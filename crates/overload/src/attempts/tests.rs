use super::*;

const LIMITS: AttemptLimits = AttemptLimits { rate_per_second: 10, burst: 5, refusals: 3 };

fn at_ms(millis: u64) -> Moment {
    Moment::from_micros(1_000_000_000 + millis * 1_000)
}

#[test]
fn a_burst_passes_and_then_so_many_a_second_for_each_source() {
    let mut attempts = Attempts::new();
    for _ in 0..5 {
        assert_eq!(attempts.admit(at_ms(0), &"ann", LIMITS), Ok(()));
    }
    let refused = attempts.admit(at_ms(0), &"ann", LIMITS).unwrap_err();
    assert_eq!(refused, AttemptRefusal::TooMany { retry_at: at_ms(100) });
    assert_eq!(attempts.admit(at_ms(0), &"bob", LIMITS), Ok(()), "others are not held up");
    assert!(attempts.admit(at_ms(99), &"ann", LIMITS).is_err());
    assert_eq!(attempts.admit(refused.retry_at(), &"ann", LIMITS), Ok(()), "the hint is true");
}

#[test]
fn ten_thousand_wrong_passwords_are_looked_at_a_handful_of_times() {
    let limits = AttemptLimits { rate_per_second: 0, ..LIMITS };
    let mut attempts = Attempts::new();
    let mut looked_at = 0;
    for attempt in 0..10_000 {
        // A hundred a second, for a hundred seconds.
        let now = at_ms(attempt * 10);
        if attempts.admit(now, &"ann", limits).is_ok() {
            looked_at += 1;
            attempts.refused(now, &"ann", limits, 0);
        }
    }
    // Three at once, then after 1, 2, 4, 8, 16, 32 and 60 s.
    assert_eq!(looked_at, 9);
}

#[test]
fn rests_begin_at_the_limit_and_double_to_the_greatest() {
    let mut attempts = Attempts::new();
    for _ in 0..2 {
        attempts.refused(at_ms(0), &1, LIMITS, 0);
    }
    assert_eq!(attempts.admit(at_ms(0), &1, LIMITS), Ok(()));
    let mut now = at_ms(0);
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        attempts.refused(now, &1, LIMITS, 0);
        let refused = attempts.admit(now, &1, LIMITS).unwrap_err();
        assert_eq!(refused, AttemptRefusal::Refused { retry_at: now + Duration::from_secs(seconds) });
        now = refused.retry_at();
        assert_eq!(attempts.admit(now, &1, LIMITS), Ok(()));
    }
}

#[test]
fn who_gets_in_begins_anew() {
    let mut attempts = Attempts::new();
    for _ in 0..4 {
        attempts.refused(at_ms(0), &1, LIMITS, 0);
    }
    assert!(attempts.admit(at_ms(1), &1, LIMITS).is_err());
    attempts.succeeded(&1);
    assert_eq!(attempts.admit(at_ms(1), &1, LIMITS), Ok(()));
    attempts.refused(at_ms(1), &1, LIMITS, 0);
    assert_eq!(attempts.admit(at_ms(1), &1, LIMITS), Ok(()), "it is the first again");
}

#[test]
fn old_refusals_are_forgotten() {
    let mut attempts = Attempts::new();
    for _ in 0..2 {
        attempts.refused(at_ms(0), &1, LIMITS, 0);
    }
    let later = at_ms(0) + MEMORY;
    attempts.refused(later, &1, LIMITS, 0);
    assert_eq!(attempts.admit(later, &1, LIMITS), Ok(()));
}

#[test]
fn a_limit_of_zero_is_none() {
    let none = AttemptLimits { rate_per_second: 0, burst: 1, refusals: 0 };
    let mut attempts = Attempts::new();
    for _ in 0..1_000 {
        assert_eq!(attempts.admit(at_ms(0), &1, none), Ok(()));
        attempts.refused(at_ms(0), &1, none, 0);
    }
}

#[test]
fn other_limits_take_effect_on_those_who_are_known() {
    let mut attempts = Attempts::new();
    assert_eq!(attempts.admit(at_ms(0), &1, LIMITS), Ok(()));
    let narrow = AttemptLimits { burst: 1, ..LIMITS };
    assert_eq!(attempts.admit(at_ms(0), &1, narrow), Ok(()));
    assert!(attempts.admit(at_ms(0), &1, narrow).is_err());
}

#[test]
fn no_more_sources_are_remembered_than_the_greatest_number_and_the_oldest_goes() {
    let mut attempts = Attempts::new();
    for _ in 0..3 {
        attempts.refused(at_ms(0), &usize::MAX, LIMITS, 0);
    }
    attempts.refused(at_ms(0), &0, LIMITS, 0);
    for source in 1..MAX_SOURCES - 1 {
        assert_eq!(attempts.admit(at_ms(0), &source, LIMITS), Ok(()));
    }
    assert_eq!(attempts.len(), MAX_SOURCES);
    assert!(attempts.admit(at_ms(1), &usize::MAX, LIMITS).is_err(), "who keeps trying is remembered");
    assert_eq!(attempts.admit(at_ms(1), &MAX_SOURCES, LIMITS), Ok(()));
    assert_eq!(attempts.len(), MAX_SOURCES);
    assert!(attempts.sources.peek(&0).is_none(), "the one that has not tried for longest");
    assert!(attempts.sources.peek(&usize::MAX).is_some());
    assert_eq!(attempts.sources.len(), MAX_SOURCES);
}
