use super::*;
use trust::{ContractClaims, NetworkId};
use uuid::Uuid;

const NOW: u64 = 1_000_000;

fn claims(id: u128, bytes: u64) -> ContractClaims {
    ContractClaims {
        network: NetworkId([0; 32]),
        contract: ContractId(Uuid::from_u128(id)),
        payer: AccountId(Uuid::from_u128(100)),
        opener: ClientId(Uuid::from_u128(200)),
        bytes,
        expires_at_s: 2_000,
        offline: false,
    }
}

/// The database counts as gone after so many ms.
const OFFLINE_AFTER_MS: u64 = 1;

fn contracts() -> Contracts {
    Contracts::new(Clock::start(), 3_600_000)
}

/// Whose database has been gone for long enough.
async fn offline() -> Contracts {
    let contracts = Contracts::new(Clock::start(), OFFLINE_AFTER_MS);
    contracts.database_asked();
    tokio::time::sleep(std::time::Duration::from_millis(OFFLINE_AFTER_MS + 10)).await;
    contracts
}

fn find(contracts: &Contracts, id: u128) -> Option<Rc<Contract>> {
    contracts.find(ContractId(Uuid::from_u128(id)), ClientId(Uuid::from_u128(200)))
}

#[test]
fn bytes_are_counted_once_and_the_last_one_is_the_last() {
    let contracts = contracts();
    contracts.show(&claims(1, 100), None, NOW).unwrap();
    let mut contract = find(&contracts, 1).unwrap();
    assert_eq!(Contract::spend(&mut contract, 60, &contracts, NOW), Ok(()));
    assert_eq!(contracts.take_usage(), [Usage { contract: contract.id, sequence: 1, bytes: 60 }]);
    assert_eq!(contracts.take_usage(), []);
    assert_eq!(Contract::spend(&mut contract, 41, &contracts, NOW), Err(Code::ContractSpent));
    assert_eq!(contracts.take_usage(), [], "what is not carried is not billed");
    assert_eq!(Contract::spend(&mut contract, 40, &contracts, NOW), Ok(()));
    assert_eq!(contracts.take_usage(), [Usage { contract: contract.id, sequence: 2, bytes: 40 }]);
    assert!(!contract.pays(NOW));
    // Shown again, it is no new one.
    contracts.show(&claims(1, 100), None, NOW).unwrap();
    assert!(!find(&contracts, 1).unwrap().pays(NOW));
}

#[test]
fn a_stream_goes_on_with_the_block_that_follows() {
    let contracts = contracts();
    contracts.show(&claims(1, 100), None, NOW).unwrap();
    let mut contract = find(&contracts, 1).unwrap();
    contracts.show(&claims(2, 1_000), Some(contract.id), NOW).unwrap();
    assert_eq!(Contract::spend(&mut contract, 150, &contracts, NOW), Ok(()));
    assert_eq!(contract.id, ContractId(Uuid::from_u128(2)));
    let usage: Vec<u64> = contracts.take_usage().iter().map(|usage| usage.bytes).collect();
    assert_eq!(usage, [100, 50]);
}

#[test]
fn chains_have_no_forks_no_circles_and_one_payer() {
    let contracts = contracts();
    contracts.show(&claims(1, 100), None, NOW).unwrap();
    let first = ContractId(Uuid::from_u128(1));
    contracts.show(&claims(2, 100), Some(first), NOW).unwrap();
    assert_eq!(contracts.show(&claims(3, 100), Some(first), NOW), Err(Code::ContractInvalid));
    let mut other = claims(4, 100);
    other.payer = AccountId(Uuid::from_u128(101));
    assert_eq!(contracts.show(&other, Some(ContractId(Uuid::from_u128(2))), NOW), Err(Code::ContractInvalid));
}

#[test]
fn another_opener_and_another_day_do_not_pay() {
    let contracts = contracts();
    contracts.show(&claims(1, 100), None, NOW).unwrap();
    assert!(contracts.find(ContractId(Uuid::from_u128(1)), ClientId(Uuid::from_u128(201))).is_none());
    let mut contract = find(&contracts, 1).unwrap();
    assert_eq!(Contract::spend(&mut contract, 1, &contracts, 2_000_000), Err(Code::ContractSpent));
    drop(contract);
    contracts.sweep(2_000_000);
    assert_eq!(contracts.len(), 0);
}

#[test]
fn a_chain_of_a_hundred_thousand_blocks_neither_overflows_the_stack_nor_is_walked_twice() {
    let contracts = contracts();
    contracts.show(&claims(1, 10), None, NOW).unwrap();
    let first = find(&contracts, 1).unwrap();
    for id in 2..=100_000 {
        contracts.show(&claims(id, 10), Some(ContractId(Uuid::from_u128(id - 1))), NOW).unwrap();
    }
    let mut contract = Rc::clone(&first);
    assert_eq!(Contract::spend(&mut contract, 10 * 99_999, &contracts, NOW), Ok(()));
    assert!(first.pays(NOW));
    assert_eq!(first.next.borrow().as_ref().unwrap().id, ContractId(Uuid::from_u128(100_000)));
    assert_eq!(Contract::spend(&mut contract, 11, &contracts, NOW), Err(Code::ContractSpent));
    let billed: u64 = contracts.take_usage().iter().map(|usage| usage.bytes).sum();
    assert_eq!(billed, 10 * 99_999);
    drop((first, contract));
    drop(contracts);
}

#[tokio::test]
async fn with_the_database_gone_a_contract_goes_on_for_its_allowance_once_and_all_of_it_is_billed() {
    let contracts = offline().await;
    contracts.show(&claims(1, 100), None, NOW).unwrap();
    let mut contract = find(&contracts, 1).unwrap();
    let allowance = ledger::allowance_bytes(100);
    assert_eq!(Contract::spend(&mut contract, 99, &contracts, NOW), Ok(()));
    assert_eq!(contracts.allowed.get(), 0, "the block comes first");
    assert_eq!(Contract::spend(&mut contract, 11, &contracts, NOW), Ok(()));
    assert_eq!(Contract::spend(&mut contract, allowance - 10, &contracts, NOW), Ok(()));
    assert_eq!(Contract::spend(&mut contract, 1, &contracts, NOW), Err(Code::ContractSpent));
    let billed: u64 = contracts.take_usage().iter().map(|usage| usage.bytes).sum();
    assert_eq!(billed, 100 + allowance);
    assert_eq!((contracts.allowed.get(), contracts.allowed_bytes.get()), (1, allowance));
}

#[tokio::test]
async fn what_follows_ends_an_allowance_and_pays() {
    let contracts = offline().await;
    contracts.show(&claims(1, 100), None, NOW).unwrap();
    let mut contract = find(&contracts, 1).unwrap();
    assert_eq!(Contract::spend(&mut contract, 150, &contracts, NOW), Ok(()));
    contracts.show(&claims(2, 1_000), Some(contract.id), NOW).unwrap();
    assert_eq!(Contract::spend(&mut contract, 200, &contracts, NOW), Ok(()));
    let usage: Vec<u64> = contracts.take_usage().iter().map(|usage| usage.bytes).collect();
    assert_eq!((usage, contracts.allowed_bytes.get()), (vec![150, 200], 50));
}

#[tokio::test]
async fn a_contract_that_expires_in_an_outage_goes_on_too_and_its_rest_is_not_used_besides() {
    let contracts = offline().await;
    contracts.show(&claims(1, 100), None, NOW).unwrap();
    let mut contract = find(&contracts, 1).unwrap();
    let (late, allowance) = (2_000_000, ledger::allowance_bytes(100));
    assert_eq!(Contract::spend(&mut contract, 10, &contracts, NOW), Ok(()));
    assert_eq!(Contract::spend(&mut contract, allowance, &contracts, late), Ok(()));
    assert_eq!(Contract::spend(&mut contract, 1, &contracts, late), Err(Code::ContractSpent));
    let billed: u64 = contracts.take_usage().iter().map(|usage| usage.bytes).sum();
    assert_eq!(billed, 10 + allowance);
}

#[tokio::test]
async fn a_block_that_was_given_without_the_database_has_no_allowance_on_top() {
    let contracts = offline().await;
    let given = ContractClaims { offline: true, ..claims(1, 100) };
    contracts.show(&given, None, NOW).unwrap();
    let mut contract = find(&contracts, 1).unwrap();
    assert_eq!(Contract::spend(&mut contract, 100, &contracts, NOW), Ok(()));
    assert_eq!(Contract::spend(&mut contract, 1, &contracts, NOW), Err(Code::ContractSpent));
}
