use super::*;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn record(at_ms: u64, took_ms: u64, outcome: Outcome) -> Record {
    Record { at: ms(at_ms), late: ms(1), took: ms(took_ms), database: 0, again: false, outcome }
}

/// A request each 100 ms for ten seconds; those meant in `bad` were given up.
fn run(bad: Range<u64>) -> Vec<Record> {
    let outcome = |at| if bad.contains(&at) { Outcome::GaveUp } else { Outcome::Good };
    (0..100).map(|number| number * 100).map(|at| record(at, 50, outcome(at))).collect()
}

#[test]
fn shares_and_rates_are_of_their_span_only() {
    let records = run(2_000..4_000);
    assert_eq!(answered_share(&records, &(ms(0)..ms(2_000))), 1.0);
    assert_eq!(answered_share(&records, &(ms(1_000)..ms(3_000))), 0.5);
    assert_eq!(goodput_per_s(&records, &(ms(0)..ms(2_000))), 10.0);
    assert_eq!(goodput_per_s(&records, &(ms(2_000)..ms(4_000))), 0.0);
}

#[test]
fn latency_counts_from_the_time_that_was_meant_so_a_backlog_is_seen() {
    let records: Vec<Record> =
        (0..100).map(|number| record(number * 10, 1_000 - number * 10, Outcome::Good)).collect();
    assert_eq!(quantile(&records, &(ms(0)..ms(1_000)), 0.99), ms(1_000));
    assert_eq!(goodput_per_s(&records, &(ms(1_000)..ms(1_001))), 100_000.0, "all came at once");
}

#[test]
fn normal_is_from_when_on_every_later_window_is_good() {
    let records = run(2_000..4_000);
    assert_eq!(normal_after(&records, ms(2_000), ms(10_000), 0.95), Some(ms(2_000)));
    assert_eq!(normal_after(&records, ms(5_000), ms(10_000), 0.95), Some(ms(0)));
    assert_eq!(normal_after(&run(2_000..10_000), ms(2_000), ms(10_000), 0.95), None);
    assert_eq!(normal_after(&records, ms(9_500), ms(10_000), 0.95), None, "no window fits");
}

#[test]
fn who_left_on_purpose_has_no_claim_to_an_answer() {
    let mut records = run(0..0);
    records.extend(run(0..0).iter().map(|record| Record { outcome: Outcome::Died, ..*record }));
    assert_eq!(answered_share(&records, &(ms(0)..ms(10_000))), 1.0);
}

#[test]
fn buckets_hold_what_ended_in_them() {
    let buckets =
        buckets(&[record(900, 200, Outcome::Good), record(950, 1_000, Outcome::GaveUp)], ms(500), ms(2_000));
    let seen: Vec<[f64; 3]> = buckets
        .iter()
        .map(|bucket| [bucket.offered_per_s, bucket.good_per_s, bucket.gave_up_per_s])
        .collect();
    assert_eq!(seen, [[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]);
    assert_eq!(buckets[2].p99_ms, 200.0);
}
