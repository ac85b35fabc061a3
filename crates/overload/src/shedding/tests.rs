use super::*;
use crate::patience::PatienceSource;

fn at(ms: u64) -> Moment {
    Moment::from_micros(ms * 1_000)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn declared(limit: u64) -> Option<Patience> {
    Some(Patience::new(ms(limit), PatienceSource::Declared))
}

fn learnt(limit: u64) -> Option<Patience> {
    Some(Patience::new(ms(limit), PatienceSource::Learnt))
}

/// Ten servers that need 100 ms each: one becomes free every 10 ms.
fn measured() -> Shedding {
    let mut shedding = Shedding::default();
    shedding.began(at(0));
    for step in 1..=100 {
        shedding.freed(10, Some(ms(100)), at(step * 10));
    }
    assert_eq!(shedding.pace().service(), Some(ms(100)));
    shedding
}

#[test]
fn a_predicted_wait_beyond_the_patience_is_refused_and_one_at_it_is_not() {
    let shedding = measured();
    // Ninety ahead: 910 ms for the wait, and 100 ms of service.
    assert_eq!(shedding.judge(declared(1_010), 90, 10, at(1_000)), Verdict::Wait(Some(at(1_910))));
    assert_eq!(shedding.judge(declared(1_009), 90, 10, at(1_000)), Verdict::Shed(ShedCause::Predicted));
    assert_eq!(shedding.judge(learnt(1_009), 90, 10, at(1_000)), Verdict::Shed(ShedCause::Predicted));
}

#[test]
fn whose_patience_is_unknown_is_never_refused() {
    let mut shedding = measured();
    assert_eq!(shedding.judge(None, 1_000_000, 1, at(2_000)), Verdict::Wait(None));
    shedding.observe(at(0), declared(100), at(2_000));
    assert!(shedding.observe(at(0), declared(100), at(3_000)));
    assert_eq!(shedding.look(None, at(0), at(1_000_000)), Verdict::Wait(None));
}

#[test]
fn without_a_measurement_nothing_is_predicted() {
    let shedding = Shedding::default();
    assert_eq!(shedding.judge(declared(100), 1_000_000, 1, at(0)), Verdict::Wait(Some(at(100))));
}

#[test]
fn a_certain_patience_is_a_deadline_that_leaves_time_for_the_service() {
    let shedding = measured();
    assert_eq!(shedding.look(declared(1_000), at(0), at(899)), Verdict::Wait(Some(at(900))));
    assert_eq!(shedding.look(declared(1_000), at(0), at(900)), Verdict::Shed(ShedCause::Deadline));
    assert_eq!(
        shedding.look(declared(60), at(0), at(29)),
        Verdict::Wait(Some(at(30))),
        "half of it at least"
    );
    assert_eq!(shedding.look(learnt(1_000), at(0), at(5_000)), Verdict::Wait(None), "a guess is none");
}

#[test]
fn the_line_stands_after_an_interval_above_the_target_and_not_before() {
    let mut shedding = Shedding::default();
    assert!(!shedding.observe(at(0), declared(1_000), at(101)));
    assert!(!shedding.observe(at(1_000), declared(1_000), at(1_100)), "one wait at its target ends it");
    assert!(!shedding.observe(at(1_000), declared(1_000), at(1_101)));
    assert!(!shedding.observe(at(500), None, at(1_150)), "others do not count");
    assert!(!shedding.observe(at(2_000), declared(1_000), at(2_100)), "and again");
    assert!(!shedding.observe(at(2_000), declared(1_000), at(2_200)));
    assert!(!shedding.observe(at(3_000), declared(1_000), at(3_199)));
    assert_eq!(shedding.overloaded_since(), None);
    assert!(shedding.observe(at(3_000), declared(1_000), at(3_200)));
    assert_eq!(shedding.overloaded_since(), Some(at(3_200)));
    assert!(!shedding.observe(at(3_000), declared(1_000), at(3_300)), "it has come to stand once");
}

#[test]
fn while_it_stands_each_waits_for_its_target_alone() {
    let mut shedding = Shedding::default();
    shedding.observe(at(0), declared(1_000), at(1_000));
    assert!(shedding.observe(at(1_000), declared(1_000), at(2_000)));
    assert_eq!(shedding.judge(declared(1_000), 500, 10, at(2_000)), Verdict::Wait(Some(at(2_100))));
    assert_eq!(shedding.look(learnt(1_000), at(2_000), at(2_099)), Verdict::Wait(Some(at(2_100))));
    assert_eq!(shedding.look(learnt(1_000), at(2_000), at(2_100)), Verdict::Shed(ShedCause::Standing));
    shedding.relaxed();
    assert!(shedding.is_relaxed());
    assert_eq!(shedding.look(learnt(1_000), at(2_000), at(2_100)), Verdict::Wait(None));
}

#[test]
fn the_target_leaves_a_line_for_servers_that_become_free_together() {
    let mut shedding = measured();
    shedding.observe(at(0), declared(1_000), at(1_000));
    assert!(shedding.observe(at(1_000), declared(1_000), at(2_000)));
    assert_eq!(shedding.look(declared(1_000), at(2_000), at(2_199)), Verdict::Wait(Some(at(2_200))));
    assert_eq!(shedding.look(declared(1_000), at(2_000), at(2_200)), Verdict::Shed(ShedCause::Standing));
    assert_eq!(shedding.look(declared(200), at(2_000), at(2_100)), Verdict::Shed(ShedCause::Standing));
    assert_eq!(shedding.look(declared(5_000), at(2_000), at(2_499)), Verdict::Wait(Some(at(2_500))));
}

#[test]
fn the_time_to_come_again_stays_within_bounds_and_is_not_the_same_for_all() {
    let shedding = measured();
    let of = |ahead, jitter| shedding.retry_after(declared(1_000).unwrap(), ahead, 10, at(1_000), jitter);
    assert_eq!(of(99, 0), ms(1_000));
    assert_eq!(of(99, 512), ms(1_500));
    assert_eq!(of(0, 0), LEAST_RETRY);
    assert_eq!(of(usize::MAX, 0), GREATEST_RETRY);
    assert!(of(usize::MAX, u64::MAX) <= GREATEST_RETRY * 2);
}

#[test]
fn a_line_that_is_being_worked_off_does_not_stand() {
    let mut shedding = Shedding::default();
    // After a stall of a second it becomes a quarter shorter within each interval.
    for step in 0..40 {
        let wait = ms(1_000 - step * 22);
        let now = at(10_000 + step * 80);
        assert!(!shedding.observe(now - wait, declared(1_000), now), "{wait:?}");
    }
    let mut stands = false;
    for step in 0..40 {
        let now = at(20_000 + step * 80);
        stands |= shedding.observe(now - ms(1_000 - step * 2), declared(1_000), now);
    }
    assert!(stands, "and one that hardly moves does");
}

#[test]
fn a_lane_that_gets_few_of_the_servers_waits_for_longer_and_is_served_as_fast() {
    let mut shedding = Shedding::default();
    shedding.began(at(0));
    // Every tenth of the servers that become free, one each 10 ms.
    for step in 1..=20 {
        shedding.freed(10, Some(ms(100)), at(step * 100));
    }
    // Eight ahead: 900 ms, and 100 ms of service.
    assert_eq!(shedding.judge(declared(999), 8, 10, at(2_000)), Verdict::Shed(ShedCause::Predicted));
    assert_eq!(shedding.judge(declared(1_000), 8, 10, at(2_000)), Verdict::Wait(Some(at(2_900))));
}
