use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

const NETWORK: NetworkId = NetworkId([7; 32]);

fn block(account: AccountId) -> OfflineContract {
    OfflineContract {
        contract: ContractId::random(),
        account,
        proxy_account: Some("shop".into()),
        opener: ClientId::random(),
        request: RequestId::random(),
        bytes: 4 << 20,
        given_at_ms: 1_000,
        expires_at_ms: 2_000,
    }
}

fn open(folder: &Path) -> Journal {
    Journal::open(folder, NETWORK).unwrap()
}

#[test]
fn an_opener_gets_one_block_and_the_same_request_the_same_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = block(AccountId::random());
    let again = OfflineContract { contract: ContractId::random(), ..first.clone() };
    let contract = ContractId::random();
    let second = OfflineContract { contract, request: RequestId::random(), ..first.clone() };
    for _ in 0..2 {
        let mut journal = open(folder.path());
        assert_eq!(journal.give(again.clone()).unwrap(), journal.give(first.clone()).unwrap());
        assert_eq!(journal.give(second.clone()).unwrap(), Given::HadIt);
        assert_eq!(journal.waiting().len(), 1);
    }
    let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut journal = open(folder.path());
    let given = journal.waiting()[0].contract;
    journal.forget(&[given]).unwrap();
    drop(journal);
    let mut journal = open(folder.path());
    assert_eq!(journal.give(second.clone()).unwrap(), Given::Block(second), "the next outage is another");
}

#[test]
fn the_openers_of_an_account_get_no_more_than_an_outage_gives() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let account = AccountId::random();
    let mut given = Vec::new();
    for _ in 0..20 {
        let bytes = ledger::OFFLINE_BLOCK_BYTES;
        match journal.give(OfflineContract { bytes, ..block(account) }).unwrap() {
            Given::Block(block) => given.push(block.bytes),
            other => assert_eq!(other, Given::HadIt),
        }
    }
    assert!(given.len() > 1 && given.iter().sum::<u64>() <= ledger::ACCOUNT_OFFLINE_BYTES, "{given:?}");
    let other = block(AccountId::random());
    assert_eq!(journal.give(other.clone()).unwrap(), Given::Block(other), "others have their own");
}

#[test]
fn a_block_that_is_over_and_was_not_taken_by_the_ledger_stands_in_no_later_outages_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let first = block(AccountId::random());
    journal.give(first.clone()).unwrap();
    let (contract, request) = (ContractId::random(), RequestId::random());
    let later = OfflineContract { contract, request, given_at_ms: 2_000, expires_at_ms: 3_000, ..first };
    assert_eq!(journal.give(later.clone()).unwrap(), Given::Block(later));
    assert_eq!(journal.waiting().len(), 2, "it is still tried");
}

#[test]
fn of_a_journal_that_was_cut_anywhere_every_whole_line_is_read_and_what_comes_next_too() {
    let folder = tempfile::tempdir().unwrap();
    let blocks: Vec<_> = (0..3).map(|_| block(AccountId::random())).collect();
    let mut journal = open(folder.path());
    for block in &blocks {
        journal.give(block.clone()).unwrap();
    }
    drop(journal);
    let path = folder.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut journal = open(folder.path());
        let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
        // A line of which only its end is missing is whole.
        let read = journal.waiting();
        assert!(read.len() >= lines && read == blocks[..read.len()], "cut at {length}");
        let next = block(AccountId::random());
        journal.give(next.clone()).unwrap();
        drop(journal);
        assert_eq!(open(folder.path()).waiting().last(), Some(&next), "cut at {length}");
    }
}

#[test]
fn another_networks_and_broken_lines_are_left_out_and_a_folder_is_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.give(block(AccountId::random())).unwrap();
    let used = Journal::open(folder.path(), NETWORK).unwrap_err();
    assert!(used.to_string().contains("another api uses this folder"), "{used}");
    drop(journal);
    assert!(Journal::open(folder.path(), NetworkId([8; 32])).unwrap().waiting().is_empty());
    let path = folder.path().join(FILE);
    let text = fs::read_to_string(&path).unwrap().replace("\"bytes\":4194304", "\"bytes\":9999999");
    fs::write(&path, text).unwrap();
    assert!(open(folder.path()).waiting().is_empty());
}

#[test]
fn as_many_wait_as_may_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.waiting = (0..MOST_WAITING).map(|_| block(AccountId::random())).collect();
    assert_eq!(journal.give(block(AccountId::random())).unwrap(), Given::Full);
}
