//! Accounts and their sessions.

use tokio_postgres::Row;
use trust::AccountId;

use crate::changes::Change;
use crate::session::values;
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// An account to be made.
#[derive(Clone)]
pub struct NewAccount {
    /// Its identifier.
    pub account: AccountId,
    /// Its name, at most 64 bytes.
    pub name: String,
    /// The password's hash, in the form of whoever checks it; empty: nobody signs in.
    pub password: String,
    /// Whether it may manage others.
    pub operator: bool,
}

/// An account.
#[derive(Clone)]
pub struct Account {
    /// Its identifier.
    pub account: AccountId,
    /// Its name.
    pub name: String,
    /// The password's hash.
    pub password: String,
    /// Whether it may manage others.
    pub operator: bool,
    /// When it was disabled, ms since 1970.
    pub disabled_at_ms: Option<u64>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("account", &self.account)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

const COLUMNS: &str = "a.account, a.name, a.password, a.operator, a.disabled_at";

impl Store {
    /// Makes an account. `false`: the name is taken.
    ///
    /// # Errors
    /// The database's.
    pub async fn create_account(&self, new: NewAccount) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("making an account", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO account (account, network, name, password, operator)
                        SELECT $2, network, $3, $4, $5 FROM network WHERE name = $1
                        ON CONFLICT (network, name) DO NOTHING";
                    let values = values![
                        &network[..] => BYTEA,
                        new.account.0 => UUID,
                        new.name => TEXT,
                        new.password => TEXT,
                        new.operator => BOOL,
                    ];
                    Ok(session.execute(sql, &values).await? == 1)
                })
            })
            .await
    }

    /// The account of this name.
    ///
    /// # Errors
    /// The database's.
    pub async fn account_by_name(&self, name: String) -> Result<Option<Account>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking an account up", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT {COLUMNS} FROM account a JOIN network n USING (network) WHERE n.name = $1 AND a.name = $2"
                    );
                    let values = values![&network[..] => BYTEA, name => TEXT];
                    Ok(session.row(&sql, &values).await?.map(|row| account(&row)))
                })
            })
            .await
    }

    /// Disables an account, and with it each of its clients; or lets it in again. `false`: there is none. Again is the same.
    ///
    /// # Errors
    /// The database's.
    pub async fn set_account_disabled(
        &self,
        account: AccountId,
        is_disabled: bool,
    ) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("disabling or enabling an account", move |session| {
                Box::pin(async move {
                    let update =
                        "UPDATE account SET disabled_at = CASE WHEN $3 THEN coalesce(disabled_at, now()) END
                        WHERE account = $2 AND network = (SELECT network FROM network WHERE name = $1)";
                    let values = values![&network[..] => BYTEA, account.0 => UUID, is_disabled => BOOL];
                    session.begin().await?;
                    let known = session.execute(update, &values).await? == 1;
                    if known {
                        // A statement of its own: it sees who registered while the update waited.
                        let change = if is_disabled { Change::Disabled } else { Change::Enabled };
                        let note = "INSERT INTO change_log (network, kind, subject)
                            SELECT network, $2, client FROM client WHERE account = $1";
                        session.execute(note, &values![account.0 => UUID, change.number() => INT2]).await?;
                    }
                    session.commit().await?;
                    Ok(known)
                })
            })
            .await
    }

    /// Keeps a session, by the hash of its bearer token.
    ///
    /// # Errors
    /// The database's.
    pub async fn open_account_session(
        &self,
        bearer_sha256: [u8; 32],
        account: AccountId,
        expires_at_ms: u64,
    ) -> Result<(), StoreError> {
        self.pool
            .run("opening a session", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO account_session (bearer_sha256, account, expires_at) VALUES ($1, $2, $3)";
                    let values = values![
                        &bearer_sha256[..] => BYTEA,
                        account.0 => UUID,
                        from_ms(expires_at_ms) => TIMESTAMPTZ,
                    ];
                    session.execute(sql, &values).await?;
                    Ok(())
                })
            })
            .await
    }

    /// The account of a session that has not ended.
    ///
    /// # Errors
    /// The database's.
    pub async fn account_of_session(
        &self,
        bearer_sha256: [u8; 32],
        now_ms: u64,
    ) -> Result<Option<Account>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking a session up", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT {COLUMNS} FROM account_session s JOIN account a USING (account) JOIN network n USING (network)
                         WHERE n.name = $1 AND s.bearer_sha256 = $2 AND s.expires_at > $3"
                    );
                    let values = values![
                        &network[..] => BYTEA,
                        &bearer_sha256[..] => BYTEA,
                        from_ms(now_ms) => TIMESTAMPTZ,
                    ];
                    Ok(session.row(&sql, &values).await?.map(|row| account(&row)))
                })
            })
            .await
    }

    /// Ends a session. Again is the same.
    ///
    /// # Errors
    /// The database's.
    pub async fn close_account_session(&self, bearer_sha256: [u8; 32]) -> Result<(), StoreError> {
        self.pool
            .run("closing a session", move |session| {
                Box::pin(async move {
                    let sql = "DELETE FROM account_session WHERE bearer_sha256 = $1";
                    session.execute(sql, &values![&bearer_sha256[..] => BYTEA]).await?;
                    Ok(())
                })
            })
            .await
    }
}

fn account(row: &Row) -> Account {
    Account {
        account: AccountId(row.get(0)),
        name: row.get(1),
        password: row.get(2),
        operator: row.get(3),
        disabled_at_ms: row.get::<_, Option<_>>(4).map(to_ms),
    }
}
