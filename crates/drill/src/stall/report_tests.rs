use super::super::load::Counts;
use super::*;

/// 4 s before, 2 s of fault, `after` given.
fn judged(good: &[u64]) -> StallReport {
    let mut options =
        StallOptions::new(std::net::SocketAddr::from(([127, 0, 0, 1], 6432)).into()).into_short();
    options.after = Duration::from_secs(good.len() as u64 - 6);
    let course = Course {
        fault_at: Duration::from_millis(4001),
        healed_at: Duration::from_millis(6002),
        backend_opened: vec![(0, 0), (1, 20), (2, 20), (6, 20), (7, 50)],
    };
    let seconds = good.iter().map(|good| Counts { good: *good, ..Counts::default() }).collect();
    judge(&options, &course, &Record { seconds, ..Record::default() })
}

impl StallOptions {
    fn into_short(mut self) -> Self {
        self.before = Duration::from_secs(4);
        self.fault_for = Duration::from_secs(2);
        self
    }
}

fn series(after: &[u64]) -> Vec<u64> {
    [&[50, 90, 100, 110, 0, 0], after].concat()
}

#[test]
fn a_rate_that_is_back_at_once_recovers_in_second_0() {
    let report = judged(&series(&[100; 20]));
    assert_eq!((report.goodput_before, report.seconds_to_recover, report.stalled), (110, Some(0), false));
    assert_eq!((report.goodput_fault, report.goodput_after_0_10s), (Some(0.0), Some(100.0)));
}

#[test]
fn the_recovered_second_is_the_first_of_a_window_that_reaches_the_share() {
    // 0.7 × 110 × 5 = 385: the window from second 3 holds 400, the one from second 2 holds 300.
    let mut after = vec![0, 0, 0];
    after.extend([80; 20]);
    assert_eq!(judged(&series(&after)).seconds_to_recover, Some(3));
    // A window may begin with an empty second if the others make up for it.
    after = vec![0, 0, 0];
    after.extend([100; 20]);
    assert_eq!(judged(&series(&after)).seconds_to_recover, Some(2));
}

#[test]
fn a_rate_that_stays_below_never_recovers_and_below_a_tenth_is_stalled() {
    let report = judged(&series(&[70; 20]));
    assert_eq!((report.seconds_to_recover, report.stalled), (None, false));
    let report = judged(&series(&[11; 20]));
    assert_eq!((report.seconds_to_recover, report.stalled), (None, false));
    let report = judged(&series(&[10; 20]));
    assert_eq!((report.seconds_to_recover, report.stalled), (None, true));
}

#[test]
fn a_rate_that_comes_back_and_goes_again_is_recovered_and_stalled() {
    let report = judged(&series(&[[110; 10], [0; 10]].concat()));
    assert_eq!((report.seconds_to_recover, report.stalled), (Some(0), true));
}

#[test]
fn a_pooler_that_never_answered_is_stalled_and_never_recovers() {
    let report = judged(&[0; 26]);
    assert_eq!((report.seconds_to_recover, report.stalled), (None, true));
}

#[test]
fn connections_to_the_database_are_counted_in_the_second_they_were_opened_in() {
    let report = judged(&series(&[100; 20]));
    let opens: Vec<u64> = report.seconds.iter().map(|second| second.backend_opens).collect();
    assert_eq!((opens[0], opens[1], opens[6], opens.iter().sum::<u64>()), (20, 0, 30, 50));
}
