//! The ledger across outages: its sign of life, and blocks that were given without it.

use ledger::Minute;
use trust::{AccountId, ClientId, ContractId, RequestId};

use crate::contracts::REPORTS_MS;
use crate::relays::number;
use crate::session::values;
use crate::time::from_ms;
use crate::{Store, StoreError};

/// A block that an api gave while the database was gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineContract {
    /// Its name.
    pub contract: ContractId,
    /// Who pays.
    pub account: AccountId,
    /// The hosted proxy's login that it is for.
    pub proxy_account: Option<String>,
    /// The client that asked.
    pub opener: ClientId,
    /// Its name for the request.
    pub request: RequestId,
    /// Size of the block.
    pub bytes: u64,
    /// When it was given, ms since 1970.
    pub given_at_ms: u64,
    /// When it ends, ms since 1970.
    pub expires_at_ms: u64,
}

impl Store {
    /// The ledger lives: every [`ledger::PULSE_MS`]. After a pause of more than [`ledger::LEAST_GAP_MS`], holds that stood count so
    /// much longer.
    ///
    /// # Errors
    /// The database's.
    pub async fn beat_ledger(&self) -> Result<(), StoreError> {
        self.pool
            .run("the ledger's sign of life", |session| {
                Box::pin(async move { session.execute("SELECT beat_ledger()", &[]).await.map(drop) })
            })
            .await
    }

    /// Takes a block into the ledger that was given without it; `false`: it is there already. It is settled like any other, at the
    /// earliest when its relays have had the time to report.
    ///
    /// # Errors
    /// The database's; then it is to be tried again.
    pub async fn bring_in_contract(&self, given: OfflineContract, now_ms: u64) -> Result<bool, StoreError> {
        let network = self.network.0;
        let bytes = number(given.bytes)?;
        let due_at_ms = given.expires_at_ms.max(now_ms) + REPORTS_MS;
        let minute = Minute::at_or_after(given.expires_at_ms + ledger::SETTLE_GRACE_MS);
        let minute = i32::try_from(minute.number())
            .map_err(|_| StoreError::Invalid { what: "a time too far ahead" })?;
        self.pool
            .run("bringing a block into the ledger", move |session| {
                Box::pin(async move {
                    let sql =
                        "SELECT bring_in_contract($2, n.network, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                        FROM network n WHERE n.name = $1";
                    let values = values![
                        &network[..] => BYTEA,
                        given.contract.0 => UUID,
                        given.account.0 => UUID,
                        given.proxy_account => TEXT,
                        given.opener.0 => UUID,
                        given.request.0 => UUID,
                        bytes => INT8,
                        from_ms(given.given_at_ms) => TIMESTAMPTZ,
                        from_ms(given.expires_at_ms) => TIMESTAMPTZ,
                        from_ms(due_at_ms) => TIMESTAMPTZ,
                        minute => INT4,
                        from_ms(now_ms) => TIMESTAMPTZ,
                    ];
                    let Some(row) = session.row(sql, &values).await? else {
                        return Err(StoreError::Invalid { what: "the database knows no such network" });
                    };
                    Ok(row.get(0))
                })
            })
            .await
    }
}

#[cfg(test)]
mod tests;
