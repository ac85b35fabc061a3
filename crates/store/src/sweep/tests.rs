use super::*;
use crate::testing::{Database, now_ms};

#[tokio::test(flavor = "multi_thread")]
async fn every_table_that_is_declared_to_be_swept_is_and_no_other() {
    let database = Database::start().await;
    for table in TABLES {
        let swept = database.worker.sweep(table.name, now_ms()).await;
        if matches!(table.life, Life::Sweep { .. }) {
            assert_eq!(swept.unwrap(), Swept { table: table.name, rows: 0, more: false });
        } else {
            assert!(matches!(swept, Err(StoreError::Invalid { .. })), "{}", table.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_takes_a_bounded_number_of_rows_and_leaves_what_is_kept() {
    let database = Database::start().await;
    let (over, kept) = (SWEPT_AT_ONCE + 500, 300);
    let insert = format!(
        "insert into usage select gen_random_uuid(), gen_random_uuid(), 1, 1, 1,
            case when n <= {over} then now() - interval '36 days' else now() - interval '34 days' end
         from generate_series(1, {}) n",
        over + kept
    );
    database.postgres.admin(&insert).unwrap();
    let at_once = u64::try_from(SWEPT_AT_ONCE).unwrap();
    let first = database.worker.sweep("usage", now_ms()).await.unwrap();
    assert_eq!((first.rows, first.more), (at_once, true));
    let second = database.worker.sweep("usage", now_ms()).await.unwrap();
    assert_eq!((second.rows, second.more), (500, false));
    assert_eq!(database.value("select count(*) from usage"), kept.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_of_yesterday_are_swept_and_those_of_tomorrow_stay() {
    let database = Database::start().await;
    let now = i64::try_from(now_ms() / 60_000).unwrap();
    for minute in [now - 1_500, now - 1_000, now + 300] {
        let insert = format!("insert into hold values (gen_random_uuid(), 0, {minute}, 1)");
        database.postgres.admin(&insert).unwrap();
    }
    assert_eq!(database.worker.sweep("hold", now_ms()).await.unwrap().rows, 1);
    assert_eq!(database.value("select count(*) from hold"), "2");
}
