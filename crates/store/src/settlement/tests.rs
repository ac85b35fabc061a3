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
    assert_eq!(settled, Settled { contracts: 1, used_bytes: 3 * MIB, charged_bytes: 3 * MIB });
    assert_eq!(scene.book().await, (3 * MIB, 0));
    let later = now_ms() + 10 * 24 * 3_600_000;
    assert_eq!(scene.database.worker.settle_contracts(100, later).await.unwrap(), Settled::default());
    assert_eq!(scene.book().await.0, 3 * MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_report_is_charged_up_to_the_block_and_no_more() {
    let scene = Scene::start(100 * MIB).await;
    let contract = scene.contract(4 * MIB).await;
    scene.report(contract, 1, u64::from(u32::MAX) * 1_000).await;
    let settled = scene.settle(contract).await;
    assert_eq!((settled.charged_bytes, scene.book().await), (4 * MIB, (4 * MIB, 0)));
    // For a contract that does not exist, nothing is ever charged.
    scene.report(ContractId::random(), 1, MIB).await;
    let later = scene.database.worker.settle_late_reports(0, now_ms() + 1_000).await.unwrap();
    assert_eq!(later, Settled::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_behind_the_outcome_is_charged_once_within_the_block() {
    let scene = Scene::start(100 * MIB).await;
    let contract = scene.contract(4 * MIB).await;
    scene.report(contract, 1, MIB).await;
    scene.settle(contract).await;
    scene.report(contract, 2, 2 * MIB).await;
    let worker = &scene.database.worker;
    let until = now_ms() + 1_000;
    let late = worker.settle_late_reports(until - 60_000, until).await.unwrap();
    assert_eq!(late, Settled { contracts: 1, used_bytes: 2 * MIB, charged_bytes: 2 * MIB });
    assert_eq!(worker.settle_late_reports(until - 60_000, until).await.unwrap(), Settled::default());
    scene.report(contract, 3, 50 * MIB).await;
    let late = worker.settle_late_reports(until - 60_000, until + 1_000).await.unwrap();
    assert_eq!(late.charged_bytes, MIB);
    assert_eq!(scene.book().await, (4 * MIB, 0));
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
