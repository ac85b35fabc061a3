use trust::{AccountId, ClientId, ContractId, RelayId, Role};

use super::*;
use crate::testing::{Database, HOUR_MS, now_ms};
use crate::{REPORTS_MS, Usage, Verdict};

const MIB: u64 = 1 << 20;

struct Scene {
    database: Database,
    account: AccountId,
    opener: ClientId,
    relay: RelayId,
}

impl Scene {
    async fn start(grant_bytes: u64) -> Self {
        let database = Database::start().await;
        let account = database.account("payer").await;
        let opener = database.client(account, Role::App, None).await;
        database.grant(account, grant_bytes).await;
        Self { database, account, opener, relay: RelayId::random() }
    }

    async fn contract(&self, bytes: u64) -> ContractId {
        match self.database.admit(self.account, self.opener, bytes).await {
            Verdict::Admitted(admitted) => admitted.contract,
            other => panic!("{other:?}"),
        }
    }

    async fn report(&self, contract: ContractId, sequence: u64, bytes: u64) {
        let report = Usage { contract, sequence, bytes };
        self.database.relay.record_usage(self.relay, 1, vec![report]).await.unwrap();
    }

    /// Closes, and settles what is due.
    async fn settle(&self, contract: ContractId) -> Settled {
        let due = self.database.api.close_contract(self.opener, contract, now_ms()).await.unwrap().unwrap();
        self.database.worker.settle_contracts(100, due).await.unwrap()
    }

    /// Looks at all late reports.
    async fn late(&self, most: u16) -> Settled {
        let mut sum = Settled::default();
        loop {
            let SettledLate { settled, more } = self.database.worker.settle_late_reports(most).await.unwrap();
            sum.contracts += settled.contracts;
            sum.used_bytes += settled.used_bytes;
            sum.charged_bytes += settled.charged_bytes;
            sum.overdrawn_bytes += settled.overdrawn_bytes;
            if !more {
                return sum;
            }
        }
    }

    async fn book(&self) -> (u64, u64) {
        let grants = self.database.api.grants(self.account, now_ms()).await.unwrap();
        (grants[0].spent_bytes, grants[0].held_bytes)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_reported_is_charged_once_and_the_rest_of_the_block_comes_back() {
    let scene = Scene::start(100 * MIB).await;
    let contract = scene.contract(8 * MIB).await;
    for _ in 0..3 {
        // A relay that got no answer sends the same reports again.
        scene.report(contract, 1, 2 * MIB).await;
        scene.report(contract, 2, MIB).await;
    }
    assert_eq!(scene.book().await, (0, 8 * MIB));
    let settled = scene.settle(contract).await;
    assert_eq!(
        settled,
        Settled { contracts: 1, used_bytes: 3 * MIB, charged_bytes: 3 * MIB, overdrawn_bytes: 0 }
    );
    assert_eq!(scene.book().await, (3 * MIB, 0));
    let later = now_ms() + 10 * 24 * 3_600_000;
    assert_eq!(scene.database.worker.settle_contracts(100, later).await.unwrap(), Settled::default());
    assert_eq!(scene.book().await.0, 3 * MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_report_is_charged_up_to_what_a_relay_can_have_carried_and_no_more() {
    let scene = Scene::start(100 * MIB).await;
    let contract = scene.contract(4 * MIB).await;
    scene.report(contract, 1, u64::from(u32::MAX) * 1_000).await;
    let settled = scene.settle(contract).await;
    let most = ledger::most_carried_bytes(4 * MIB);
    assert_eq!((settled.charged_bytes, scene.book().await), (most, (most, 0)));
    // For a contract that does not exist, nothing is ever charged.
    scene.report(ContractId::random(), 1, MIB).await;
    assert_eq!(scene.late(100).await, Settled::default());
}

/// Their sum left the range of the column, the turn was rolled back, and nothing was settled for anybody any more.
#[tokio::test(flavor = "multi_thread")]
async fn reports_without_measure_hold_nobody_else_up() {
    let scene = Scene::start(100 * MIB).await;
    let (forged, honest) = (scene.contract(4 * MIB).await, scene.contract(4 * MIB).await);
    let greatest = i64::MAX.unsigned_abs();
    scene.report(forged, 1, greatest).await;
    scene.report(forged, 2, greatest).await;
    scene.report(honest, 1, MIB).await;
    let later = now_ms() + 10 * 24 * 3_600_000;
    let settled = scene.database.worker.settle_contracts(100, later).await.unwrap();
    let most = ledger::most_carried_bytes(4 * MIB);
    assert_eq!((settled.contracts, settled.charged_bytes), (2, most + MIB));
    scene.report(forged, 3, greatest).await;
    scene.report(honest, 2, MIB).await;
    assert_eq!(scene.late(100).await.charged_bytes, MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_relays_report_of_one_block_is_all_charged() {
    let scene = Scene::start(100 * MIB).await;
    let contract = scene.contract(4 * MIB).await;
    scene.report(contract, 1, 4 * MIB).await;
    let other = Usage { contract, sequence: 1, bytes: 4 * MIB };
    scene.database.relay.record_usage(RelayId::random(), 1, vec![other]).await.unwrap();
    // A relay that was killed counts anew, at its next start.
    scene.database.relay.record_usage(scene.relay, 2, vec![other]).await.unwrap();
    assert_eq!(scene.settle(contract).await.charged_bytes, 12 * MIB);
    assert_eq!(scene.book().await, (12 * MIB, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_behind_the_outcome_is_charged_once_with_the_others() {
    let scene = Scene::start(100 * MIB).await;
    let contract = scene.contract(4 * MIB).await;
    scene.report(contract, 1, MIB).await;
    scene.settle(contract).await;
    scene.report(contract, 2, 2 * MIB).await;
    let late = scene.late(100).await;
    let more = |bytes| Settled { contracts: 1, used_bytes: bytes, charged_bytes: bytes, overdrawn_bytes: 0 };
    assert_eq!(late, more(2 * MIB));
    assert_eq!(scene.late(100).await, Settled::default());
    scene.report(contract, 3, 50 * MIB).await;
    let most = ledger::most_carried_bytes(4 * MIB);
    assert_eq!(scene.late(100).await.charged_bytes, most - 3 * MIB, "up to the block and its allowance");
    assert_eq!(scene.book().await, (most, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_beyond_the_grants_is_a_debt_that_refuses_until_another_grant_covers_it() {
    let scene = Scene::start(4 * MIB).await;
    let contract = scene.contract(4 * MIB).await;
    scene.report(contract, 1, 5 * MIB).await;
    assert_eq!(scene.settle(contract).await.overdrawn_bytes, MIB);
    let api = &scene.database.api;
    assert_eq!((scene.book().await, api.overdrawn_bytes(scene.account).await.unwrap()), ((4 * MIB, 0), MIB));
    let asked = scene.database.admit(scene.account, scene.opener, MIB).await;
    assert_eq!(asked, Verdict::GrantOverdrawn);
    let filled_up = scene.database.grant(scene.account, 8 * MIB).await;
    scene.database.worker.settle_contracts(10, now_ms()).await.unwrap();
    assert_eq!(api.overdrawn_bytes(scene.account).await.unwrap(), 0);
    let grants = api.grants(scene.account, now_ms()).await.unwrap();
    let covering = grants.iter().find(|grant| grant.grant == filled_up).unwrap();
    assert_eq!(covering.spent_bytes, MIB);
    assert!(matches!(scene.database.admit(scene.account, scene.opener, MIB).await, Verdict::Admitted(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overdraft_is_taken_from_the_accounts_other_grants_and_from_nothing_that_others_hold() {
    let scene = Scene::start(4 * MIB).await;
    let contract = scene.contract(4 * MIB).await;
    let second = scene.database.grant(scene.account, 4 * MIB).await;
    let held = scene.contract(3 * MIB + MIB / 2).await;
    scene.report(contract, 1, 5 * MIB).await;
    // Half a mebibyte is free; the other half is not covered, since another contract holds what is left.
    assert_eq!(scene.settle(contract).await.overdrawn_bytes, MIB / 2);
    let grants = scene.database.api.grants(scene.account, now_ms()).await.unwrap();
    let second = grants.iter().find(|grant| grant.grant == second).unwrap();
    assert_eq!((second.spent_bytes, second.held_bytes), (MIB / 2, 3 * MIB + MIB / 2));
    // Once that has given back what it did not use, it is.
    scene.report(held, 1, MIB).await;
    scene.settle(held).await;
    assert_eq!(scene.database.api.overdrawn_bytes(scene.account).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_reports_are_looked_at_in_bounded_turns_that_go_on_where_the_last_one_stopped() {
    let scene = Scene::start(1 << 30).await;
    let mut contracts = Vec::new();
    for _ in 0..23 {
        let contract = scene.contract(MIB).await;
        scene.settle(contract).await;
        contracts.push(contract);
    }
    // All of one moment: reports that a relay sends together.
    let reports = contracts
        .iter()
        .flat_map(|&contract| [1, 2].map(|sequence| Usage { contract, sequence, bytes: MIB / 4 }));
    scene.database.relay.record_usage(scene.relay, 1, reports.collect()).await.unwrap();
    let mut turns = Vec::new();
    loop {
        // Each turn by another worker.
        let worker = crate::testing::store(&scene.database.postgres, crate::catalogue::Writer::Worker);
        let turn = worker.settle_late_reports(5).await.unwrap();
        turns.push(turn.settled.contracts);
        if !turn.more {
            break;
        }
    }
    assert_eq!(turns, [5, 5, 5, 5, 3]);
    assert_eq!(scene.book().await, (23 * MIB / 2, 0));
    assert_eq!(scene.late(5).await, Settled::default());
}

/// A turn that is taken back has moved nothing, its place neither.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_over_late_reports_that_fails_is_done_again_whole() {
    let scene = Scene::start(1 << 30).await;
    let contract = scene.contract(MIB).await;
    scene.settle(contract).await;
    scene.report(contract, 1, MIB).await;
    let blocked = "alter table contract_outcome add constraint no check (used_bytes = 0) not valid";
    scene.database.postgres.admin(blocked).unwrap();
    scene.database.worker.settle_late_reports(10).await.unwrap_err();
    scene.database.postgres.admin("alter table contract_outcome drop constraint no").unwrap();
    assert_eq!(scene.late(10).await.charged_bytes, MIB);
    assert_eq!(scene.book().await.0, MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_workers_at_once_settle_each_contract_once() {
    let scene = Scene::start(5 << 30).await;
    let mut due = 0;
    for _ in 0..60 {
        let contract = scene.contract(MIB).await;
        scene.report(contract, 1, MIB / 2).await;
        due = scene.database.api.close_contract(scene.opener, contract, now_ms()).await.unwrap().unwrap();
    }
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let worker = scene.database.worker.clone();
            tokio::spawn(async move {
                let mut sum = 0;
                loop {
                    match worker.settle_contracts(7, due).await.unwrap().contracts {
                        0 => return sum,
                        some => sum += some,
                    }
                }
            })
        })
        .collect();
    let mut settled = 0;
    for worker in workers {
        settled += worker.await.unwrap();
    }
    assert_eq!((settled, scene.book().await), (60, (30 * MIB, 0)));
    assert_eq!(scene.database.worker.overdue_contracts(10, due).await.unwrap(), (0, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_that_nobody_closes_is_settled_behind_its_end_and_before_its_hold_ends() {
    let scene = Scene::start(100 * MIB).await;
    let Verdict::Admitted(contract) = scene.database.admit(scene.account, scene.opener, MIB).await else {
        panic!()
    };
    let worker = &scene.database.worker;
    let due = contract.expires_at_ms + REPORTS_MS;
    assert!(due < contract.expires_at_ms + ledger::SETTLE_GRACE_MS);
    assert_eq!(worker.settle_contracts(10, due - 1).await.unwrap().contracts, 0);
    assert_eq!(worker.overdue_contracts(10, due).await.unwrap(), (1, Some(due)));
    assert_eq!(worker.settle_contracts(10, due).await.unwrap().contracts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_only_moves_forward() {
    let database = Database::start().await;
    let worker = &database.worker;
    assert_eq!(worker.cursor("late").await.unwrap(), None);
    for (position, then) in [(5, 5), (9, 9), (7, 9)] {
        worker.move_cursor("late", position).await.unwrap();
        assert_eq!(worker.cursor("late").await.unwrap(), Some(then));
    }
}

/// A worker whose clock was ahead once would have looked at no report until that time had come.
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_does_not_run_ahead_of_the_databases_clock() {
    let database = Database::start().await;
    let ahead_ms = now_ms() + 365 * 24 * HOUR_MS;
    database.worker.move_cursor("late", ahead_ms).await.unwrap();
    let cursor_ms = database.worker.cursor("late").await.unwrap().unwrap();
    assert!(cursor_ms <= now_ms() + 1_000 && cursor_ms + HOUR_MS > now_ms(), "{cursor_ms}");
}

mod model;
