//! Clients: registration by code, and what becomes of them.

use tokio_postgres::Row;
use trust::{AccountId, ClientId, CodeHash, PublicIdentity, RequestId, Role};
use uuid::Uuid;

use crate::changes::{Change, note};
use crate::relays::NOT_REMOVED;
use crate::session::{Session, values};
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// The most clients in one listing.
const MOST_LISTED: i64 = 1_000;

/// A code to be kept.
#[derive(Clone, Copy, Debug)]
pub struct JoinCodeRow {
    /// Its hash.
    pub hash: CodeHash,
    /// Whose client joins with it.
    pub account: AccountId,
    /// What it may be.
    pub role: Role,
    /// Until when, ms since 1970.
    pub expires_at_ms: u64,
}

/// A client that wants in. Its proof has been checked.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The name it gets if it is new.
    pub client: ClientId,
    /// Its own name for this registration.
    pub request: RequestId,
    /// What it wants to be.
    pub role: Role,
    /// Its keys.
    pub identity: PublicIdentity,
    /// The code.
    pub code: CodeHash,
    /// A name for its owner, at most 64 bytes.
    pub label: String,
    /// Name and version of its software, at most 64 bytes.
    pub software: String,
    /// Two capital letters.
    pub country: Option<String>,
}

/// What became of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is registered: now, or by an earlier request of the same name and keys.
    Yes(ClientId),
    /// The code is unknown, over, used by another, or for another role.
    CodeInvalid,
    /// The request's name or the keys belong to another registration.
    Conflict,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its name.
    pub client: ClientId,
    /// What it is.
    pub role: Role,
    /// Its keys.
    pub identity: PublicIdentity,
    /// Whose it is.
    pub account: AccountId,
    /// It was disabled.
    pub disabled: bool,
    /// It is on the revocation list.
    pub revoked: bool,
    /// Its account was disabled.
    pub account_disabled: bool,
}

/// A client in a listing.
#[derive(Clone, Debug)]
pub struct ClientListed {
    /// The client.
    pub client: Client,
    /// What it called itself.
    pub label: String,
    /// Name and version of the software it registered with.
    pub software: String,
    /// Where it says that it is.
    pub country: Option<String>,
    /// When it registered, ms since 1970.
    pub created_at_ms: u64,
    /// When it was disabled.
    pub disabled_at_ms: Option<u64>,
    /// Whether a relay that beats has it.
    pub connected: bool,
}

const COLUMNS: &str = "c.client, c.role, c.identity, c.account, c.disabled_at,
    EXISTS (SELECT FROM revocation r WHERE r.network = c.network AND r.client = c.client),
    a.disabled_at IS NOT NULL";

impl Store {
    /// Keeps a code.
    ///
    /// # Errors
    /// The database's.
    pub async fn create_join_code(&self, code: JoinCodeRow) -> Result<(), StoreError> {
        let network = self.network.0;
        self.pool
            .run("making a join code", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO join_code (code_sha256, network, account, role, expires_at)
                        SELECT $2, network, $3, $4, $5 FROM network WHERE name = $1";
                    let values = values![
                        &network[..] => BYTEA,
                        &code.hash.0[..] => BYTEA,
                        code.account.0 => UUID,
                        i16::from(code.role.number()) => INT2,
                        from_ms(code.expires_at_ms) => TIMESTAMPTZ,
                    ];
                    session.execute(sql, &values).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Registers a client and uses its code up, or finds what the same request has done before.
    ///
    /// # Errors
    /// The database's.
    pub async fn register(&self, registration: Registration, now_ms: u64) -> Result<Registered, StoreError> {
        let network = self.network.0;
        self.pool
            .run("registering a client", move |session| {
                Box::pin(async move {
                    if let Some(earlier) = earlier(session, &network, &registration).await? {
                        return Ok(earlier);
                    }
                    session.begin().await?;
                    if !use_code(session, &network, &registration, now_ms).await? {
                        // The same request may have used it a moment ago.
                        let earlier = earlier(session, &network, &registration).await?;
                        session.commit().await?;
                        return Ok(earlier.unwrap_or(Registered::CodeInvalid));
                    }
                    if insert(session, &network, &registration).await? {
                        session.commit().await?;
                        return Ok(Registered::Yes(registration.client));
                    }
                    // Its keys or its request are another's: the code stays unused.
                    session.rollback().await?;
                    Ok(earlier(session, &network, &registration).await?.unwrap_or(Registered::Conflict))
                })
            })
            .await
    }

    /// A client.
    ///
    /// # Errors
    /// The database's.
    pub async fn client(&self, client: ClientId) -> Result<Option<Client>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking a client up", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT {COLUMNS} FROM client c JOIN network n USING (network) JOIN account a USING (account)
                         WHERE n.name = $1 AND c.client = $2"
                    );
                    let values = values![&network[..] => BYTEA, client.0 => UUID];
                    session.row(&sql, &values).await?.map(|row| read(&row)).transpose()
                })
            })
            .await
    }

    /// The clients of an account, or all; newest first, at most 1,000. A relay that is gone has nobody.
    ///
    /// # Errors
    /// The database's.
    pub async fn clients(&self, account: Option<AccountId>) -> Result<Vec<ClientListed>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("listing clients", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT {COLUMNS}, c.label, c.software, c.country, c.created_at,
                            EXISTS (SELECT FROM connection l JOIN relay_beat b ON b.relay = l.relay AND b.epoch = l.relay_epoch
                                WHERE l.network = c.network AND l.client = c.client AND l.disconnected_at IS NULL
                                  AND {NOT_REMOVED})
                         FROM client c JOIN network n USING (network) JOIN account a USING (account)
                         WHERE n.name = $1 AND ($2::uuid IS NULL OR c.account = $2)
                         ORDER BY c.created_at DESC LIMIT {MOST_LISTED}"
                    );
                    let values = values![&network[..] => BYTEA, account.map(|account| account.0) => UUID];
                    session.rows(&sql, &values).await?.iter().map(read_listed).collect()
                })
            })
            .await
    }

    /// Disables a client of an account (or of any: `None`). `false`: there is none. Again is the same.
    ///
    /// # Errors
    /// The database's.
    pub async fn disable_client(
        &self,
        client: ClientId,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("disabling a client", move |session| {
                Box::pin(async move {
                    session.begin().await?;
                    let known = disable(session, &network, client, account).await?;
                    if known {
                        note(session, &network, Change::Disabled, Some(client)).await?;
                    }
                    session.commit().await?;
                    Ok(known)
                })
            })
            .await
    }

    /// Lets a client of an account (or of any: `None`) in again. `false`: there is none, or it was revoked, which is for good.
    /// Again is the same.
    ///
    /// # Errors
    /// The database's.
    pub async fn enable_client(
        &self,
        client: ClientId,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("enabling a client", move |session| {
                Box::pin(async move {
                    let sql = "UPDATE client c SET disabled_at = NULL
                        WHERE c.client = $2 AND ($3::uuid IS NULL OR c.account = $3)
                          AND c.network = (SELECT network FROM network WHERE name = $1)
                          AND NOT EXISTS (SELECT FROM revocation r WHERE r.network = c.network AND r.client = c.client)";
                    let values = values![
                        &network[..] => BYTEA,
                        client.0 => UUID,
                        account.map(|account| account.0) => UUID,
                    ];
                    session.begin().await?;
                    let known = session.execute(sql, &values).await? == 1;
                    if known {
                        note(session, &network, Change::Enabled, Some(client)).await?;
                    }
                    session.commit().await?;
                    Ok(known)
                })
            })
            .await
    }

    /// Disables a client and puts it on the list of revoked ones. `false`: there is none. Again is the same.
    ///
    /// # Errors
    /// The database's.
    pub async fn revoke_client(
        &self,
        client: ClientId,
        account: Option<AccountId>,
        cause: String,
    ) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("revoking a client", move |session| {
                Box::pin(async move {
                    session.begin().await?;
                    let known = disable(session, &network, client, account).await?;
                    if known {
                        let sql = "INSERT INTO revocation (network, client, cause)
                            SELECT network, $2, $3 FROM network WHERE name = $1 ON CONFLICT DO NOTHING";
                        let values = values![
                            &network[..] => BYTEA,
                            client.0 => UUID,
                            cause => TEXT,
                        ];
                        session.execute(sql, &values).await?;
                        note(session, &network, Change::Revoked, Some(client)).await?;
                    }
                    session.commit().await?;
                    Ok(known)
                })
            })
            .await
    }

    /// Clients revoked since then, and when; newest first, at most `most`.
    ///
    /// # Errors
    /// The database's.
    pub async fn revoked_clients(
        &self,
        since_ms: u64,
        most: u32,
    ) -> Result<Vec<(ClientId, u64)>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("listing revoked clients", move |session| {
                Box::pin(async move {
                    let sql = "SELECT r.client, r.revoked_at FROM revocation r JOIN network n USING (network)
                        WHERE n.name = $1 AND r.revoked_at >= $2 ORDER BY r.revoked_at DESC LIMIT $3";
                    let values = values![
                        &network[..] => BYTEA,
                        from_ms(since_ms) => TIMESTAMPTZ,
                        i64::from(most) => INT8,
                    ];
                    let rows = session.rows(sql, &values).await?;
                    Ok(rows.iter().map(|row| (ClientId(row.get(0)), to_ms(row.get(1)))).collect())
                })
            })
            .await
    }
}

/// What an earlier registration by the same request or with the same keys says to this one.
async fn earlier(
    session: &Session,
    network: &[u8; 32],
    wanted: &Registration,
) -> Result<Option<Registered>, StoreError> {
    let sql = "SELECT c.client, c.request, c.identity, c.role FROM client c JOIN network n USING (network)
        WHERE n.name = $1 AND (c.request = $2 OR c.thumbprint = $3)";
    let thumbprint = wanted.identity.thumbprint();
    let values = values![
        &network[..] => BYTEA,
        wanted.request.0 => UUID,
        &thumbprint.0[..] => BYTEA,
    ];
    let rows = session.rows(sql, &values).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let is_same = rows.len() == 1
        && row.get::<_, Uuid>(1) == wanted.request.0
        && row.get::<_, &[u8]>(2) == wanted.identity.bytes()
        && row.get::<_, i16>(3) == i16::from(wanted.role.number());
    Ok(Some(if is_same { Registered::Yes(ClientId(row.get(0))) } else { Registered::Conflict }))
}

async fn use_code(
    session: &Session,
    network: &[u8; 32],
    wanted: &Registration,
    now_ms: u64,
) -> Result<bool, StoreError> {
    // The account stays as it is until the client is there: whoever disables it finds all its clients.
    let sql = "UPDATE join_code SET used_by = $3
        WHERE code_sha256 = $2 AND used_by IS NULL AND expires_at > $4 AND role = $5
          AND network = (SELECT network FROM network WHERE name = $1)
          AND account IN (SELECT a.account FROM account a JOIN join_code j USING (account)
              WHERE j.code_sha256 = $2 AND a.disabled_at IS NULL FOR SHARE OF a)";
    let values = values![
        &network[..] => BYTEA,
        &wanted.code.0[..] => BYTEA,
        wanted.request.0 => UUID,
        from_ms(now_ms) => TIMESTAMPTZ,
        i16::from(wanted.role.number()) => INT2,
    ];
    Ok(session.execute(sql, &values).await? == 1)
}

async fn insert(session: &Session, network: &[u8; 32], wanted: &Registration) -> Result<bool, StoreError> {
    let sql = "INSERT INTO client (client, network, request, role, identity, thumbprint, account, label, software, country)
        SELECT $2, j.network, $3, $4, $5, $6, j.account, $7, $8, $9
        FROM join_code j JOIN network n USING (network) WHERE n.name = $1 AND j.code_sha256 = $10
        ON CONFLICT DO NOTHING";
    let thumbprint = wanted.identity.thumbprint();
    let values = values![
        &network[..] => BYTEA,
        wanted.client.0 => UUID,
        wanted.request.0 => UUID,
        i16::from(wanted.role.number()) => INT2,
        &wanted.identity.bytes()[..] => BYTEA,
        &thumbprint.0[..] => BYTEA,
        wanted.label => TEXT,
        wanted.software => TEXT,
        wanted.country => TEXT,
        &wanted.code.0[..] => BYTEA,
    ];
    Ok(session.execute(sql, &values).await? == 1)
}

async fn disable(
    session: &Session,
    network: &[u8; 32],
    client: ClientId,
    account: Option<AccountId>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE client SET disabled_at = coalesce(disabled_at, now())
        WHERE client = $2 AND ($3::uuid IS NULL OR account = $3)
          AND network = (SELECT network FROM network WHERE name = $1)";
    let values = values![
        &network[..] => BYTEA,
        client.0 => UUID,
        account.map(|account| account.0) => UUID,
    ];
    Ok(session.execute(sql, &values).await? == 1)
}

fn read(row: &Row) -> Result<Client, StoreError> {
    let number = u8::try_from(row.get::<_, i16>(1)).unwrap_or_default();
    Ok(Client {
        client: ClientId(row.get(0)),
        role: Role::from_number(number).ok_or(StoreError::Corrupt { what: "a client's role" })?,
        identity: identity(row.get(2))?,
        account: AccountId(row.get(3)),
        disabled: row.get::<_, Option<std::time::SystemTime>>(4).is_some(),
        revoked: row.get(5),
        account_disabled: row.get(6),
    })
}

fn read_listed(row: &Row) -> Result<ClientListed, StoreError> {
    Ok(ClientListed {
        client: read(row)?,
        label: row.get(7),
        software: row.get(8),
        country: row.get(9),
        created_at_ms: to_ms(row.get(10)),
        disabled_at_ms: row.get::<_, Option<_>>(4).map(to_ms),
        connected: row.get(11),
    })
}

pub(crate) fn identity(bytes: &[u8]) -> Result<PublicIdentity, StoreError> {
    let keys = bytes.try_into().map_err(|_| StoreError::Corrupt { what: "a client's keys" })?;
    Ok(PublicIdentity::from_bytes(keys))
}

#[cfg(test)]
mod tests;
