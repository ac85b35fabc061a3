//! Everything that can happen to a bill, in seeded orders, against the one sum that has to come out: what was reported is what
//! was debited.

use std::collections::BTreeMap;
use std::time::Duration;

use ledger::most_carried_bytes;
use trust::RequestId;

use super::*;
use crate::OfflineContract;
use crate::catalogue::Writer;
use crate::testing::store;

/// What really was: by contract its block, and by contract, relay and start each report.
#[derive(Default)]
struct Truth {
    blocks: BTreeMap<ContractId, u64>,
    reports: BTreeMap<(ContractId, RelayId, u64), Vec<Usage>>,
}

impl Truth {
    /// Of each start of a relay, what it can have carried.
    fn billed(&self) -> u64 {
        let part = |((contract, ..), reports): (&(ContractId, RelayId, u64), &Vec<Usage>)| {
            let block = self.blocks.get(contract).copied();
            let sum: u64 = reports.iter().map(|report| report.bytes).sum();
            block.map_or(0, |block| sum.min(most_carried_bytes(block)))
        };
        self.reports.iter().map(part).sum()
    }
}

async fn debited(scene: &Scene) -> u64 {
    let grants = scene.database.api.grants(scene.account, now_ms()).await.unwrap();
    let spent: u64 = grants.iter().map(|grant| grant.spent_bytes).sum();
    spent + scene.database.api.overdrawn_bytes(scene.account).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_order_repetition_or_stop_there_is_what_was_reported_is_what_is_debited() {
    for seed in 0..6 {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let scene = Scene::start(random.u64(4..60) * MIB).await;
    let relays = [scene.relay, RelayId::random()];
    let mut truth = Truth::default();
    let mut offline: Vec<OfflineContract> = Vec::new();
    for step in 0..120 {
        let known: Vec<ContractId> = truth.blocks.keys().copied().collect();
        match random.u8(0..10) {
            0 | 1 => {
                let wanted = random.u64(1..8) * MIB;
                if let Verdict::Admitted(new) =
                    scene.database.admit(scene.account, scene.opener, wanted).await
                {
                    truth.blocks.insert(new.contract, new.bytes);
                }
            }
            2 => {
                let (now, bytes) = (now_ms(), 4 * MIB);
                let given = OfflineContract {
                    contract: ContractId::random(),
                    account: scene.account,
                    proxy_account: None,
                    opener: scene.opener,
                    request: RequestId::random(),
                    bytes,
                    given_at_ms: now,
                    expires_at_ms: now + HOUR_MS,
                };
                truth.blocks.insert(given.contract, bytes);
                offline.push(given);
            }
            3..6 if !known.is_empty() => {
                let contract = known[random.usize(..known.len())];
                let (relay, epoch) = (relays[random.usize(..2)], random.u64(1..3));
                let reports = truth.reports.entry((contract, relay, epoch)).or_default();
                let sequence = reports.len() as u64 + 1;
                let bytes = if random.u8(..20) == 0 { 1 << 40 } else { random.u64(..2 * MIB) };
                reports.push(Usage { contract, sequence, bytes });
                // Sent with some of those before it, which are there perhaps; or stopped, and sent again.
                let from = random.usize(..reports.len());
                send(&scene, relay, epoch, reports[from..].to_vec(), random.bool()).await;
            }
            6 => {
                if let Some(given) = offline.get(random.usize(..offline.len().max(1))) {
                    scene.database.api.bring_in_contract(given.clone(), now_ms()).await.unwrap();
                }
            }
            7 if !known.is_empty() => {
                let contract = known[random.usize(..known.len())];
                scene.database.api.close_contract(scene.opener, contract, now_ms()).await.unwrap();
            }
            8 => {
                let worker = store(&scene.database.postgres, Writer::Worker);
                let (most, later) = (random.u16(1..5), now_ms() + 70_000);
                let settling = worker.settle_contracts(most, later);
                // A worker that is killed in the middle: whether it was done is not known.
                let limit = Duration::from_micros(random.u64(200..6_000));
                let _ = tokio::time::timeout(limit, settling).await;
                worker.pool().close();
            }
            9 => {
                let worker = store(&scene.database.postgres, Writer::Worker);
                let limit = Duration::from_micros(random.u64(200..6_000));
                let _ = tokio::time::timeout(limit, worker.settle_late_reports(random.u16(1..4))).await;
                worker.pool().close();
            }
            _ => {}
        }
        if step % 40 == 39 {
            assert!(debited(&scene).await <= truth.billed(), "seed {seed}, step {step}: debited twice");
        }
    }
    for given in offline {
        scene.database.api.bring_in_contract(given, now_ms()).await.unwrap();
    }
    for ((_, relay, epoch), reports) in &truth.reports {
        send(&scene, *relay, *epoch, reports.clone(), false).await;
    }
    let later = now_ms() + 8 * HOUR_MS;
    // One that was stopped may still hold the lock.
    for _ in 0..200 {
        scene.database.worker.settle_contracts(200, later).await.unwrap();
        if scene.database.worker.overdue_contracts(1, later).await.unwrap().0 == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    scene.late(3).await;
    scene.late(3).await;
    assert_eq!(debited(&scene).await, truth.billed(), "seed {seed}");
    let outcomes = scene.database.value("select sum(charged_bytes) from contract_outcome");
    assert_eq!(outcomes, truth.billed().to_string(), "seed {seed}");
}

async fn send(scene: &Scene, relay: RelayId, epoch: u64, reports: Vec<Usage>, stops: bool) {
    if stops {
        let sending = scene.database.relay.record_usage(relay, epoch, reports.clone());
        let _ = tokio::time::timeout(Duration::from_micros(500), sending).await;
    }
    scene.database.relay.record_usage(relay, epoch, reports).await.unwrap();
}
