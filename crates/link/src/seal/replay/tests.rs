use super::*;

const NOW: u64 = 1_800_000_000_000;

fn message(number: u64) -> Vec<u8> {
    let mut message = number.to_be_bytes().to_vec();
    message.resize(96, 7);
    message
}

#[test]
fn a_message_that_comes_again_is_refused_for_as_long_as_its_time_is_good() {
    let mut freshness = Freshness::new(5);
    for age in [0, 60_000, 119_000] {
        let first = message(age);
        assert_eq!(freshness.check(&first, NOW + age, 5, NOW), Ok(()));
        for later in (0..240_000).step_by(10_000) {
            let result = freshness.check(&first, NOW + age, 5, NOW + later);
            assert!(matches!(result, Err(Stale::Replayed | Stale::ClockSkew)), "{result:?} after {later} ms");
        }
        freshness = Freshness::new(5);
    }
}

#[test]
fn old_messages_are_forgotten() {
    let mut freshness = Freshness::remembering(5, 100);
    for turn in 0..20 {
        for number in 0..40 {
            let now = NOW + turn * 250_000;
            assert_eq!(freshness.check(&message(turn * 100 + number), now, 5, now), Ok(()));
        }
    }
}

#[test]
fn more_than_can_be_remembered_is_refused() {
    let mut freshness = Freshness::remembering(5, 3);
    for number in 0..3 {
        assert_eq!(freshness.check(&message(number), NOW, 5, NOW), Ok(()));
    }
    assert_eq!(freshness.check(&message(3), NOW, 5, NOW), Err(Stale::TooMany));
}

#[test]
fn another_start_and_another_time_are_told_apart() {
    let mut freshness = Freshness::new(5);
    assert_eq!(freshness.check(&message(1), NOW, 4, NOW), Err(Stale::Epoch));
    assert_eq!(freshness.check(&message(1), NOW, 0, NOW), Ok(()));
    assert_eq!(freshness.check(&message(2), NOW - 120_001, 5, NOW), Err(Stale::ClockSkew));
    assert_eq!(freshness.check(&message(2), NOW + 120_001, 5, NOW), Err(Stale::ClockSkew));
    assert_eq!(freshness.check(&message(2), NOW + 120_000, 5, NOW), Ok(()));
}
