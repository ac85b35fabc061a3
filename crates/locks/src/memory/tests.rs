use super::*;
use crate::fixtures::{granted, row_wait, waiting};
use crate::judge::{Ours, judge};
use crate::mode::LockMode;
use crate::rows::LockRow;

const GRACE: Duration = Duration::from_millis(500);

fn at_ms(ms: u64) -> Moment {
    Moment::from_micros(ms * 1000)
}

fn piles(waited_ms: u64, holder: &str) -> Vec<PileUp<u32>> {
    let mut report = granted("1.t", LockMode::AccessShare, 10);
    report.backend.state = holder.to_owned();
    judged(&[
        report,
        waiting("1.t", LockMode::AccessExclusive, 20, waited_ms + 5),
        waiting("1.t", LockMode::AccessShare, 31, waited_ms),
    ])
}

fn judged(rows: &[LockRow]) -> Vec<PileUp<u32>> {
    judge(rows, &[Ours { pool: 1, live: 1, pids: vec![31] }])
}

fn verbs(actions: &[Action]) -> Vec<(i32, Verb)> {
    actions.iter().map(|action| (action.party.pid, action.verb)).collect()
}

#[test]
fn nothing_is_cancelled_before_the_grace_is_over_and_the_ddl_is_then() {
    let mut memory = Memory::default();
    let decide = |memory: &mut Memory, waited| {
        memory.decide(at_ms(0), &piles(waited, "active"), Policy::CancelWaitingDdl, GRACE)
    };
    assert_eq!(decide(&mut memory, 499), []);
    assert_eq!(verbs(&decide(&mut memory, 500)), [(20, Verb::CancelWaiter)]);
}

#[test]
fn where_the_server_does_not_tell_the_grace_counts_from_the_first_look() {
    let mut memory = Memory::default();
    let mut piles = piles(9000, "active");
    piles[0].longest = None;
    let mut at = |ms| memory.decide(at_ms(ms), &piles, Policy::CancelWaitingDdl, GRACE).len();
    assert_eq!([at(100), at(599), at(600)], [0, 0, 1]);
}

#[test]
fn warn_cancels_nothing_however_long_it_takes() {
    let piles = piles(60_000, "active");
    assert_eq!(Memory::default().decide(at_ms(0), &piles, Policy::Warn, GRACE), []);
}

#[test]
fn a_blocker_that_runs_is_cancelled_and_one_that_idles_in_its_transaction_is_ended() {
    let decide =
        |state| verbs(&Memory::default().decide(at_ms(0), &piles(600, state), Policy::CancelBlocker, GRACE));
    assert_eq!(decide("active"), [(10, Verb::CancelBlocker)]);
    assert_eq!(decide("idle in transaction"), [(10, Verb::TerminateBlocker)]);
}

#[test]
fn nobody_is_ended_for_a_lock_of_a_row_nor_a_prepared_transaction() {
    let rows = [granted("xid 5", LockMode::Exclusive, 10), row_wait("xid 5", 31, 60_000)];
    let prepared =
        [granted("1.t", LockMode::AccessExclusive, 0), waiting("1.t", LockMode::AccessShare, 31, 60_000)];
    for rows in [rows, prepared] {
        let piles = judged(&rows);
        assert_eq!(piles.len(), 1);
        for policy in [Policy::CancelBlocker, Policy::CancelWaitingDdl] {
            assert_eq!(Memory::default().decide(at_ms(0), &piles, policy, GRACE), []);
        }
    }
}

#[test]
fn a_running_ddl_is_a_blocker_but_no_waiting_ddl() {
    let rows =
        [granted("1.t", LockMode::AccessExclusive, 10), waiting("1.t", LockMode::AccessShare, 31, 600)];
    let decide = |policy| verbs(&Memory::default().decide(at_ms(0), &judged(&rows), policy, GRACE));
    assert_eq!(decide(Policy::CancelWaitingDdl), []);
    assert_eq!(decide(Policy::CancelBlocker), [(10, Verb::CancelBlocker)]);
}

#[test]
fn who_does_not_stop_is_told_again_after_a_while_and_so_often_only() {
    let mut memory = Memory::default();
    let mut told = Vec::new();
    for ms in (0..20_000).step_by(250) {
        let actions = memory.decide(at_ms(ms), &piles(600, "active"), Policy::CancelWaitingDdl, GRACE);
        told.extend(actions.iter().map(|_| ms));
    }
    let again = ACT_AGAIN_AFTER.as_millis() as u64;
    assert_eq!(told, [0, again, 2 * again]);
    assert_eq!(told.len(), MAX_ACTS as usize);
    // Once it is gone, another process of that number is another matter.
    assert_eq!(memory.decide::<u32>(at_ms(20_000), &[], Policy::CancelWaitingDdl, GRACE), []);
    let again = memory.decide(at_ms(20_250), &piles(600, "active"), Policy::CancelWaitingDdl, GRACE);
    assert_eq!(again.len(), 1);
}

#[test]
fn one_ddl_behind_which_two_pools_wait_is_cancelled_once() {
    let rows = [
        granted("1.t", LockMode::AccessShare, 10),
        waiting("1.t", LockMode::AccessExclusive, 20, 700),
        waiting("1.t", LockMode::AccessShare, 31, 600),
        waiting("1.t", LockMode::AccessShare, 41, 600),
    ];
    let ours = [31, 41].map(|pid| Ours { pool: pid, live: 1, pids: vec![pid] });
    let actions = Memory::default().decide(at_ms(0), &judge(&rows, &ours), Policy::CancelWaitingDdl, GRACE);
    assert_eq!(verbs(&actions), [(20, Verb::CancelWaiter)]);
}
