use super::*;
use crate::testing::{Database, now_ms};

const LEASE_MS: u64 = 60_000;
const ALL: [usize; LANES] = [10; LANES];

fn task(lane: Lane, due_ms: u64) -> NewTask {
    let task = Uuid::new_v4();
    NewTask { task, kind: "count", lane, owner: None, payload: String::new(), due_ms }
}

fn worker(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

async fn claim(database: &Database, by: u128) -> Vec<Claimed> {
    database.worker.claim_tasks(worker(by), ALL, LEASE_MS).await.unwrap().claimed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_done_once_by_one_worker_when_it_is_due() {
    let database = Database::start().await;
    let store = &database.worker;
    let now = now_ms();
    let (first, later) = (task(Lane::Ledger, now), task(Lane::Ledger, now + 3_600_000));
    store.add_tasks(vec![first.clone(), later.clone()], now).await.unwrap();
    assert!(claim(&database, 1).await.is_empty(), "nobody has moved it yet");
    store.promote_tasks().await.unwrap();
    let (one, two) = tokio::join!(claim(&database, 1), claim(&database, 2));
    let claimed: Vec<_> = one.iter().chain(&two).collect();
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].task, claimed[0].recurs, claimed[0].lane), (first.task, false, Lane::Ledger));
    let by = if one.is_empty() { 2 } else { 1 };
    assert!(!store.end_task(worker(3 - by), claimed[0], Ended::Done).await.unwrap(), "it is not its own");
    assert!(store.end_task(worker(by), claimed[0], Ended::Done).await.unwrap());
    assert!(!store.end_task(worker(by), claimed[0], Ended::Done).await.unwrap());
    assert_eq!(database.value("select count(*) from task_done where outcome = 'done'"), "1");
    assert_eq!(database.value("select count(*) from task_ready"), "0");
    assert_eq!(database.value("select count(*) from task_future"), "1");
    // The same task again is no second one.
    assert!(store.add_tasks(vec![later], now).await.is_err());
    let far = store.add_tasks(vec![task(Lane::Ledger, now + 30 * 3_600_000)], now).await;
    assert!(matches!(far, Err(StoreError::Invalid { .. })), "{far:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recurring_job_is_one_row_and_runs_nowhere_twice_at_once() {
    let database = Database::start().await;
    let store = &database.worker;
    let job = Recurring { kind: "settle", lane: Lane::Ledger, every_ms: 1_000 };
    for _ in 0..2 {
        store.set_recurring(vec![job]).await.unwrap();
    }
    let mut holders = Vec::new();
    for by in 1..=8 {
        holders.extend(claim(&database, by).await.into_iter().map(|claimed| (by, claimed)));
    }
    let [(by, claimed)] = holders.try_into().unwrap();
    assert!(claimed.recurs);
    let again = Ended::Again { after_ms: 0, failures: 0 };
    assert!(store.end_task(worker(by), &claimed, again).await.unwrap());
    let [claimed] = claim(&database, 9).await.try_into().unwrap();
    let failed = claimed.after_failure(50, "it broke".into());
    assert!(store.end_task(worker(9), &claimed, failed).await.unwrap());
    assert_eq!(database.value("select failures from task_ready"), "1");
    let much_later = Claimed { failures: 1_000, ..claimed.clone() };
    assert!(
        matches!(much_later.after_failure(1, String::new()), Ended::Again { .. }),
        "it is never given up"
    );
    let once = Claimed { failures: 1_000, recurs: false, ..claimed };
    assert!(matches!(once.after_failure(1, String::new()), Ended::GivenUp(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_ends_hands_back_at_once_and_one_that_dies_loses_its_claims_by_their_lease() {
    let database = Database::start().await;
    let store = &database.worker;
    let now = now_ms();
    store.add_tasks((0..5).map(|_| task(Lane::Pools, now)).collect(), now).await.unwrap();
    store.promote_tasks().await.unwrap();
    assert_eq!(claim(&database, 1).await.len(), 5);
    assert!(claim(&database, 2).await.is_empty());
    assert_eq!(store.hand_back_tasks(worker(1)).await.unwrap(), 5);
    let short = store.claim_tasks(worker(2), ALL, 700).await.unwrap();
    assert_eq!(short.claimed.len(), 5);
    // It is never heard of again.
    let before = store.claim_tasks(worker(3), ALL, LEASE_MS).await.unwrap();
    assert!(before.claimed.is_empty());
    assert!(before.next_ms.is_some_and(|next_ms| next_ms <= 700), "{:?}", before.next_ms);
    tokio::time::sleep(std::time::Duration::from_millis(800)).await;
    assert_eq!(claim(&database, 3).await.len(), 5);
    let late = &short.claimed[0];
    assert!(!store.end_task(worker(2), late, Ended::Done).await.unwrap());
    // Its own newer claim of the same task is another: what was said late ends nothing.
    assert_eq!(store.hand_back_tasks(worker(3)).await.unwrap(), 5);
    let newer = claim(&database, 2).await;
    let newer = newer.iter().find(|claimed| claimed.task == late.task).unwrap();
    assert!(!store.end_task(worker(2), late, Ended::Done).await.unwrap());
    assert!(store.end_task(worker(2), newer, Ended::Done).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_with_its_owner_wherever_it_waits() {
    let database = Database::start().await;
    let store = &database.worker;
    let now = now_ms();
    let owner = |id| Some(Owner { kind: OwnerKind::Contract, id: worker(id) });
    let of = |id, due_ms| NewTask { owner: owner(id), ..task(Lane::General, due_ms) };
    let tasks = vec![of(1, now), of(1, now + 7_200_000), of(2, now), of(3, now + 60_000)];
    store.add_tasks(tasks, now).await.unwrap();
    store.promote_tasks().await.unwrap();
    assert_eq!(store.retire_tasks(OwnerKind::Contract, vec![worker(1), worker(3)]).await.unwrap(), 3);
    assert_eq!(store.retire_tasks(OwnerKind::Account, vec![worker(2)]).await.unwrap(), 0);
    let left = claim(&database, 9).await;
    assert_eq!((left.len(), left[0].owner), (1, owner(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_that_are_swept_take_their_tasks_with_them() {
    let database = Database::start().await;
    let account = database.account("payer").await;
    database.grant(account, 1 << 30).await;
    let opener = database.client(account, trust::Role::App, None).await;
    let crate::Verdict::Admitted(admitted) = database.admit(account, opener, 1 << 20).await else { panic!() };
    let now = now_ms();
    let owner = Some(Owner { kind: OwnerKind::Contract, id: admitted.contract.0 });
    let close = NewTask { owner, ..task(Lane::Ledger, now + 3_600_000) };
    database.worker.add_tasks(vec![close, task(Lane::Ledger, now + 3_600_000)], now).await.unwrap();
    database
        .postgres
        .admin("delete from open_contract; update contract set created_at = now() - interval '90 days'")
        .unwrap();
    assert_eq!(database.worker.sweep("contract", now).await.unwrap().rows, 1);
    assert_eq!(database.value("select count(*) from task_future"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_made_ahead_and_dropped_when_they_are_over() {
    let database = Database::start().await;
    let store = &database.worker;
    let (made, _) = store.keep_partitions().await.unwrap();
    assert!(made >= 20, "{made}");
    assert_eq!(store.keep_partitions().await.unwrap(), (0, 0));
    let now = now_ms();
    store.add_tasks(vec![task(Lane::Ledger, now + 22 * 3_600_000)], now).await.unwrap();
    // Two hours that are over, one of them with a task in it, and a day that is long past.
    let past = "create table task_part.task_future_2026010100 partition of task_future
            for values from ('2026-01-01 00:00+00') to ('2026-01-01 01:00+00');
        create table task_part.task_future_2026010101 partition of task_future
            for values from ('2026-01-01 01:00+00') to ('2026-01-01 02:00+00');
        create table task_part.task_done_20260101 partition of task_done
            for values from ('2026-01-01 00:00+00') to ('2026-01-02 00:00+00');
        insert into task_future values (gen_random_uuid(), 1, 'late', 0, null, null, '', '2026-01-01 01:30+00');
        insert into task_done select gen_random_uuid(), 1, 'old', 0, null, null, 'done', 0, gen_random_uuid(),
            '2026-01-01 00:30+00', '2026-01-01 00:30+00'";
    database.postgres.admin(past).unwrap();
    assert_eq!(store.keep_partitions().await.unwrap(), (0, 2));
    assert_eq!(database.value("select count(*) from task_done"), "0");
    // What is late is done all the same, and then its hour goes too.
    store.promote_tasks().await.unwrap();
    let late = claim(&database, 1).await;
    assert_eq!(late[0].kind, "late");
    assert_eq!(store.keep_partitions().await.unwrap(), (0, 1));
}

/// Pages that a statement touches.
fn pages(database: &Database, sql: &str) -> u64 {
    let rows = database.postgres.admin(&format!("explain (analyze, buffers, format text) {sql}")).unwrap();
    let text: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let first = text.iter().find(|line| line.contains("Buffers: shared")).cloned().unwrap_or_default();
    let count = |name: &str| {
        let rest = first.split(name).nth(1).unwrap_or("0");
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0_u64)
    };
    count("hit=") + count("read=")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_claim_and_a_move_cost_does_not_depend_on_how_much_waits() {
    let database = Database::start().await;
    let store = &database.worker;
    store.keep_partitions().await.unwrap();
    let fill = |tasks: u32| {
        format!(
            "insert into task_future select gen_random_uuid(), 1, 'count', n % 5, null, null, '',
                greatest(date_trunc('hour', now()), now() + (n % 72000) * interval '1 s' - interval '10 min')
            from generate_series(1, {tasks}) n"
        )
    };
    let claim = CLAIM
        .replace("$1", "decode(repeat('07', 32), 'hex')")
        .replace("$2", "'{0,1,2,3,4}'")
        .replace("$3", "'{4,4,4,4,4}'")
        .replace("$4", "gen_random_uuid()")
        .replace("$5", "60000");
    let promote = "select promote_tasks(1, '{0,1,2,3,4}', 1000, 100)";
    let mut costs = Vec::new();
    for tasks in [200, 200_000] {
        database.postgres.admin(&fill(tasks)).unwrap();
        // Due: as many as there are, in each lane.
        let due = "update task_ready set ready_at = now(), claimed_by = null";
        database.postgres.admin(due).unwrap();
        let moved = pages(&database, promote);
        let claimed = pages(&database, &claim);
        costs.push((moved, claimed));
    }
    let [(few_moved, few_claimed), (many_moved, many_claimed)] = costs[..] else { panic!() };
    println!("pages of a move: {few_moved} and {many_moved}, of a claim: {few_claimed} and {many_claimed}");
    assert!(few_claimed > 0 && few_moved > 0);
    assert!(many_claimed <= few_claimed + 200, "{many_claimed} pages, of few {few_claimed}");
    // 500 rows are moved instead of a few: each costs a few pages in two tables and their indexes, and no more.
    assert!(many_moved <= 500 * 60, "{many_moved} pages");
    let backlog = store.task_backlog().await.unwrap();
    assert_eq!(backlog.len(), LANES);
    assert!(backlog.iter().all(|lane| lane.ready <= 1_000 && lane.due <= 10_000), "{backlog:?}");
    let ready: i64 = database.value("select count(*) from task_ready").parse().unwrap();
    for _ in 0..20 {
        store.promote_tasks().await.unwrap();
    }
    let bounded: i64 = database.value("select count(*) from task_ready").parse().unwrap();
    assert!(bounded <= i64::from(MOST_READY) * LANES as i64, "{ready} {bounded}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_lane_gets_what_it_asks_for_under_a_backlog_of_another() {
    let database = Database::start().await;
    let store = &database.worker;
    let now = now_ms();
    let mut tasks: Vec<_> = (0..3_000).map(|_| task(Lane::General, now)).collect();
    tasks.extend((0..5).map(|_| task(Lane::Ledger, now)));
    store.add_tasks(tasks, now).await.unwrap();
    while store.promote_tasks().await.unwrap() {
        if database.value("select count(*) from task_ready").parse::<i32>().unwrap() >= MOST_READY {
            break;
        }
    }
    let wanted = [4, 2, 2, 2, 1];
    let claimed = store.claim_tasks(worker(1), wanted, LEASE_MS).await.unwrap().claimed;
    let of = |lane: Lane| claimed.iter().filter(|claimed| claimed.lane == lane).count();
    assert_eq!((of(Lane::Ledger), of(Lane::General), of(Lane::Pools)), (4, 1, 0));
}
