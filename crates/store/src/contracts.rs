//! Contracts: admission and closing.

use ledger::Minute;
use trust::{AccountId, ClientId, ContractId, RequestId};

use crate::relays::{number, unsigned};
use crate::session::values;
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// The most open contracts of one account.
pub const MOST_OPEN: u32 = 10_000;
/// How long after its end, or after it was closed, a contract is settled at the earliest: reports of its relay are under way.
pub const REPORTS_MS: u64 = 60_000;

/// A contract that is asked for.
#[derive(Clone, Debug)]
pub struct Admission {
    /// The name it gets if it is new.
    pub contract: ContractId,
    /// Who pays.
    pub account: AccountId,
    /// The hosted proxy's login that it is for.
    pub proxy_account: Option<String>,
    /// The most open contracts of that login; 0 is no limit of its own.
    pub most_open_of_login: u32,
    /// The client that asks.
    pub opener: ClientId,
    /// Its name for this request.
    pub request: RequestId,
    /// How large the block should be.
    pub wanted_bytes: u64,
}

/// A contract that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its name.
    pub contract: ContractId,
    /// Its block.
    pub bytes: u64,
    /// When it ends, ms since 1970.
    pub expires_at_ms: u64,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stands; perhaps since an earlier request of the same name.
    Admitted(Admitted),
    /// The account was disabled, or is none of this network.
    AccountDisabled,
    /// The account, or the login, has as many open contracts as it may.
    LimitContracts,
    /// There is no grant.
    NoGrant,
    /// No grant is live at this time.
    GrantExpired,
    /// The account has used more than its grants gave: another grant has to cover that first.
    GrantOverdrawn,
    /// Everything is used or held.
    GrantSpent {
        /// When the first hold ends at the latest, ms since 1970. `None`: nothing is held.
        free_again_at_ms: Option<u64>,
    },
}

impl Store {
    /// Admits a contract and holds its block, or says why not: one statement, whatever happens at the same time.
    ///
    /// # Errors
    /// The database's.
    pub async fn admit(&self, wanted: Admission, now_ms: u64) -> Result<Verdict, StoreError> {
        let network = self.network.0;
        let bytes = number(wanted.wanted_bytes)?;
        let expires_at_ms = now_ms + ledger::CONTRACT_LIFETIME_MS;
        let minute = Minute::at_or_after(expires_at_ms + ledger::SETTLE_GRACE_MS);
        let until_minute = i32::try_from(minute.number())
            .map_err(|_| StoreError::Invalid { what: "a time too far ahead" })?;
        let due_at_ms = expires_at_ms + REPORTS_MS;
        // Openers begin at different slices, so that they seldom meet.
        let first_slice = i32::from(wanted.opener.bytes()[15] & 15);
        self.pool
            .run("admitting a contract", move |session| {
                Box::pin(async move {
                    let sql = "SELECT v.verdict, v.admitted, v.admitted_bytes, v.ends_at, v.free_again_at
                        FROM network n, admit_contract($2, n.network, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) v
                        WHERE n.name = $1";
                    let values = values![
                        &network[..] => BYTEA,
                        wanted.contract.0 => UUID,
                        wanted.account.0 => UUID,
                        wanted.proxy_account => TEXT,
                        wanted.opener.0 => UUID,
                        wanted.request.0 => UUID,
                        bytes => INT8,
                        number(ledger::LEAST_BLOCK_BYTES)? => INT8,
                        from_ms(now_ms) => TIMESTAMPTZ,
                        from_ms(expires_at_ms) => TIMESTAMPTZ,
                        from_ms(due_at_ms) => TIMESTAMPTZ,
                        until_minute => INT4,
                        i32::try_from(MOST_OPEN).unwrap_or(i32::MAX) => INT4,
                        i32::try_from(wanted.most_open_of_login).unwrap_or(i32::MAX) => INT4,
                        first_slice => INT4,
                    ];
                    let Some(row) = session.row(sql, &values).await? else {
                        return Err(StoreError::Invalid { what: "the database knows no such network" });
                    };
                    Ok(match row.get::<_, &str>(0) {
                        "admitted" => Verdict::Admitted(Admitted {
                            contract: ContractId(row.get(1)),
                            bytes: unsigned(row.get(2)),
                            expires_at_ms: to_ms(row.get(3)),
                        }),
                        "account_disabled" => Verdict::AccountDisabled,
                        "limit_contracts" => Verdict::LimitContracts,
                        "no_grant" => Verdict::NoGrant,
                        "grant_expired" => Verdict::GrantExpired,
                        "grant_overdrawn" => Verdict::GrantOverdrawn,
                        "grant_spent" => {
                            Verdict::GrantSpent { free_again_at_ms: row.get::<_, Option<_>>(4).map(to_ms) }
                        }
                        _ => return Err(StoreError::Corrupt { what: "the verdict on a contract" }),
                    })
                })
            })
            .await
    }

    /// The size of an opener's contract.
    ///
    /// # Errors
    /// The database's.
    pub async fn contract_bytes(
        &self,
        opener: ClientId,
        contract: ContractId,
    ) -> Result<Option<u64>, StoreError> {
        self.pool
            .run("looking a contract up", move |session| {
                Box::pin(async move {
                    let sql = "SELECT bytes FROM contract WHERE contract = $1 AND opener = $2";
                    let row = session.row(sql, &values![contract.0 => UUID, opener.0 => UUID]).await?;
                    Ok(row.map(|row| unsigned(row.get(0))))
                })
            })
            .await
    }

    /// Makes an opener's contract due a moment from now. Returns when, ms since 1970; `None`: there is no such contract.
    /// Again is the same.
    ///
    /// # Errors
    /// The database's.
    pub async fn close_contract(
        &self,
        opener: ClientId,
        contract: ContractId,
        now_ms: u64,
    ) -> Result<Option<u64>, StoreError> {
        let due_at_ms = now_ms + REPORTS_MS;
        self.pool
            .run("closing a contract", move |session| {
                Box::pin(async move {
                    let sql = "WITH closed AS (UPDATE open_contract o SET due_at = least(o.due_at, $3) FROM contract c
                            WHERE c.contract = o.contract AND c.contract = $1 AND c.opener = $2 RETURNING o.due_at)
                        SELECT (SELECT due_at FROM closed) FROM contract WHERE contract = $1 AND opener = $2";
                    let values =
                        values![contract.0 => UUID, opener.0 => UUID, from_ms(due_at_ms) => TIMESTAMPTZ];
                    let row = session.row(sql, &values).await?;
                    Ok(row.map(|row| row.get::<_, Option<_>>(0).map_or(now_ms, to_ms)))
                })
            })
            .await
    }
}

#[cfg(test)]
mod tests;
