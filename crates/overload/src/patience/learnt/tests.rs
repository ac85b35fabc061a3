use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// So many departures of caller 1, far enough apart.
fn after(waits: &[u64]) -> (LearntPatience<u32>, Moment) {
    let mut learnt = LearntPatience::default();
    let mut now = Moment::from_micros(1_000_000);
    for &wait in waits {
        now = now + SAMPLE_SPACING;
        learnt.gave_up(&1, ms(wait), now);
    }
    (learnt, now)
}

#[test]
fn nothing_is_known_before_there_are_enough_departures() {
    let (learnt, now) = after(&[5_000; LEAST_SAMPLES - 1]);
    assert_eq!(learnt.patience(&1, now), None);
    let (learnt, now) = after(&[5_000; LEAST_SAMPLES]);
    assert_eq!(learnt.patience(&1, now), Some(ms(5_000)));
    assert_eq!(learnt.patience(&2, now), None, "of others nothing is known");
}

#[test]
fn the_longest_of_the_last_departures_holds() {
    let (learnt, now) = after(&[900, 1_000, 1_100, 900, 900, 900, 900, 900]);
    assert_eq!(learnt.patience(&1, now), Some(ms(1_100)));
    let waits: Vec<u64> = [9_000].into_iter().chain([1_000; SAMPLES]).collect();
    let (learnt, now) = after(&waits);
    assert_eq!(learnt.patience(&1, now), Some(ms(1_000)), "older ones count no more");
}

#[test]
fn a_process_that_ends_with_a_hundred_connections_teaches_nothing() {
    let mut learnt = LearntPatience::default();
    let mut now = Moment::from_micros(1_000_000);
    for wait in 0..100 {
        now = now + Duration::from_micros(100);
        learnt.gave_up(&1, ms(150 + wait), now);
    }
    assert_eq!(learnt.patience(&1, now), None);
}

#[test]
fn who_leaves_at_once_has_not_lost_patience() {
    let (learnt, _) = after(&[99; 40]);
    assert!(learnt.is_empty());
}

#[test]
fn what_was_learnt_is_forgotten_after_a_while() {
    let (mut learnt, now) = after(&[1_000; SAMPLES]);
    assert_eq!(learnt.patience(&1, now + MEMORY), Some(ms(1_000)));
    let later = now + MEMORY + ms(1);
    assert_eq!(learnt.patience(&1, later), None);
    learnt.gave_up(&1, ms(3_000), later);
    assert_eq!(learnt.patience(&1, later), None, "and one departure does not bring it back");
}

#[test]
fn whoever_outlasts_it_proves_it_wrong() {
    let (mut learnt, now) = after(&[1_000; SAMPLES]);
    learnt.stayed(&1, ms(1_250), now);
    assert_eq!(learnt.patience(&1, now), Some(ms(1_000)), "about as long is no proof");
    learnt.stayed(&1, ms(1_251), now);
    assert_eq!(learnt.patience(&1, now), None);
}

#[test]
fn callers_beyond_the_limit_push_out_the_one_heard_of_longest_ago() {
    let mut learnt = LearntPatience::default();
    let mut now = Moment::ORIGIN;
    for caller in 0..=MAX_CALLERS {
        for _ in 0..LEAST_SAMPLES {
            now = now + SAMPLE_SPACING;
            learnt.gave_up(&caller, ms(500), now);
        }
    }
    assert_eq!(learnt.len(), MAX_CALLERS);
    assert_eq!(learnt.patience(&0, now), None);
    assert_eq!(learnt.patience(&MAX_CALLERS, now), Some(ms(500)));
}
