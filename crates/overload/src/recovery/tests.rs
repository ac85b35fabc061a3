use super::*;
use crate::Scope;

const NO_JITTER: u64 = 0;

fn ms(millis: u64) -> Moment {
    Moment::from_micros(millis * 1_000)
}

/// Failed at 10 ms with `cause`.
fn failed(cause: Cause) -> Recovery {
    let mut recovery = Recovery::new();
    assert!(recovery.failed(ms(10), ms(0), cause, NO_JITTER));
    recovery
}

#[test]
fn after_a_failure_it_rests_and_then_lets_one_probe_through() {
    let mut recovery = failed(Cause::Refused);
    assert_eq!(recovery.cause(), Some(Cause::Refused));
    assert_eq!(recovery.admits(ms(10)), Admission::RestUntil(ms(60)));
    assert_eq!(recovery.admits(ms(60) - Duration::from_micros(1)), Admission::RestUntil(ms(60)));
    assert_eq!(recovery.admits(ms(60)), Admission::Probe);
    recovery.started(ms(60));
    assert!(matches!(recovery.admits(ms(61)), Admission::RestUntil(_)));
}

#[test]
fn one_success_opens_it_and_the_next_failure_is_a_first_one() {
    let mut recovery = failed(Cause::Refused);
    recovery.started(ms(60));
    recovery.failed(ms(61), ms(60), Cause::Refused, NO_JITTER);
    assert_eq!(recovery.admits(ms(61)), Admission::RestUntil(ms(161)));
    recovery.started(ms(161));
    assert!(recovery.succeeded(ms(170), ms(161)));
    assert_eq!(recovery.admits(ms(170)), Admission::Free);
    assert_eq!(recovery.cause(), None);
    recovery.failed(ms(200), ms(190), Cause::Refused, NO_JITTER);
    assert_eq!(recovery.admits(ms(200)), Admission::RestUntil(ms(250)));
}

#[test]
fn rests_grow_to_the_greatest_wait_of_their_cause() {
    for cause in Cause::ALL {
        let mut recovery = Recovery::new();
        let mut now = ms(0);
        let mut rests = Vec::new();
        for _ in 0..12 {
            recovery.started(now);
            assert!(recovery.failed(now, now, cause, NO_JITTER));
            let Admission::RestUntil(until) = recovery.admits(now) else { panic!("{cause:?} does not rest") };
            rests.push(until.since(now));
            now = until;
        }
        assert_eq!(rests.first(), Some(&cause.first_wait()));
        assert_eq!(rests.last(), Some(&cause.greatest_wait()));
        assert!(rests.is_sorted());
    }
}

#[test]
fn another_cause_starts_with_its_own_first_wait() {
    let mut recovery = failed(Cause::Refused);
    let mut now = ms(60);
    for _ in 0..5 {
        recovery.started(now);
        recovery.failed(now, now, Cause::Refused, NO_JITTER);
        now = now + Cause::Refused.greatest_wait();
    }
    recovery.started(now);
    recovery.failed(now, now, Cause::StartingUp, NO_JITTER);
    assert_eq!(recovery.cause(), Some(Cause::StartingUp));
    assert_eq!(recovery.admits(now), Admission::RestUntil(now + Cause::StartingUp.first_wait()));
}

#[test]
fn a_wave_of_failures_counts_as_one() {
    let mut recovery = failed(Cause::Crashed);
    for _ in 0..63 {
        assert!(!recovery.failed(ms(11), ms(0), Cause::Crashed, NO_JITTER));
    }
    assert_eq!(recovery.admits(ms(11)), Admission::RestUntil(ms(60)));
    recovery.started(ms(60));
    assert!(!recovery.failed(ms(61), ms(0), Cause::Crashed, NO_JITTER), "a straggler is not the probe");
    assert!(recovery.failed(ms(62), ms(60), Cause::Crashed, NO_JITTER));
    assert_eq!(recovery.admits(ms(62)), Admission::RestUntil(ms(162)));
}

#[test]
fn a_stragglers_time_out_does_not_hurt_a_server_that_has_recovered() {
    let mut recovery = failed(Cause::Crashed);
    recovery.started(ms(60));
    recovery.succeeded(ms(70), ms(60));
    assert!(!recovery.failed(ms(15_000), ms(0), Cause::TimedOut, NO_JITTER));
    assert_eq!(recovery.admits(ms(15_000)), Admission::Free);
    assert!(recovery.failed(ms(15_000), ms(70), Cause::TimedOut, NO_JITTER));
}

#[test]
fn a_success_from_before_the_failure_does_not_end_the_rest() {
    let mut recovery = failed(Cause::TooManyConnections { scope: Scope::Server });
    assert!(!recovery.succeeded(ms(12), ms(0)));
    assert!(matches!(recovery.admits(ms(12)), Admission::RestUntil(_)));
}

#[test]
fn a_probe_without_an_answer_holds_back_the_next_for_its_patience_only() {
    let mut recovery = failed(Cause::TimedOut);
    recovery.started(ms(200));
    let patient_until = ms(200) + PROBE_PATIENCE;
    assert_eq!(recovery.admits(ms(201)), Admission::RestUntil(patient_until));
    assert_eq!(recovery.admits(patient_until), Admission::Probe);
    recovery.started(patient_until);
    assert!(!recovery.failed(patient_until, ms(200), Cause::TimedOut, NO_JITTER), "it was given up already");
    assert!(recovery.succeeded(patient_until, ms(200)), "but it may still bring good news");
}

#[test]
fn a_probe_that_was_given_up_makes_room_for_the_next_at_once() {
    let mut recovery = failed(Cause::Refused);
    recovery.started(ms(60));
    recovery.abandoned(ms(61), ms(0));
    assert!(matches!(recovery.admits(ms(61)), Admission::RestUntil(_)), "a straggler is not the probe");
    recovery.abandoned(ms(61), ms(60));
    assert_eq!(recovery.admits(ms(61)), Admission::Probe);
    assert_eq!(recovery.cause(), Some(Cause::Refused));
}

#[test]
fn jitter_shortens_a_rest() {
    let mut recovery = Recovery::new();
    recovery.failed(ms(10), ms(0), Cause::Refused, u64::MAX / 2);
    let Admission::RestUntil(until) = recovery.admits(ms(10)) else { panic!("does not rest") };
    assert!(until > ms(10) + Cause::Refused.first_wait() / 2 && until < ms(10) + Cause::Refused.first_wait());
}
