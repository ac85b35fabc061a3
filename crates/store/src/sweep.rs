//! Takes away what is past its keep, as the catalogue declares it.

use ledger::Minute;

use crate::catalogue::{Life, TABLES};
use crate::session::values;
use crate::time::from_ms;
use crate::{Store, StoreError};

/// The most rows that one statement deletes.
pub const SWEPT_AT_ONCE: i64 = 2_000;

/// What a turn has done with one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The table.
    pub table: &'static str,
    /// How many rows are gone.
    pub rows: u64,
    /// There may be more.
    pub more: bool,
}

impl Store {
    /// Deletes a bounded number of rows of `table` that are past their keep.
    ///
    /// # Errors
    /// The database's; [`StoreError::Invalid`] for a table that is not declared to be swept.
    pub async fn sweep(&self, table: &'static str, now_ms: u64) -> Result<Swept, StoreError> {
        let declared = TABLES.iter().find(|declared| declared.name == table).map(|declared| declared.life);
        let Some(Life::Sweep { column, keep_s }) = declared else {
            return Err(StoreError::Invalid { what: "the table is not declared to be swept" });
        };
        let before_ms = now_ms.saturating_sub(keep_s.saturating_mul(1_000));
        self.pool
            .run("sweeping", move |session| {
                Box::pin(async move {
                    // Names come from the catalogue, never from a caller.
                    let sql = format!(
                        "DELETE FROM {table} WHERE ctid = ANY (ARRAY(
                            SELECT ctid FROM {table} WHERE {column} < $1 ORDER BY {column} LIMIT {SWEPT_AT_ONCE}))"
                    );
                    let rows = if column == "minute" {
                        let minute = Minute::at_or_after(before_ms).number();
                        let minute = i32::try_from(minute).unwrap_or(i32::MAX);
                        session.execute(&sql, &values![minute => INT4]).await?
                    } else {
                        session.execute(&sql, &values![from_ms(before_ms) => TIMESTAMPTZ]).await?
                    };
                    Ok(Swept { table, rows, more: i64::try_from(rows).unwrap_or_default() >= SWEPT_AT_ONCE })
                })
            })
            .await
    }
}

#[cfg(test)]
mod tests;
