use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn times_are_read_as_postgresql_writes_them() {
    for (text, expected) in [
        ("250", ms(250)),
        ("5s", ms(5_000)),
        (" 1.5 s ", ms(1_500)),
        ("2min", ms(120_000)),
        ("1h", ms(3_600_000)),
        ("1d", ms(86_400_000)),
        ("500us", Duration::from_micros(500)),
        ("0", Duration::ZERO),
    ] {
        assert_eq!(postgres_time(text), Some(expected), "{text}");
    }
    for text in ["", "s", "-5", "5 weeks", "5S", "1e3", ".", "1.2.3", "99999999999999d", "NaN", "inf", "5s x"]
    {
        assert_eq!(postgres_time(text), None, "{text}");
    }
}

#[test]
fn the_target_is_a_tenth_and_never_less_than_fifty_milliseconds() {
    let of = |limit| Patience::new(ms(limit), PatienceSource::Declared);
    assert_eq!((of(5_000).target(), of(5_000).interval()), (ms(500), ms(5_000)));
    assert_eq!((of(500).target(), of(500).interval()), (ms(50), ms(500)));
    assert_eq!((of(100).target(), of(100).interval()), (ms(50), ms(500)));
}

#[test]
fn a_patience_fits_into_its_bounds() {
    let of = |limit| Patience::new(limit, PatienceSource::Learnt);
    assert_eq!(of(Duration::MAX).limit(), ms(u64::from(u32::MAX)));
    assert_eq!(of(Duration::ZERO).limit(), ms(1));
}
