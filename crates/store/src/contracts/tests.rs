use std::collections::HashMap;

use ledger::{LEAST_BLOCK_BYTES, Refusal, SLICE_BYTES, Slice};
use trust::Role;

use super::*;
use crate::testing::{Database, HOUR_MS, admission, now_ms};
use crate::{NewGrant, Usage};

const MIB: u64 = 1 << 20;

fn admitted(verdict: Verdict) -> Admitted {
    match verdict {
        Verdict::Admitted(admitted) => admitted,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_holds_once_also_at_the_same_time() {
    let database = Database::start().await;
    let account = database.account("payer").await;
    let opener = database.client(account, Role::App, None).await;
    database.grant(account, 100 * MIB).await;
    let first = admission(account, opener, 4 * MIB);
    let requests: Vec<_> = (0..30)
        .map(|_| {
            let api = database.api.clone();
            let again = Admission { contract: ContractId::random(), ..first.clone() };
            tokio::spawn(async move { admitted(api.admit(again, now_ms()).await.unwrap()).contract })
        })
        .collect();
    let mut names = Vec::new();
    for request in requests {
        names.push(request.await.unwrap());
    }
    names.dedup();
    assert_eq!(names.len(), 1);
    let grants = database.api.grants(account, now_ms()).await.unwrap();
    assert_eq!((grants[0].held_bytes, grants[0].spent_bytes), (4 * MIB, 0));
    assert_eq!(database.api.contract_bytes(opener, names[0]).await.unwrap(), Some(4 * MIB));
    let stranger = database.client(account, Role::App, None).await;
    assert_eq!(database.api.contract_bytes(stranger, names[0]).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_admitted_beyond_the_grant_however_many_ask_at_once() {
    let database = Database::start().await;
    let account = database.account("payer").await;
    let opener = database.client(account, Role::App, None).await;
    // Two slices, and room for ten and a half blocks.
    let given = 2 * SLICE_BYTES + 128 * MIB;
    database.grant(account, given).await;
    let requests: Vec<_> = (0..60)
        .map(|_| {
            let api = database.api.clone();
            let wanted = admission(account, opener, SLICE_BYTES / 5);
            tokio::spawn(async move { api.admit(wanted, now_ms()).await.unwrap() })
        })
        .collect();
    let (mut bytes, mut refused) = (0, 0);
    for request in requests {
        match request.await.unwrap() {
            Verdict::Admitted(admitted) => bytes += admitted.bytes,
            Verdict::GrantSpent { free_again_at_ms: Some(_) } => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > 40, "{refused}");
    assert!(bytes <= given && bytes > given - 2 * LEAST_BLOCK_BYTES, "{bytes} of {given}");
    assert_eq!(database.api.grants(account, now_ms()).await.unwrap()[0].held_bytes, bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_has_a_cause_of_its_own() {
    let database = Database::start().await;
    let account = database.account("payer").await;
    let opener = database.client(account, Role::App, None).await;
    assert_eq!(database.admit(account, opener, MIB).await, Verdict::NoGrant);
    assert_eq!(database.admit(AccountId::random(), opener, MIB).await, Verdict::AccountDisabled);
    let now = now_ms();
    let future = NewGrant {
        grant: trust::GrantId::random(),
        account,
        bytes: MIB,
        starts_at_ms: now + HOUR_MS,
        expires_at_ms: now + 2 * HOUR_MS,
    };
    assert!(database.api.create_grant(future).await.unwrap());
    assert!(!database.api.create_grant(future).await.unwrap(), "the same grant twice is one");
    assert_eq!(database.admit(account, opener, MIB).await, Verdict::GrantExpired);
    database.grant(account, MIB).await;
    let held = admitted(database.admit(account, opener, MIB).await);
    let Verdict::GrantSpent { free_again_at_ms: Some(at) } = database.admit(account, opener, MIB).await
    else {
        panic!("not held")
    };
    assert!(at >= held.expires_at_ms && at <= held.expires_at_ms + ledger::SETTLE_GRACE_MS + 60_000);
    let login = |most_open_of_login| Admission {
        proxy_account: Some("shop".into()),
        most_open_of_login,
        ..admission(account, opener, MIB / 2)
    };
    database.grant(account, 10 * MIB).await;
    admitted(database.api.admit(login(1), now_ms()).await.unwrap());
    assert_eq!(database.api.admit(login(1), now_ms()).await.unwrap(), Verdict::LimitContracts);
    admitted(database.api.admit(login(0), now_ms()).await.unwrap());
    database.postgres.admin("update account set disabled_at = now()").unwrap();
    assert_eq!(database.admit(account, opener, MIB).await, Verdict::AccountDisabled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_ends_with_its_grant() {
    let database = Database::start().await;
    let account = database.account("payer").await;
    let opener = database.client(account, Role::App, None).await;
    let (now, grant) = (now_ms(), trust::GrantId::random());
    let expires_at_ms = now + HOUR_MS;
    let short = NewGrant { grant, account, bytes: MIB, starts_at_ms: now, expires_at_ms };
    database.api.create_grant(short).await.unwrap();
    let contract = admitted(database.api.admit(admission(account, opener, MIB), now).await.unwrap());
    assert_eq!(contract.expires_at_ms, expires_at_ms);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_makes_a_contract_due_soon_and_is_the_openers_alone() {
    let database = Database::start().await;
    let account = database.account("payer").await;
    let opener = database.client(account, Role::App, None).await;
    let stranger = database.client(account, Role::App, None).await;
    database.grant(account, MIB).await;
    let contract = admitted(database.admit(account, opener, MIB).await).contract;
    let now = now_ms();
    assert_eq!(database.api.close_contract(stranger, contract, now).await.unwrap(), None);
    let due = database.api.close_contract(opener, contract, now).await.unwrap().unwrap();
    assert_eq!(due, now + REPORTS_MS);
    assert_eq!(database.api.close_contract(opener, contract, now + 5_000).await.unwrap(), Some(due));
    assert_eq!(database.worker.settle_contracts(10, due).await.unwrap().contracts, 1);
    assert_eq!(database.api.close_contract(opener, contract, now).await.unwrap(), Some(now));
    assert!(matches!(database.admit(account, opener, MIB).await, Verdict::Admitted(_)));
}

/// The database and `ledger` do the same arithmetic: random holds, settlements and waits, compared after each.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_and_the_rules_agree_on_what_is_free() {
    let database = Database::start().await;
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let account = database.account(&format!("payer{seed}")).await;
        let opener = database.client(account, Role::App, None).await;
        let given = random.u64(LEAST_BLOCK_BYTES..64 * MIB);
        database.grant(account, given).await;
        let (mut slice, mut now) = (Slice::new(given), now_ms());
        let mut open = HashMap::new();
        for step in 0..60 {
            match random.u8(0..4) {
                0 | 1 => {
                    let wanted = random.u64(0..16 * MIB);
                    let until =
                        Minute::at_or_after(now + ledger::CONTRACT_LIFETIME_MS + ledger::SETTLE_GRACE_MS);
                    let rule = slice.hold(wanted, until, now);
                    let real = database.api.admit(admission(account, opener, wanted), now).await.unwrap();
                    match (rule, real) {
                        (Ok(held), Verdict::Admitted(admitted)) => {
                            assert_eq!(held.bytes, admitted.bytes, "seed {seed}, step {step}");
                            open.insert(admitted.contract, (held, admitted.expires_at_ms));
                        }
                        (Err(Refusal::Spent), Verdict::GrantSpent { free_again_at_ms: None }) => {}
                        (
                            Err(Refusal::Held { until }),
                            Verdict::GrantSpent { free_again_at_ms: Some(at) },
                        ) => {
                            assert_eq!(until.begins_at_ms(), at, "seed {seed}, step {step}");
                        }
                        (Err(Refusal::Overdrawn), Verdict::GrantOverdrawn) => {}
                        // Less than a block is unspent, and held: the rule says spent, the database names the hold.
                        (Err(Refusal::Spent), Verdict::GrantSpent { .. }) => {}
                        other => panic!("seed {seed}, step {step}: {other:?}"),
                    }
                }
                2 => {
                    let Some(contract) = open.keys().next().copied() else { continue };
                    let (held, _) = open.remove(&contract).unwrap();
                    let used = random.u64(0..2 * held.bytes);
                    let report = Usage { contract, sequence: 1, bytes: used };
                    database.relay.record_usage(trust::RelayId::random(), 1, vec![report]).await.unwrap();
                    let due = database.api.close_contract(opener, contract, now).await.unwrap().unwrap();
                    // Those that ended by themselves are due as well; nothing was reported for them.
                    open.retain(|_, (held, expires_at_ms)| {
                        let is_due = *expires_at_ms + REPORTS_MS <= due.max(now);
                        if is_due {
                            slice.settle(*held, 0, due.max(now));
                        }
                        !is_due
                    });
                    let settled = database.worker.settle_contracts(100, due.max(now)).await.unwrap();
                    let rule = slice.settle(held, used, due.max(now));
                    assert_eq!(settled.overdrawn_bytes, rule.overdrawn_bytes, "seed {seed}, step {step}");
                    assert_eq!(
                        settled.charged_bytes,
                        rule.spent_bytes + rule.overdrawn_bytes,
                        "seed {seed}, step {step}"
                    );
                    let debt = database.api.overdrawn_bytes(account).await.unwrap();
                    assert_eq!(debt, slice.overdrawn_bytes(), "seed {seed}, step {step}");
                }
                _ => now += random.u64(0..40 * 60_000),
            }
            let sql = format!(
                "select slice_free(byte_grant, 0::smallint, to_timestamp({}::numeric / 1000)) from byte_grant where account = '{account}'",
                now
            );
            assert_eq!(database.value(&sql), slice.free_bytes(now).to_string(), "seed {seed}, step {step}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_about_to_end_gives_no_block_and_the_next_one_does() {
    let database = Database::start().await;
    let account = database.account("payer").await;
    let opener = database.client(account, Role::App, None).await;
    let ends_at_ms = now_ms() + 8_000;
    let ending = NewGrant {
        grant: trust::GrantId::random(),
        account,
        bytes: 100 * MIB,
        starts_at_ms: now_ms() - HOUR_MS,
        expires_at_ms: ends_at_ms,
    };
    assert!(database.api.create_grant(ending).await.unwrap());
    assert_eq!(database.admit(account, opener, MIB).await, Verdict::GrantExpired);
    database.grant(account, 100 * MIB).await;
    let block = admitted(database.admit(account, opener, MIB).await);
    assert!(block.expires_at_ms > ends_at_ms + HOUR_MS, "the block ends with the grant that ends first");
}
