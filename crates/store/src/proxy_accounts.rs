//! Logins of the hosted proxy.

use tokio_postgres::Row;
use trust::AccountId;

use crate::relays::unsigned;
use crate::session::values;
use crate::time::to_ms;
use crate::{Store, StoreError};

/// The most logins in one listing.
const MOST_LISTED: i64 = 1_000;
/// The most logins of one account.
const MOST_OF_ACCOUNT: i64 = 1_000;

/// A login to be made. Limits of 0 are none.
#[derive(Clone)]
pub struct NewProxyAccount {
    /// The user name: 1 to 32 of `a-z`, `0-9`, `_`.
    pub name: String,
    /// Who pays.
    pub account: AccountId,
    /// SHA-256 of the secret.
    pub secret_sha256: [u8; 32],
    /// Streams at once.
    pub most_streams: u32,
    /// New streams a second.
    pub streams_per_second: u32,
    /// Bytes a second.
    pub bytes_per_second: u64,
    /// Open contracts at once.
    pub most_contracts: u32,
    /// Options for whoever sends none, at most 200 bytes.
    pub selection: String,
}

/// A login.
#[derive(Clone)]
pub struct ProxyAccount {
    /// What it was made with.
    pub made: NewProxyAccount,
    /// When it was disabled, ms since 1970.
    pub disabled_at_ms: Option<u64>,
    /// Its account was disabled.
    pub account_disabled: bool,
}

const COLUMNS: &str =
    "p.name, p.account, p.secret_sha256, p.most_streams, p.streams_per_second, p.bytes_per_second,
    p.most_contracts, p.selection, p.disabled_at, a.disabled_at IS NOT NULL";

impl Store {
    /// Makes a login. `false`: the name is taken, or the account has as many as it may.
    ///
    /// # Errors
    /// The database's.
    pub async fn create_proxy_account(&self, new: NewProxyAccount) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("making a login", move |session| {
                Box::pin(async move {
                    let sql =
                        "INSERT INTO proxy_account (network, name, account, secret_sha256, most_streams,
                            streams_per_second, bytes_per_second, most_contracts, selection)
                        SELECT network, $2, $3, $4, $5, $6, $7, $8, $9 FROM network
                        WHERE name = $1 AND (SELECT count(*) FROM proxy_account WHERE account = $3) < $10
                        ON CONFLICT DO NOTHING";
                    let values = values![
                        &network[..] => BYTEA,
                        new.name => TEXT,
                        new.account.0 => UUID,
                        &new.secret_sha256[..] => BYTEA,
                        i32::try_from(new.most_streams).unwrap_or(i32::MAX) => INT4,
                        i32::try_from(new.streams_per_second).unwrap_or(i32::MAX) => INT4,
                        i64::try_from(new.bytes_per_second).unwrap_or(i64::MAX) => INT8,
                        i32::try_from(new.most_contracts).unwrap_or(i32::MAX) => INT4,
                        new.selection => TEXT,
                        MOST_OF_ACCOUNT => INT8,
                    ];
                    Ok(session.execute(sql, &values).await? == 1)
                })
            })
            .await
    }

    /// The login of this name.
    ///
    /// # Errors
    /// The database's.
    pub async fn proxy_account(&self, name: String) -> Result<Option<ProxyAccount>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking a login up", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT {COLUMNS} FROM proxy_account p JOIN network n USING (network) JOIN account a USING (account)
                         WHERE n.name = $1 AND p.name = $2"
                    );
                    let row = session.row(&sql, &values![&network[..] => BYTEA, name => TEXT]).await?;
                    row.map(|row| read(&row)).transpose()
                })
            })
            .await
    }

    /// The logins of an account.
    ///
    /// # Errors
    /// The database's.
    pub async fn proxy_accounts(&self, account: AccountId) -> Result<Vec<ProxyAccount>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("listing logins", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT {COLUMNS} FROM proxy_account p JOIN network n USING (network) JOIN account a USING (account)
                         WHERE n.name = $1 AND p.account = $2 ORDER BY p.name LIMIT {MOST_LISTED}"
                    );
                    let rows = session.rows(&sql, &values![&network[..] => BYTEA, account.0 => UUID]).await?;
                    rows.iter().map(read).collect()
                })
            })
            .await
    }

    /// Disables a login of an account. `false`: there is none. Again is the same.
    ///
    /// # Errors
    /// The database's.
    pub async fn disable_proxy_account(&self, name: String, account: AccountId) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("disabling a login", move |session| {
                Box::pin(async move {
                    let sql = "UPDATE proxy_account SET disabled_at = coalesce(disabled_at, now())
                        WHERE name = $2 AND account = $3 AND network = (SELECT network FROM network WHERE name = $1)";
                    let values = values![&network[..] => BYTEA, name => TEXT, account.0 => UUID];
                    Ok(session.execute(sql, &values).await? == 1)
                })
            })
            .await
    }
}

fn read(row: &Row) -> Result<ProxyAccount, StoreError> {
    let secret: &[u8] = row.get(2);
    let limit = |column: usize| u32::try_from(row.get::<_, i32>(column)).unwrap_or_default();
    Ok(ProxyAccount {
        made: NewProxyAccount {
            name: row.get(0),
            account: AccountId(row.get(1)),
            secret_sha256: secret.try_into().map_err(|_| StoreError::Corrupt { what: "a login's secret" })?,
            most_streams: limit(3),
            streams_per_second: limit(4),
            bytes_per_second: unsigned(row.get(5)),
            most_contracts: limit(6),
            selection: row.get(7),
        },
        disabled_at_ms: row.get::<_, Option<_>>(8).map(to_ms),
        account_disabled: row.get(9),
    })
}
