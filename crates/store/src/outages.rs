//! The ledger across outages: its sign of life, and blocks that were given without it.

use ledger::Minute;
use trust::{AccountId, ClientId, ContractId, RequestId};
use uuid::Uuid;

use crate::contracts::REPORTS_MS;
use crate::relays::{bounded, number};
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

/// Those who would not be admitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfit {
    /// Clients that are disabled, revoked or not there, or whose account is.
    pub clients: Vec<ClientId>,
    /// Accounts that are disabled or not there, have no live grant, or are overdrawn.
    pub accounts: Vec<AccountId>,
    /// Logins that are disabled or not there.
    pub logins: Vec<String>,
}

impl Store {
    /// Of these, whoever would not be admitted; at most [`crate::MOST_ROWS`] of each.
    ///
    /// # Errors
    /// The database's; [`StoreError::Invalid`] for more.
    pub async fn unfit_payers(
        &self,
        clients: Vec<ClientId>,
        accounts: Vec<AccountId>,
        logins: Vec<String>,
        now_ms: u64,
    ) -> Result<Unfit, StoreError> {
        bounded(clients.len().max(accounts.len()).max(logins.len()))?;
        let network = self.network.0;
        self.pool
            .run("looking at payers", move |session| {
                Box::pin(async move {
                    let sql = "SELECT 1, t.client, NULL::text FROM unnest($2::uuid[]) AS t (client)
                        WHERE NOT EXISTS (SELECT FROM client c JOIN network n USING (network) JOIN account a USING (account)
                            WHERE n.name = $1 AND c.client = t.client AND c.disabled_at IS NULL AND a.disabled_at IS NULL
                              AND NOT EXISTS (SELECT FROM revocation r WHERE r.network = c.network AND r.client = c.client))
                        UNION ALL SELECT 2, t.account, NULL FROM unnest($3::uuid[]) AS t (account)
                        WHERE NOT EXISTS (SELECT FROM account a JOIN network n USING (network)
                            WHERE n.name = $1 AND a.account = t.account AND a.disabled_at IS NULL)
                          OR NOT EXISTS (SELECT FROM byte_grant g
                            WHERE g.account = t.account AND g.starts_at <= $5 AND g.expires_at > $5)
                          OR EXISTS (SELECT FROM account_debt d WHERE d.account = t.account AND d.bytes > 0)
                        UNION ALL SELECT 3, NULL, t.name FROM unnest($4::text[]) AS t (name)
                        WHERE NOT EXISTS (SELECT FROM proxy_account p JOIN network n USING (network)
                            WHERE n.name = $1 AND p.name = t.name AND p.disabled_at IS NULL)";
                    let values = values![
                        &network[..] => BYTEA,
                        clients.iter().map(|client| client.0).collect::<Vec<Uuid>>() => UUID_ARRAY,
                        accounts.iter().map(|account| account.0).collect::<Vec<Uuid>>() => UUID_ARRAY,
                        logins => TEXT_ARRAY,
                        from_ms(now_ms) => TIMESTAMPTZ,
                    ];
                    let mut unfit = Unfit::default();
                    for row in session.rows(sql, &values).await? {
                        match row.get::<_, i32>(0) {
                            1 => unfit.clients.push(ClientId(row.get(1))),
                            2 => unfit.accounts.push(AccountId(row.get(1))),
                            _ => unfit.logins.push(row.get(2)),
                        }
                    }
                    Ok(unfit)
                })
            })
            .await
    }

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
