use super::*;

const fn at(ms: u64) -> Moment {
    Moment::from_micros(ms * 1_000)
}

#[test]
fn a_fleet_that_comes_at_once_gets_places_and_times_at_the_rate() {
    let mut admission = Admission::new(1_000, 500);
    let (mut admitted, mut waiting, mut last) = (0, 0, Duration::ZERO);
    for _ in 0..5_000 {
        match admission.arrive(at(0)) {
            Verdict::Admit => admitted += 1,
            Verdict::Wait => waiting += 1,
            Verdict::PutOff(wait) => {
                assert!(wait > last, "no two are told the same time");
                last = wait;
            }
        }
    }
    assert_eq!((admitted, waiting), (100, 500));
    assert!(last > Duration::from_millis(4_800) && last < Duration::from_millis(5_200), "{last:?}");
}

#[test]
fn the_line_moves_at_the_rate_and_nobody_overtakes_it() {
    let mut admission = Admission::new(1_000, 10);
    while admission.arrive(at(0)) == Verdict::Admit {}
    assert_eq!(admission.arrive(at(0)), Verdict::Wait);
    let Some(Err(next)) = admission.next(at(0)) else { panic!("the bucket is empty") };
    assert_eq!(admission.arrive(at(5)), Verdict::Wait, "the line goes first");
    assert!(next <= at(1));
    assert_eq!(admission.next(at(5)), Some(Ok(())));
    assert!(admission.skip());
    assert!(admission.skip());
    assert!(!admission.skip(), "two have waited besides the one that was let in");
}

#[test]
fn no_time_is_longer_than_the_greatest() {
    let mut admission = Admission::new(1, 0);
    admission.arrive(at(0));
    for _ in 0..1_000 {
        if let Verdict::PutOff(wait) = admission.arrive(at(0)) {
            assert!(wait <= GREATEST_WAIT);
        }
    }
}
