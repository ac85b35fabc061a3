use proptest::prelude::*;

use super::*;
use crate::{FIRST_BLOCK_BYTES, GREATEST_BLOCK_BYTES};

const AFTER_MS: u64 = 4_000;

fn book() -> Allowances<u32> {
    Allowances::new(AFTER_MS)
}

/// Whose database was asked for something at 0.
fn asked() -> Allowances<u32> {
    let mut book = book();
    book.asked(0);
    book
}

#[test]
fn an_allowance_is_a_quarter_of_the_block_within_its_bounds() {
    assert_eq!(allowance_bytes(FIRST_BLOCK_BYTES), 8 * MIB);
    assert_eq!(allowance_bytes(0), LEAST_ALLOWANCE_BYTES);
    assert_eq!(allowance_bytes(64 * MIB), 16 * MIB);
    assert_eq!(allowance_bytes(GREATEST_BLOCK_BYTES), 64 * MIB);
    assert_eq!(allowance_bytes(u64::MAX), GREATEST_ALLOWANCE_BYTES);
    assert_eq!(most_carried_bytes(u64::MAX), u64::MAX);
}

#[test]
fn nothing_is_allowed_while_the_database_answers_or_is_not_asked() {
    let mut book = book();
    assert_eq!(book.begin(1, 4 * MIB, 1_000_000), None);
    for now in (1_000_000..2_000_000).step_by(5_000) {
        book.asked(now);
        assert_eq!(book.begin(1, 4 * MIB, now + AFTER_MS), None, "at {now}");
        book.answered(now + AFTER_MS);
    }
}

#[test]
fn silence_opens_allowances_and_an_answer_closes_them_a_while_later() {
    let mut book = asked();
    book.asked(AFTER_MS);
    assert_eq!(book.begin(1, 4 * MIB, AFTER_MS), None);
    assert_eq!(
        book.begin(1, 4 * MIB, AFTER_MS + 1),
        Some(LEAST_ALLOWANCE_BYTES),
        "it counts from the first question"
    );
    book.answered(100_000);
    assert!(!book.is_silent(100_000));
    let closed_at = 100_000 + ALLOWANCE_GRACE_MS;
    assert_eq!(book.begin(1, 4 * MIB, closed_at - 1), Some(LEAST_ALLOWANCE_BYTES));
    book.asked(closed_at - 1);
    book.answered(closed_at - 1);
    assert_eq!(book.begin(1, 4 * MIB, closed_at), None, "further answers prolong nothing");
}

#[test]
fn a_payer_is_allowed_so_much_an_outage_however_many_contracts_there_are() {
    let (mut book, now) = (asked(), AFTER_MS + 1);
    let given: u64 = (0..100).filter_map(|_| book.begin(1, GREATEST_BLOCK_BYTES, now)).sum();
    assert_eq!(given, PAYER_ALLOWANCE_BYTES);
    assert_eq!(book.begin(2, 4 * MIB, now), Some(LEAST_ALLOWANCE_BYTES), "another payer is none the worse");
    book.answered(now);
    let over = now + ALLOWANCE_GRACE_MS;
    book.sweep(over);
    book.asked(over);
    assert_eq!(book.begin(1, 4 * MIB, over + now), Some(LEAST_ALLOWANCE_BYTES), "the next outage is another");
}

#[test]
fn payers_are_bounded() {
    let (mut book, now) = (asked(), AFTER_MS + 1);
    let most = u32::try_from(MOST_PAYERS).unwrap();
    assert!((0..most).all(|payer| book.begin(payer, 0, now).is_some()));
    assert_eq!(book.begin(most, 0, now), None);
    assert_eq!(book.begin(0, 0, now), Some(LEAST_ALLOWANCE_BYTES));
}

proptest! {
    #[test]
    fn whatever_happens_no_payer_is_allowed_more_than_the_bound_in_one_outage(
        steps in prop::collection::vec((0..4_u32, 0..GREATEST_BLOCK_BYTES * 2, 0..30_000_u64, any::<bool>()), 1..300),
    ) {
        let (mut book, mut now) = (book(), 0);
        let mut given: HashMap<u32, u64> = HashMap::new();
        for (payer, block, wait, answers) in steps {
            now += wait;
            book.asked(now);
            if answers {
                book.answered(now);
            }
            book.sweep(now);
            if !book.is_open(now) {
                given.clear();
            }
            if let Some(bytes) = book.begin(payer, block, now) {
                prop_assert!(book.is_open(now) && bytes == allowance_bytes(block));
                *given.entry(payer).or_default() += bytes;
                prop_assert!(given[&payer] <= PAYER_ALLOWANCE_BYTES);
            }
        }
    }
}
