use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const HOUR_MS: u64 = 3_600_000;
const MIB: u64 = 1 << 20;

#[test]
fn blocks_start_at_four_mebibytes_and_double_up_to_256() {
    let mut sizes = vec![next_block_bytes(None)];
    for _ in 0..8 {
        sizes.push(next_block_bytes(sizes.last().copied()));
    }
    assert_eq!(sizes, [4, 8, 16, 32, 64, 128, 256, 256, 256].map(|mib| mib * MIB));
    assert_eq!(next_block_bytes(Some(1)), FIRST_BLOCK_BYTES);
    assert_eq!(next_block_bytes(Some(u64::MAX)), GREATEST_BLOCK_BYTES);
}

#[test]
fn the_next_block_is_asked_for_when_half_is_used() {
    assert!(!top_up_is_due(4 * MIB, 2 * MIB - 1));
    assert!(top_up_is_due(4 * MIB, 2 * MIB));
    assert!(top_up_is_due(3, 2) && !top_up_is_due(3, 1));
}

#[test]
fn a_minute_counts_until_it_begins() {
    let minute = Minute::at_or_after(60_001);
    assert_eq!(minute.number(), 2);
    assert!(minute.counts_at(119_999) && !minute.counts_at(120_000));
    assert_eq!(Minute::at_or_after(120_000), minute);
}

#[test]
fn what_nobody_settles_comes_back_by_itself() {
    let mut slice = Slice::new(8 * MIB);
    let until = Minute::at_or_after(HOUR_MS);
    slice.hold(8 * MIB, until, 0).unwrap();
    assert_eq!(slice.hold(MIB, until, HOUR_MS - 1), Err(Refusal::Held { until }));
    assert_eq!(slice.free_bytes(HOUR_MS), 8 * MIB);
}

#[test]
fn the_last_block_is_what_is_left() {
    let mut slice = Slice::new(5 * MIB);
    let until = Minute::at_or_after(HOUR_MS);
    slice.hold(4 * MIB, until, 0).unwrap();
    let last = slice.hold(4 * MIB, until, 0).unwrap();
    assert_eq!(last.bytes, MIB);
    slice.settle(last, MIB, 0);
    assert_eq!(slice.hold(4 * MIB, until, 0), Err(Refusal::Held { until }));
}

#[test]
fn used_up_and_held_are_two_causes() {
    let mut slice = Slice::new(4 * MIB);
    let until = Minute::at_or_after(HOUR_MS);
    let held = slice.hold(4 * MIB, until, 0).unwrap();
    slice.settle(held, 4 * MIB, 0);
    assert_eq!(slice.hold(4 * MIB, until, 0), Err(Refusal::Spent));
}

#[test]
fn what_was_used_beyond_the_block_is_a_debt_up_to_what_a_relay_can_have_carried() {
    let mut slice = Slice::new(4 * MIB);
    let held = slice.hold(4 * MIB, Minute::at_or_after(HOUR_MS), 0).unwrap();
    let charged = slice.settle(held, 900 * MIB, 0);
    assert_eq!(charged, Charged { spent_bytes: 4 * MIB, overdrawn_bytes: LEAST_ALLOWANCE_BYTES });
    assert_eq!(slice.hold(MIB, Minute::at_or_after(HOUR_MS), 0), Err(Refusal::Overdrawn));
}

#[test]
fn a_debt_is_covered_by_what_becomes_free_and_never_by_what_others_hold() {
    let mut slice = Slice::new(8 * MIB);
    let until = Minute::at_or_after(HOUR_MS);
    let (one, two) = (slice.hold(4 * MIB, until, 0).unwrap(), slice.hold(4 * MIB, until, 0).unwrap());
    let charged = slice.settle(one, 5 * MIB, 0);
    assert_eq!((charged.overdrawn_bytes, slice.held_bytes(0)), (MIB, 4 * MIB));
    slice.settle(two, MIB, 0);
    assert_eq!((slice.spent_bytes(), slice.overdrawn_bytes(), slice.free_bytes(0)), (6 * MIB, 0, 2 * MIB));
    assert!(slice.hold(MIB, until, 0).is_ok());
}

#[test]
fn a_settlement_behind_the_end_of_its_hold_never_makes_less_than_nothing() {
    let mut slice = Slice::new(4 * MIB);
    let late = slice.hold(4 * MIB, Minute::at_or_after(HOUR_MS), 0).unwrap();
    let next = slice.hold(4 * MIB, Minute::at_or_after(2 * HOUR_MS), HOUR_MS).unwrap();
    assert_eq!(slice.settle(late, 4 * MIB, HOUR_MS).overdrawn_bytes, 4 * MIB);
    assert_eq!(slice.settle(next, 4 * MIB, HOUR_MS).spent_bytes, 4 * MIB);
    assert_eq!(
        (slice.spent_bytes(), slice.overdrawn_bytes(), slice.free_bytes(HOUR_MS)),
        (4 * MIB, 4 * MIB, 0)
    );
}

#[test]
fn a_hold_is_neither_of_the_past_nor_more_than_a_day_ahead() {
    let mut slice = Slice::new(4 * MIB);
    assert_eq!(slice.hold(MIB, Minute::at_or_after(HOUR_MS), HOUR_MS), Err(Refusal::Minute));
    let day = Minute::at_or_after(24 * HOUR_MS);
    assert_eq!(slice.hold(MIB, Minute::from_number(day.number() + 1), 0), Err(Refusal::Minute));
    assert!(slice.hold(MIB, day, 0).is_ok());
}

#[derive(Clone, Debug)]
enum Step {
    Hold { wanted: u64, minutes: u32 },
    Settle { used: u64 },
    Wait { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..64 * MIB, 1..120_u32).prop_map(|(wanted, minutes)| Step::Hold { wanted, minutes }),
        (0..80 * MIB).prop_map(|used| Step::Settle { used }),
        (0..90 * 60_000_u64).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #[test]
    fn slices_are_the_grant_to_the_byte(bytes in 0..u64::MAX / 2) {
        let count = slice_count(bytes);
        prop_assert!((1..=MOST_SLICES).contains(&count));
        let parts = (0..count).map(|index| slice_bytes(bytes, count, index));
        prop_assert_eq!(parts.sum::<u64>(), bytes);
        prop_assert_eq!(slice_bytes(bytes, count, count), 0);
    }

    #[test]
    fn nothing_is_held_beyond_the_grant_and_all_that_was_used_is_debited_once(given in 0..200 * MIB, steps in prop::collection::vec(step(), 1..200)) {
        let mut slice = Slice::new(given);
        let mut open = VecDeque::new();
        let (mut now, mut billed) = (0_u64, 0_u64);
        for step in steps {
            match step {
                Step::Wait { ms } => now += ms,
                Step::Hold { wanted, minutes } => {
                    let until = Minute::from_number(Minute::at_or_after(now).number() + minutes);
                    let (free, overdrawn) = (slice.free_bytes(now), slice.overdrawn_bytes());
                    match slice.hold(wanted, until, now) {
                        Ok(held) => {
                            prop_assert!(overdrawn == 0 && held.bytes <= free && held.bytes >= LEAST_BLOCK_BYTES);
                            open.push_back(held);
                        }
                        Err(_) => prop_assert!(overdrawn > 0 || free < LEAST_BLOCK_BYTES),
                    }
                }
                Step::Settle { used } => {
                    if let Some(held) = open.pop_front() {
                        let charged = slice.settle(held, used, now);
                        let bytes = charged.spent_bytes + charged.overdrawn_bytes;
                        prop_assert_eq!(bytes, used.min(most_carried_bytes(held.bytes)));
                        billed += bytes;
                    }
                }
            }
            prop_assert_eq!(slice.spent_bytes() + slice.overdrawn_bytes(), billed);
            // Whatever was used beyond it, what others hold stays theirs.
            prop_assert!(slice.spent_bytes() + slice.held_bytes(now) <= given);
            let live = open.iter().filter(|held: &&Held| held.until.counts_at(now));
            prop_assert_eq!(slice.held_bytes(now), live.map(|held| held.bytes).sum::<u64>());
        }
    }
}
