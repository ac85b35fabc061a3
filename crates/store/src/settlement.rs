//! The worker's side of the ledger: counts, charges, gives holds back.

use crate::relays::unsigned;
use crate::session::values;
use crate::time::from_ms;
use crate::{Store, StoreError};

/// What a turn has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Contracts that got an outcome, or whose outcome grew.
    pub contracts: u64,
    /// Bytes that relays reported.
    pub used_bytes: u64,
    /// Bytes that were charged: all of them, but for reports that are out of all proportion to the block
    /// ([`ledger::most_carried_bytes`], of each start of a relay).
    pub charged_bytes: u64,
    /// What there was no room for in the account's grants: its debt has grown by that.
    pub overdrawn_bytes: u64,
}

/// What a turn over late reports has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettledLate {
    /// What was charged.
    pub settled: Settled,
    /// There may be more: the next turn goes on where this one stopped.
    pub more: bool,
}

impl Store {
    /// Settles at most `most` contracts that are due. While another worker does so, there is nothing to do here.
    ///
    /// # Errors
    /// The database's; then nothing of this turn stands.
    pub async fn settle_contracts(&self, most: u16, now_ms: u64) -> Result<Settled, StoreError> {
        self.pool
            .run("settling contracts", move |session| {
                Box::pin(async move {
                    let sql = "SELECT settled, used, charged, overdrawn FROM settle_contracts($1, $2)";
                    let values = values![from_ms(now_ms) => TIMESTAMPTZ, i32::from(most) => INT4];
                    Ok(session.row(sql, &values).await?.map(|row| settled(&row)).unwrap_or_default())
                })
            })
            .await
    }

    /// Charges what was reported for contracts that were settled before: looks at `most` at most, and remembers where it stopped, in
    /// the same transaction. Again is the same; while another worker settles, nothing is done.
    ///
    /// # Errors
    /// The database's; then nothing of this turn stands, and the next one begins at the same place.
    pub async fn settle_late_reports(&self, most: u16) -> Result<SettledLate, StoreError> {
        self.pool
            .run("settling late reports", move |session| {
                Box::pin(async move {
                    let sql = "SELECT settled, used, charged, overdrawn, more FROM settle_late($1)";
                    let row = session.row(sql, &values![i32::from(most) => INT4]).await?;
                    let done = row.map(|row| SettledLate { settled: settled(&row), more: row.get(4) });
                    Ok(done.unwrap_or_default())
                })
            })
            .await
    }

    /// How many contracts are due, at most `most`, and since when the first one has been (ms since 1970).
    ///
    /// # Errors
    /// The database's.
    pub async fn overdue_contracts(&self, most: u32, now_ms: u64) -> Result<(u64, Option<u64>), StoreError> {
        self.pool
            .run("counting contracts that are due", move |session| {
                Box::pin(async move {
                    let sql = "SELECT count(*), min(due_at) FROM
                        (SELECT due_at FROM open_contract WHERE due_at <= $1 ORDER BY due_at LIMIT $2) AS due";
                    let values = values![from_ms(now_ms) => TIMESTAMPTZ, i64::from(most) => INT8];
                    let row = session.row(sql, &values).await?;
                    Ok(row.map_or((0, None), |row| {
                        (unsigned(row.get(0)), row.get::<_, Option<_>>(1).map(crate::time::to_ms))
                    }))
                })
            })
            .await
    }

    /// Where a loop stopped; `None` if it never ran.
    ///
    /// # Errors
    /// The database's.
    pub async fn cursor(&self, name: &'static str) -> Result<Option<u64>, StoreError> {
        self.pool
            .run("reading a cursor", move |session| {
                Box::pin(async move {
                    let sql = "SELECT position FROM worker_cursor WHERE name = $1";
                    Ok(session.row(sql, &values![name => TEXT]).await?.map(|row| unsigned(row.get(0))))
                })
            })
            .await
    }

    /// Moves a cursor, a time in ms since 1970, forward; never back, and never beyond the database's own clock, by which rows are
    /// dated: a worker whose clock is ahead would pass over what is yet to come.
    ///
    /// # Errors
    /// The database's.
    pub async fn move_cursor(&self, name: &'static str, position: u64) -> Result<(), StoreError> {
        let position = crate::relays::number(position)?;
        self.pool
            .run("moving a cursor", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO worker_cursor AS w (name, position)
                        VALUES ($1, least($2, (extract(epoch FROM now()) * 1000)::int8))
                        ON CONFLICT (name) DO UPDATE SET position = excluded.position, moved_at = now()
                        WHERE w.position < excluded.position";
                    session.execute(sql, &values![name => TEXT, position => INT8]).await?;
                    Ok(())
                })
            })
            .await
    }
}

fn settled(row: &tokio_postgres::Row) -> Settled {
    Settled {
        contracts: unsigned(row.get(0)),
        used_bytes: unsigned(row.get(1)),
        charged_bytes: unsigned(row.get(2)),
        overdrawn_bytes: unsigned(row.get(3)),
    }
}

#[cfg(test)]
mod tests;
