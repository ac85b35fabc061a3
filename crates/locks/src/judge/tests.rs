use super::*;
use crate::fixtures::{granted, row_wait, waiting};

fn ours(live: usize, pids: &[i32]) -> [Ours<u32>; 1] {
    [Ours { pool: 7, live, pids: pids.to_vec() }]
}

/// A report reads `t`, an ALTER TABLE waits for it, and readers wait behind the ALTER TABLE, which holds nothing.
fn railway() -> Vec<LockRow> {
    vec![
        granted("1.t", LockMode::AccessShare, 10),
        waiting("1.t", LockMode::AccessExclusive, 20, 900),
        waiting("1.t", LockMode::AccessShare, 31, 800),
        waiting("1.t", LockMode::AccessShare, 32, 700),
    ]
}

#[test]
fn readers_behind_a_waiting_alter_table_are_a_pile_up_of_that_alter_table() {
    let piles = judge(&railway(), &ours(4, &[31, 32, 33]));
    let [pile] = piles.as_slice() else { panic!("{piles:?}") };
    assert_eq!((pile.pool, pile.behind, pile.live), (7, 2, 4));
    assert_eq!(pile.longest, Some(Duration::from_millis(800)));
    assert_eq!(pile.relation.as_deref(), Some("1.t"));
    assert_eq!(pile.waiter.as_ref().map(|waiter| (waiter.pid, waiter.is_ours)), Some((20, false)));
    assert_eq!(pile.blockers.iter().map(|blocker| blocker.pid).collect::<Vec<_>>(), [10]);
}

#[test]
fn a_blocked_ddl_that_nobody_of_ours_waits_behind_is_no_pile_up() {
    assert_eq!(judge(&railway(), &ours(4, &[40, 41])), []);
    // The same table's name in another database is another object.
    let mut rows = railway();
    rows.push(waiting("2.t", LockMode::AccessShare, 50, 10));
    assert_eq!(judge(&rows, &ours(1, &[50])), []);
}

#[test]
fn a_pile_is_said_from_a_quarter_of_the_pool_on() {
    assert_eq!(judge(&railway(), &ours(9, &[31, 32])), []);
    assert_eq!(judge(&railway(), &ours(8, &[31, 32])).len(), 1);
}

#[test]
fn a_request_that_stands_before_the_ddl_does_not_wait_behind_it() {
    // The writer waits for a share lock that is held, and came before the ALTER TABLE.
    let rows = [
        granted("1.t", LockMode::Share, 10),
        waiting("1.t", LockMode::RowExclusive, 31, 900),
        waiting("1.t", LockMode::AccessExclusive, 20, 100),
    ];
    let piles = judge(&rows, &ours(1, &[31]));
    assert_eq!(piles[0].waiter, None);
    assert_eq!(piles[0].blockers[0].pid, 10);
}

#[test]
fn without_the_times_of_waiting_ddl_comes_before_readers() {
    let mut rows = railway();
    for row in &mut rows {
        row.waited = None;
    }
    let piles = judge(&rows, &ours(2, &[31, 32]));
    assert_eq!(piles[0].waiter.as_ref().map(|waiter| waiter.pid), Some(20));
    assert_eq!(piles[0].longest, None);
}

#[test]
fn who_waits_for_a_row_of_someone_who_waits_behind_a_ddl_is_behind_it_as_well() {
    let mut rows = railway();
    rows.push(granted("xid 5", LockMode::Exclusive, 31));
    rows.push(row_wait("xid 5", 60, 50));
    let piles = judge(&rows, &ours(1, &[60]));
    assert_eq!(piles[0].waiter.as_ref().map(|waiter| waiter.pid), Some(20));
}

#[test]
fn of_two_waiting_ddls_the_first_is_named() {
    let mut rows = railway();
    rows.insert(0, waiting("1.t", LockMode::AccessExclusive, 21, 850));
    let piles = judge(&rows, &ours(2, &[31, 32]));
    assert_eq!(piles[0].waiter.as_ref().map(|waiter| waiter.pid), Some(20));
}

#[test]
fn a_worker_waits_for_its_leader_and_does_not_block_it() {
    let mut worker = waiting("1.t", LockMode::AccessShare, 99, 700);
    worker.backend.leader = 31;
    let mut held = granted("1.u", LockMode::AccessExclusive, 98);
    held.backend.leader = 31;
    let rows = [railway(), vec![worker, held, waiting("1.u", LockMode::AccessShare, 31, 5)]].concat();
    let piles = judge(&rows, &ours(1, &[31]));
    assert_eq!(piles[0].waiter.as_ref().map(|waiter| waiter.pid), Some(20));
    assert!(piles[0].blockers.iter().all(|blocker| blocker.pid == 10));
}

#[test]
fn a_held_lock_without_ddl_names_its_holder_and_a_circle_ends() {
    let rows = [
        granted("xid 5", LockMode::Exclusive, 10),
        granted("xid 6", LockMode::Exclusive, 11),
        row_wait("xid 5", 11, 80),
        row_wait("xid 6", 31, 50),
    ];
    let piles = judge(&rows, &ours(1, &[31]));
    assert_eq!((piles[0].waiter.clone(), piles[0].blockers[0].pid), (None, 10));
    assert!(!piles[0].blockers[0].is_relation);
    let circle = [rows.to_vec(), vec![row_wait("xid 6", 10, 1)]].concat();
    assert_eq!(judge(&circle, &ours(1, &[31])), []);
}

#[test]
fn no_more_blockers_are_named_than_the_bound() {
    let mut rows = railway();
    rows.extend((100..200).map(|pid| granted("1.t", LockMode::AccessShare, pid)));
    assert_eq!(judge(&rows, &ours(2, &[31, 32]))[0].blockers.len(), MAX_BLOCKERS_NAMED);
}
