//! Takes away what is past its keep, as the catalogue declares it.

use ledger::Minute;

use crate::catalogue::{Life, TABLES};
use crate::session::{Session, values};
use crate::tasks::{self, OwnerKind};
use crate::time::from_ms;
use crate::{Store, StoreError};
use uuid::Uuid;

/// The most rows that one statement deletes.
pub const SWEPT_AT_ONCE: i64 = 2_000;

/// Tables whose rows tasks may belong to.
const OWNERS: &[(&str, OwnerKind)] = &[("contract", OwnerKind::Contract)];

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
                    if let Some((_, kind)) = OWNERS.iter().find(|(owner, _)| *owner == table) {
                        return sweep_owners(session, table, &sql, before_ms, *kind).await;
                    }
                    let rows = if column == "minute" {
                        let minute = Minute::at_or_after(before_ms).number();
                        let minute = i32::try_from(minute).unwrap_or(i32::MAX);
                        session.execute(&sql, &values![minute => INT4]).await?
                    } else {
                        session.execute(&sql, &values![from_ms(before_ms) => TIMESTAMPTZ]).await?
                    };
                    Ok(swept(table, rows))
                })
            })
            .await
    }
}

/// Rows go together with what was still to be done for them.
async fn sweep_owners(
    session: &mut Session,
    table: &'static str,
    sql: &str,
    before_ms: u64,
    kind: OwnerKind,
) -> Result<Swept, StoreError> {
    session.begin().await?;
    // The key of such a table is called like it.
    let sql = format!("{sql} RETURNING {table}");
    let rows = session.rows(&sql, &values![from_ms(before_ms) => TIMESTAMPTZ]).await?;
    let owners: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    if !owners.is_empty() {
        tasks::retire(session, kind, &owners).await?;
    }
    session.commit().await?;
    Ok(swept(table, owners.len() as u64))
}

fn swept(table: &'static str, rows: u64) -> Swept {
    Swept { table, rows, more: i64::try_from(rows).unwrap_or_default() >= SWEPT_AT_ONCE }
}

#[cfg(test)]
mod tests;
