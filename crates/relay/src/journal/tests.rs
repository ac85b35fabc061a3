use super::*;
use uuid::Uuid;

const MOST: u64 = 1 << 20;

fn usage(number: u64) -> Usage {
    Usage { contract: ContractId(Uuid::from_u128(u128::from(number))), sequence: number, bytes: number * 10 }
}

#[test]
fn what_was_not_confirmed_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path(), 1_000, MOST).unwrap();
    journal.append(&[usage(1), usage(2)]).unwrap();
    let first = journal.unsent().unwrap().unwrap();
    assert_eq!(first.records, [usage(1), usage(2)]);
    drop(journal);
    // The clock was set back meanwhile.
    let mut journal = Journal::open(folder.path(), 500, MOST).unwrap();
    assert_eq!(journal.epoch(), 1_001);
    journal.append(&[usage(3)]).unwrap();
    let again = journal.unsent().unwrap().unwrap();
    assert_eq!(again, first);
    journal.confirm(&again).unwrap();
    let last = journal.unsent().unwrap().unwrap();
    assert_eq!((last.epoch, &last.records[..]), (1_001, &[usage(3)][..]));
    journal.confirm(&last).unwrap();
    assert_eq!(journal.unsent().unwrap(), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "journals that are sent are gone");
}

#[test]
fn a_torn_end_is_left_out_and_loses_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path(), 1_000, MOST).unwrap();
    journal.append(&[usage(1), usage(2)]).unwrap();
    drop(journal);
    let torn = path(folder.path(), 1_000);
    for cut in 1..RECORD_BYTES as u64 {
        OpenOptions::new().write(true).open(&torn).unwrap().set_len(2 * RECORD_BYTES as u64 - cut).unwrap();
        let mut journal = Journal::open(folder.path(), 2_000 + cut, MOST).unwrap();
        assert_eq!(journal.unsent().unwrap().unwrap().records, [usage(1)]);
        drop(journal);
    }
}

#[test]
fn a_confirmation_that_was_lost_sends_again_what_is_idempotent() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path(), 1_000, MOST).unwrap();
    journal.append(&[usage(1), usage(2), usage(3)]).unwrap();
    let unsent = journal.unsent().unwrap().unwrap();
    journal.append(&[usage(4)]).unwrap();
    journal.confirm(&unsent).unwrap();
    assert_eq!(journal.unsent().unwrap().unwrap().records, [usage(4)]);
    fs::remove_file(sent_path(folder.path(), 1_000)).unwrap();
    drop(journal);
    let mut journal = Journal::open(folder.path(), 3_000, MOST).unwrap();
    assert_eq!(journal.unsent().unwrap().unwrap().records, [usage(1), usage(2), usage(3), usage(4)]);
}

#[test]
fn a_write_that_was_cut_short_is_followed_by_whole_records() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path(), 1_000, MOST).unwrap();
    journal.append(&[usage(1)]).unwrap();
    // As a disk leaves it that was full in the middle of the second.
    journal.file.write_all(&encode(&usage(2))[..17]).unwrap();
    journal.torn = true;
    assert_eq!(journal.unsent().unwrap().unwrap().records, [usage(1)]);
    journal.append(&[usage(2), usage(3)]).unwrap();
    drop(journal);
    let mut journal = Journal::open(folder.path(), 2_000, MOST).unwrap();
    assert_eq!(journal.unsent().unwrap().unwrap().records, [usage(1), usage(2), usage(3)]);
}

#[test]
fn a_folder_belongs_to_one_relay() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path(), 1_000, MOST).unwrap();
    let second = Journal::open(folder.path(), 2_000, MOST).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::ResourceBusy);
    drop(journal);
    Journal::open(folder.path(), 2_000, MOST).unwrap();
}

#[test]
fn a_journal_that_is_full_has_room_again_once_it_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path(), 1_000, 2 * RECORD_BYTES as u64).unwrap();
    journal.append(&[usage(1)]).unwrap();
    assert!(!journal.is_full());
    journal.append(&[usage(2)]).unwrap();
    assert!(journal.is_full());
    let unsent = journal.unsent().unwrap().unwrap();
    journal.confirm(&unsent).unwrap();
    assert!(!journal.is_full());
}
