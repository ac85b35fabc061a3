//! The kinds of work.

use store::catalogue::{Life, TABLES};
use store::{Store, StoreError};

use crate::lane::Left;
use clock::unix_ms;

/// Contracts that one turn settles.
const SETTLED_AT_ONCE: u16 = 200;
/// Batches of one table that one turn deletes.
const BATCHES_OF_TABLE: usize = 5;
/// Cursor of the late reports: the time up to which they have been looked at.
const LATE: &str = "late_reports";
/// A report counts from the start of its transaction, and may be seen only at its end: so much is looked at twice, ms.
const LATE_OVERLAP_MS: u64 = 60_000;
/// The longest time that one turn looks at, ms.
const LATE_WINDOW_MS: u64 = 600_000;
/// Where a worker begins that never ran, ms ago.
const LATE_START_MS: u64 = 3_600_000;

/// Settles contracts that are due.
pub(crate) async fn settle(store: &Store) -> Result<Left, StoreError> {
    let settled = store.settle_contracts(SETTLED_AT_ONCE, unix_ms()).await?;
    if settled.contracts > 0 {
        let (contracts, used_bytes, charged_bytes) =
            (settled.contracts, settled.used_bytes, settled.charged_bytes);
        tracing::info!(contracts, used_bytes, charged_bytes, "contracts settled");
    }
    Ok(if settled.contracts >= u64::from(SETTLED_AT_ONCE) { Left::More } else { Left::Nothing })
}

/// Charges reports that came behind their contract's outcome.
pub(crate) async fn late(store: &Store) -> Result<Left, StoreError> {
    let now_ms = unix_ms();
    let cursor_ms = store.cursor(LATE).await?.unwrap_or_else(|| now_ms.saturating_sub(LATE_START_MS));
    let until_ms = now_ms.min(cursor_ms.saturating_add(LATE_WINDOW_MS));
    let since_ms = cursor_ms.saturating_sub(LATE_OVERLAP_MS);
    let settled = store.settle_late_reports(since_ms, until_ms).await?;
    if settled.contracts > 0 {
        let (contracts, charged_bytes) = (settled.contracts, settled.charged_bytes);
        tracing::info!(contracts, charged_bytes, "late reports charged");
    }
    store.move_cursor(LATE, until_ms).await?;
    Ok(if until_ms < now_ms { Left::More } else { Left::Nothing })
}

/// Deletes what is past its keep, of each table a bounded number of rows.
pub(crate) async fn sweep(store: &Store) -> Result<Left, StoreError> {
    let mut left = Left::Nothing;
    for table in TABLES.iter().filter(|table| matches!(table.life, Life::Sweep { .. })) {
        let mut rows = 0;
        for batch in 1..=BATCHES_OF_TABLE {
            let swept = store.sweep(table.name, unix_ms()).await?;
            rows += swept.rows;
            if !swept.more {
                break;
            }
            if batch == BATCHES_OF_TABLE {
                left = Left::More;
            }
        }
        if rows > 0 {
            tracing::info!(table = table.name, rows, "swept");
        }
    }
    Ok(left)
}
