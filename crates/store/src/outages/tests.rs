use ledger::{Gap, LEAST_GAP_MS, MOST_EXTENSION_MINUTES, allowance_bytes, extension_minutes};
use trust::{RelayId, Role};

use super::*;
use crate::testing::{Database, HOUR_MS, admission, now_ms};
use crate::{Usage, Verdict};

const MIB: u64 = 1 << 20;

struct Scene {
    database: Database,
    account: AccountId,
    opener: ClientId,
}

impl Scene {
    async fn start(grant_bytes: u64) -> Self {
        let database = Database::start().await;
        let account = database.account("payer").await;
        let opener = database.client(account, Role::App, None).await;
        database.grant(account, grant_bytes).await;
        database.postgres.admin("update byte_grant set starts_at = now() - interval '1 day'").unwrap();
        Self { database, account, opener }
    }

    async fn admit_at(&self, bytes: u64, now_ms: u64) -> Verdict {
        self.database.api.admit(admission(self.account, self.opener, bytes), now_ms).await.unwrap()
    }

    fn given(&self, bytes: u64) -> OfflineContract {
        let now = now_ms();
        OfflineContract {
            contract: ContractId::random(),
            account: self.account,
            proxy_account: None,
            opener: self.opener,
            request: RequestId::random(),
            bytes,
            given_at_ms: now - 1_000,
            expires_at_ms: now + HOUR_MS,
        }
    }

    async fn report(&self, contract: ContractId, bytes: u64) {
        let report = Usage { contract, sequence: 1, bytes };
        self.database.relay.record_usage(RelayId::from_bytes([9; 16]), 1, vec![report]).await.unwrap();
    }

    async fn held(&self) -> u64 {
        self.database.api.grants(self.account, now_ms()).await.unwrap()[0].held_bytes
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_and_the_rules_have_the_same_bounds() {
    let database = Database::start().await;
    let least = database.value("select (extract(epoch from ledger_least_gap()) * 1000)::bigint");
    assert_eq!(least, LEAST_GAP_MS.to_string());
    for block in [0, 1, 4 * MIB - 1, 4 * MIB, 7 * MIB + 3, 256 * MIB, 1 << 40] {
        let allowance = database.value(&format!("select offline_allowance({block})"));
        assert_eq!(allowance, allowance_bytes(block).to_string(), "{block}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_and_the_rules_agree_on_how_much_longer_holds_count() {
    let database = Database::start().await;
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let now = now_ms() / 1_000 * 1_000;
        database.postgres.admin("delete from ledger_gap").unwrap();
        let mut gaps = Vec::new();
        for number in 0..random.usize(0..5) {
            let until_ms = now - random.u64(1..40) * HOUR_MS - number as u64 * 1_000;
            let from_ms = until_ms - random.u64(31..36_000) * 1_000;
            let times = [from_ms, until_ms].map(|ms| format!("to_timestamp({})", ms / 1_000)).join(", ");
            let inserted = database.postgres.admin(&format!("insert into ledger_gap values ({times})"));
            // Two gaps do not begin at one moment.
            if inserted.is_ok() {
                gaps.push(Gap { from_ms, until_ms });
            }
        }
        let minutes = database.value("select ledger_extension()");
        assert_eq!(minutes, extension_minutes(&gaps, now).to_string(), "seed {seed}: {gaps:?}");
    }
    database.postgres.admin("insert into ledger_gap values (now() - interval '9 days', now())").unwrap();
    assert_eq!(database.value("select ledger_extension()"), MOST_EXTENSION_MINUTES.to_string());
}

/// The hold of a contract that runs through an outage would have expired in it, and its bytes been given away again before its
/// relays could say that they were used.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_does_not_let_holds_expire_whoever_asks_first() {
    let scene = Scene::start(4 * MIB).await;
    let api = &scene.database.api;
    api.beat_ledger().await.unwrap();
    let begun = now_ms() - 7 * HOUR_MS;
    assert!(matches!(scene.admit_at(4 * MIB, begun).await, Verdict::Admitted(_)));
    let last_beat = |ago: &str| {
        let sql = format!("update ledger_pulse set beat_at = now() - interval '{ago}'");
        scene.database.postgres.admin(&sql).unwrap();
    };
    // It ended fifty minutes ago, and was there when the outage began two hours ago. Nobody has noticed its end yet.
    last_beat("2 hours");
    let asked = scene.admit_at(MIB, now_ms()).await;
    let Verdict::GrantSpent { free_again_at_ms: Some(free_again_at_ms) } = asked else { panic!("{asked:?}") };
    let expected = begun + 6 * HOUR_MS + ledger::SETTLE_GRACE_MS + 2 * HOUR_MS;
    assert!(free_again_at_ms.abs_diff(expected) <= 3 * 60_000, "{free_again_at_ms} {expected}");
    assert_eq!(scene.held().await, 4 * MIB);
    // Two apis notice it at once: it is one gap.
    let (one, two) = tokio::join!(api.beat_ledger(), api.beat_ledger());
    one.and(two).unwrap();
    assert_eq!(scene.database.value("select count(*) from ledger_gap"), "1");
    assert!(matches!(scene.admit_at(MIB, now_ms()).await, Verdict::GrantSpent { .. }));
    // What had ended before the outage is not held again.
    scene.database.postgres.admin("delete from ledger_gap").unwrap();
    last_beat("40 minutes");
    assert!(matches!(scene.admit_at(MIB, now_ms()).await, Verdict::Admitted(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn short_pauses_are_no_gaps() {
    let scene = Scene::start(4 * MIB).await;
    for pause in ["1 second", "20 seconds"] {
        scene.database.api.beat_ledger().await.unwrap();
        let sql = format!("update ledger_pulse set beat_at = now() - interval '{pause}'");
        scene.database.postgres.admin(&sql).unwrap();
        scene.database.api.beat_ledger().await.unwrap();
    }
    assert_eq!(scene.database.value("select count(*) from ledger_gap"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_due_in_an_outage_waits_for_the_reports_that_relays_could_not_send() {
    let scene = Scene::start(4 * MIB).await;
    let Verdict::Admitted(admitted) = scene.admit_at(4 * MIB, now_ms() - 7 * HOUR_MS).await else { panic!() };
    let (worker, postgres) = (&scene.database.worker, &scene.database.postgres);
    let settle = || async { worker.settle_contracts(10, now_ms()).await.unwrap() };
    scene.database.api.beat_ledger().await.unwrap();
    postgres.admin("update ledger_pulse set beat_at = now() - interval '2 hours'").unwrap();
    assert_eq!(settle().await.contracts, 0, "the outage has not ended, as far as anybody can say");
    scene.database.api.beat_ledger().await.unwrap();
    assert_eq!(settle().await.contracts, 0, "it ended just now");
    scene.report(admitted.contract, 3 * MIB).await;
    postgres.admin("update ledger_gap set until_at = until_at - interval '61 seconds'").unwrap();
    assert_eq!(settle().await.charged_bytes, 3 * MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_was_given_without_the_database_comes_in_once_and_is_debited_in_full() {
    let scene = Scene::start(100 * MIB).await;
    let given = scene.given(8 * MIB);
    // Its use may be known before it is.
    scene.report(given.contract, 6 * MIB).await;
    let comings: Vec<_> = (0..8)
        .map(|_| {
            let (api, given) = (scene.database.api.clone(), given.clone());
            tokio::spawn(async move { api.bring_in_contract(given, now_ms()).await.unwrap() })
        })
        .collect();
    let mut first = 0;
    for coming in comings {
        first += u32::from(coming.await.unwrap());
    }
    assert_eq!((first, scene.held().await), (1, 8 * MIB));
    let due = given.expires_at_ms + REPORTS_MS;
    assert_eq!(scene.database.worker.settle_contracts(10, due).await.unwrap().charged_bytes, 6 * MIB);
    assert!(!scene.database.api.bring_in_contract(given, now_ms()).await.unwrap());
    assert_eq!(scene.held().await, 0);
    assert_eq!(scene.database.worker.settle_contracts(10, due).await.unwrap().contracts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_there_was_no_room_for_is_debited_all_the_same() {
    let scene = Scene::start(4 * MIB).await;
    let given = scene.given(8 * MIB);
    scene.report(given.contract, 8 * MIB).await;
    assert!(scene.database.api.bring_in_contract(given.clone(), now_ms()).await.unwrap());
    assert_eq!(scene.held().await, 0);
    let due = given.expires_at_ms + REPORTS_MS;
    let settled = scene.database.worker.settle_contracts(10, due).await.unwrap();
    assert_eq!((settled.charged_bytes, settled.overdrawn_bytes), (8 * MIB, 4 * MIB));
    assert_eq!(scene.database.api.overdrawn_bytes(scene.account).await.unwrap(), 4 * MIB);
}

/// The answer to the same request was lost before the outage: both blocks are there, and both are billed.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_admitted_before_does_not_keep_its_offline_block_out() {
    let scene = Scene::start(100 * MIB).await;
    let given = scene.given(8 * MIB);
    let wanted = crate::Admission { request: given.request, ..admission(scene.account, scene.opener, MIB) };
    let before = scene.database.api.admit(wanted.clone(), now_ms()).await.unwrap();
    assert!(scene.database.api.bring_in_contract(given.clone(), now_ms()).await.unwrap());
    assert_eq!(scene.database.api.admit(wanted, now_ms()).await.unwrap(), before);
    assert_eq!(scene.held().await, 9 * MIB);
    scene.report(given.contract, 2 * MIB).await;
    let due = given.expires_at_ms + REPORTS_MS;
    assert_eq!(scene.database.worker.settle_contracts(10, due).await.unwrap().charged_bytes, 2 * MIB);
}
