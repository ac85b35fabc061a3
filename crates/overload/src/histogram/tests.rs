use super::*;

fn only_bucket(micros: u64) -> Option<u64> {
    let mut histogram = LatencyHistogram::new();
    histogram.record(Duration::from_micros(micros));
    let full: Vec<(Option<u64>, u64)> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
    assert_eq!(full.len(), 1);
    assert_eq!(full[0].1, 1);
    full[0].0
}

#[test]
fn every_bound_belongs_to_its_bucket_and_one_more_to_the_next() {
    for (at, bound) in BOUNDS_US.into_iter().enumerate() {
        assert_eq!(only_bucket(bound), Some(bound));
        assert_eq!(only_bucket(bound + 1), BOUNDS_US.get(at + 1).copied());
    }
    assert_eq!(only_bucket(0), Some(100));
    assert_eq!(only_bucket(u64::MAX), None);
}

#[test]
fn bounds_rise_from_a_tenth_of_a_millisecond_to_two_hundred_seconds() {
    assert!(BOUNDS_US.is_sorted_by(|low, high| low < high));
    assert_eq!((BOUNDS_US[0], BOUNDS_US[BOUNDS_US.len() - 1]), (100, 200_000_000));
}

#[test]
fn count_and_sum_follow_what_was_recorded() {
    let mut histogram = LatencyHistogram::new();
    histogram.record(Duration::from_micros(150));
    histogram.record(Duration::from_micros(7));
    assert_eq!((histogram.count(), histogram.sum_us()), (2, 157));
    assert_eq!(histogram.buckets().len(), BOUNDS_US.len() + 1);
    let mut both = histogram;
    both.add(&histogram);
    assert_eq!((both.count(), both.sum_us()), (4, 314));
    assert_eq!(both.buckets().next(), Some((Some(100), 2)));
}

#[test]
fn nothing_ever_falls_or_wraps() {
    let mut histogram = LatencyHistogram::new();
    histogram.record(Duration::MAX);
    histogram.record(Duration::MAX);
    assert_eq!((histogram.count(), histogram.sum_us()), (2, u64::MAX));
    let mut full =
        LatencyHistogram { counts: [u64::MAX; BOUNDS_US.len() + 1], count: u64::MAX, sum_us: u64::MAX };
    full.record(Duration::from_micros(1));
    full.add(&histogram);
    assert_eq!((full.count(), full.sum_us()), (u64::MAX, u64::MAX));
    assert!(full.buckets().all(|(_, count)| count == u64::MAX));
}

#[test]
fn a_histogram_stays_small() {
    assert!(size_of::<LatencyHistogram>() <= 256);
}
