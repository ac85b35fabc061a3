//! Grants and what is left of them.

use trust::{AccountId, GrantId};

use crate::relays::{number, unsigned};
use crate::session::values;
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// The most grants in one listing.
const MOST_LISTED: i64 = 1_000;

/// A grant to be given.
#[derive(Clone, Copy, Debug)]
pub struct NewGrant {
    /// Its name: the same one twice grants once.
    pub grant: GrantId,
    /// Who gets it.
    pub account: AccountId,
    /// How much.
    pub bytes: u64,
    /// From when, ms since 1970.
    pub starts_at_ms: u64,
    /// Until when.
    pub expires_at_ms: u64,
}

/// A grant in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantListed {
    /// Its name.
    pub grant: GrantId,
    /// How much it gave.
    pub bytes: u64,
    /// Used and settled.
    pub spent_bytes: u64,
    /// Held by open contracts.
    pub held_bytes: u64,
    /// From when, ms since 1970.
    pub starts_at_ms: u64,
    /// Until when.
    pub expires_at_ms: u64,
}

impl Store {
    /// Gives a grant and cuts it in slices. `false`: it is there already, or there is no such account.
    ///
    /// # Errors
    /// The database's.
    pub async fn create_grant(&self, new: NewGrant) -> Result<bool, StoreError> {
        let network = self.network.0;
        let count = ledger::slice_count(new.bytes);
        let mut slices = Vec::new();
        for index in 0..count {
            slices.push(number(ledger::slice_bytes(new.bytes, count, index))?);
        }
        let bytes = number(new.bytes)?;
        self.pool
            .run("giving a grant", move |session| {
                Box::pin(async move {
                    let sql = "WITH given AS (
                            INSERT INTO byte_grant (byte_grant, network, account, bytes, starts_at, expires_at)
                            SELECT $2, a.network, a.account, $4, $5, $6 FROM account a JOIN network n USING (network)
                            WHERE n.name = $1 AND a.account = $3
                            ON CONFLICT (byte_grant) DO NOTHING RETURNING byte_grant)
                        INSERT INTO grant_slice (byte_grant, slice, bytes)
                        SELECT given.byte_grant, s.slice - 1, s.bytes
                        FROM given, unnest($7::int8[]) WITH ORDINALITY AS s (bytes, slice)";
                    let values = values![
                        &network[..] => BYTEA,
                        new.grant.0 => UUID,
                        new.account.0 => UUID,
                        bytes => INT8,
                        from_ms(new.starts_at_ms) => TIMESTAMPTZ,
                        from_ms(new.expires_at_ms) => TIMESTAMPTZ,
                        slices => INT8_ARRAY,
                    ];
                    Ok(session.execute(sql, &values).await? > 0)
                })
            })
            .await
    }

    /// The grants of an account that have not ended, those that end first in front.
    ///
    /// # Errors
    /// The database's.
    pub async fn grants(&self, account: AccountId, now_ms: u64) -> Result<Vec<GrantListed>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("listing grants", move |session| {
                Box::pin(async move {
                    let sql = "SELECT g.byte_grant, g.bytes, g.starts_at, g.expires_at,
                            (SELECT coalesce(sum(b.spent_bytes), 0)::int8 FROM grant_balance b WHERE b.byte_grant = g.byte_grant),
                            (SELECT coalesce(sum(h.bytes - coalesce(r.bytes, 0)), 0)::int8
                             FROM hold h LEFT JOIN hold_release r USING (byte_grant, slice, minute)
                             WHERE h.byte_grant = g.byte_grant AND h.minute > extract(epoch FROM $3::timestamptz) / 60 - (SELECT ledger_extension()))
                        FROM byte_grant g JOIN network n USING (network)
                        WHERE n.name = $1 AND g.account = $2 AND g.expires_at > $3
                        ORDER BY g.expires_at, g.byte_grant LIMIT $4";
                    let values = values![
                        &network[..] => BYTEA,
                        account.0 => UUID,
                        from_ms(now_ms) => TIMESTAMPTZ,
                        MOST_LISTED => INT8,
                    ];
                    let rows = session.rows(sql, &values).await?;
                    let listed = rows.iter().map(|row| GrantListed {
                        grant: GrantId(row.get(0)),
                        bytes: unsigned(row.get(1)),
                        starts_at_ms: to_ms(row.get(2)),
                        expires_at_ms: to_ms(row.get(3)),
                        spent_bytes: unsigned(row.get(4)),
                        held_bytes: unsigned(row.get(5)),
                    });
                    Ok(listed.collect())
                })
            })
            .await
    }

    /// What an account has used beyond everything that its grants gave.
    ///
    /// # Errors
    /// The database's.
    pub async fn overdrawn_bytes(&self, account: AccountId) -> Result<u64, StoreError> {
        self.pool
            .run("looking for a debt", move |session| {
                Box::pin(async move {
                    let sql = "SELECT bytes FROM account_debt WHERE account = $1";
                    let row = session.row(sql, &values![account.0 => UUID]).await?;
                    Ok(row.map_or(0, |row| unsigned(row.get(0))))
                })
            })
            .await
    }
}
