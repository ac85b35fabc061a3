//! Who left through which provider, for abuse look-ups only, and for a bounded time (see [`crate::catalogue`]).

use std::time::SystemTime;

use trust::{AccountId, ClientId};
use uuid::Uuid;

use crate::relays::MOST_ROWS;
use crate::session::values;
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// The most findings of a look-up.
const MOST_FOUND: i64 = 100;
/// Streams that began longer before the time asked for are not looked at.
const LONGEST_STREAM_MS: u64 = 24 * 3_600_000;

/// A stream that left through a provider.
#[derive(Clone, Debug)]
pub struct ExitRow {
    /// Its name: the same one twice is one.
    pub exit: Uuid,
    /// The login that used it.
    pub proxy_account: String,
    /// The provider.
    pub provider: ClientId,
    /// The target's port.
    pub port: u16,
    /// When it was opened, ms since 1970.
    pub opened_at_ms: u64,
    /// When it ended.
    pub closed_at_ms: u64,
}

/// Who it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitFound {
    /// The account.
    pub account: AccountId,
    /// Its name.
    pub account_name: String,
    /// The login.
    pub proxy_account: String,
    /// When the stream was opened, ms since 1970.
    pub opened_at_ms: u64,
    /// When it ended.
    pub closed_at_ms: u64,
}

impl Store {
    /// Writes streams down in one statement. Logins that are not known are left out.
    ///
    /// # Errors
    /// The database's; [`StoreError::Invalid`] for more than 10,000.
    pub async fn record_exits(&self, exits: Vec<ExitRow>) -> Result<(), StoreError> {
        if exits.len() > MOST_ROWS {
            return Err(StoreError::Invalid { what: "more than 10,000 rows in one call" });
        }
        let network = self.network.0;
        self.pool
            .run("writing exits", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO exit_record
                            (exit_record, network, account, proxy_account, provider, port, opened_at, closed_at)
                        SELECT t.id, n.network, p.account, p.name, t.provider, t.port, t.opened_at, t.closed_at
                        FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::int4[], $6::timestamptz[], $7::timestamptz[])
                            AS t (id, login, provider, port, opened_at, closed_at)
                        JOIN network n ON n.name = $1
                        JOIN proxy_account p ON p.network = n.network AND p.name = t.login
                        ON CONFLICT DO NOTHING";
                    let values = values![
                        &network[..] => BYTEA,
                        exits.iter().map(|row| row.exit).collect::<Vec<Uuid>>() => UUID_ARRAY,
                        exits.iter().map(|row| row.proxy_account.as_str()).collect::<Vec<&str>>() => TEXT_ARRAY,
                        exits.iter().map(|row| row.provider.0).collect::<Vec<Uuid>>() => UUID_ARRAY,
                        exits.iter().map(|row| i32::from(row.port)).collect::<Vec<i32>>() => INT4_ARRAY,
                        exits.iter().map(|row| from_ms(row.opened_at_ms)).collect::<Vec<SystemTime>>() => TIMESTAMPTZ_ARRAY,
                        exits.iter().map(|row| from_ms(row.closed_at_ms)).collect::<Vec<SystemTime>>() => TIMESTAMPTZ_ARRAY,
                    ];
                    session.execute(sql, &values).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Who had a stream through the provider at this time (give or take `tolerance_ms`), to the port if one is given;
    /// at most 100, nearest in time first.
    ///
    /// # Errors
    /// The database's.
    pub async fn find_exits(
        &self,
        provider: ClientId,
        time_ms: u64,
        tolerance_ms: u64,
        port: Option<u16>,
    ) -> Result<Vec<ExitFound>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking for who used an exit", move |session| {
                Box::pin(async move {
                    let sql = "SELECT e.account, a.name, e.proxy_account, e.opened_at, e.closed_at
                        FROM exit_record e JOIN network n USING (network) JOIN account a USING (account)
                        WHERE n.name = $1 AND e.provider = $2 AND e.opened_at > $3 AND e.opened_at <= $4 AND e.closed_at >= $5
                          AND ($6::int4 IS NULL OR e.port = $6)
                        ORDER BY abs(extract(epoch FROM e.opened_at - $7::timestamptz)) LIMIT $8";
                    let values = values![
                        &network[..] => BYTEA,
                        provider.0 => UUID,
                        from_ms(time_ms.saturating_sub(LONGEST_STREAM_MS)) => TIMESTAMPTZ,
                        from_ms(time_ms.saturating_add(tolerance_ms)) => TIMESTAMPTZ,
                        from_ms(time_ms.saturating_sub(tolerance_ms)) => TIMESTAMPTZ,
                        port.map(i32::from) => INT4,
                        from_ms(time_ms) => TIMESTAMPTZ,
                        MOST_FOUND => INT8,
                    ];
                    let rows = session.rows(sql, &values).await?;
                    let found = rows.iter().map(|row| ExitFound {
                        account: AccountId(row.get(0)),
                        account_name: row.get(1),
                        proxy_account: row.get(2),
                        opened_at_ms: to_ms(row.get(3)),
                        closed_at_ms: to_ms(row.get(4)),
                    });
                    Ok(found.collect())
                })
            })
            .await
    }
}
