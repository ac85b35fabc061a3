//! The kinds of work.

use store::catalogue::{Life, TABLES};
use store::{Settled, SettledLate, Store, StoreError};

use crate::runner::Left;
use clock::unix_ms;

/// Contracts that one turn settles.
const SETTLED_AT_ONCE: u16 = 200;
/// Batches of one table that one turn deletes.
const BATCHES_OF_TABLE: usize = 5;
/// Contracts with late reports that one turn looks at.
const LATE_AT_ONCE: u16 = 500;

/// Settles contracts that are due.
pub(crate) async fn settle(store: &Store) -> Result<Left, StoreError> {
    let settled = store.settle_contracts(SETTLED_AT_ONCE, unix_ms()).await?;
    if settled.contracts > 0 {
        let Settled { contracts, used_bytes, charged_bytes, overdrawn_bytes } = settled;
        tracing::info!(contracts, used_bytes, charged_bytes, overdrawn_bytes, "contracts settled");
        if charged_bytes < used_bytes {
            tracing::error!(
                not_charged_bytes = used_bytes - charged_bytes,
                "a relay reports more for a contract than it can have carried"
            );
        }
    }
    Ok(if settled.contracts >= u64::from(SETTLED_AT_ONCE) { Left::More } else { Left::Nothing })
}

/// Charges reports that came behind their contract's outcome.
pub(crate) async fn late(store: &Store) -> Result<Left, StoreError> {
    let SettledLate { settled, more } = store.settle_late_reports(LATE_AT_ONCE).await?;
    if settled.contracts > 0 {
        let Settled { contracts, charged_bytes, overdrawn_bytes, .. } = settled;
        tracing::info!(contracts, charged_bytes, overdrawn_bytes, "late reports charged");
    }
    Ok(if more { Left::More } else { Left::Nothing })
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
