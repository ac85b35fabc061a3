//! What has changed, for readers that are many: one statement tells it all, however many clients it concerns.
//!
//! A reader's cursor is the oldest transaction that was still running when it last read. Whatever commits later was either
//! running then, or began since: so nothing that commits late is jumped over. What comes twice changes nothing.

use tokio_postgres::Row;
use trust::ClientId;

use crate::relays::unsigned;
use crate::session::{Session, values};
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// The most changes that one call reads one by one; beyond that, it reads everything that holds.
pub const MOST_CHANGES: i32 = 5_000;
/// The most refused clients that one call gives; beyond that, those whose refusal is older are left out.
pub const MOST_REFUSED: i32 = 100_000;

/// What is written down in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Disabled,
    Enabled,
    Revoked,
    KeyRing,
    Revocations,
}

impl Change {
    pub(crate) const fn number(self) -> i16 {
        match self {
            Self::Disabled => 1,
            Self::Enabled => 2,
            Self::Revoked => 3,
            Self::KeyRing => 4,
            Self::Revocations => 5,
        }
    }
}

/// How far a reader has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeCursor(u64);

impl ChangeCursor {
    /// Before everything that was ever written.
    #[must_use]
    pub const fn beginning() -> Self {
        Self(0)
    }
}

/// Why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientRefusal {
    /// It was revoked.
    Revoked,
    /// It was disabled.
    Disabled,
    /// Its account was disabled.
    AccountDisabled,
}

/// How a client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientStanding {
    /// The client.
    pub client: ClientId,
    /// Why it is refused, and since when, ms since 1970; `None`: it is not.
    pub refused: Option<(ClientRefusal, u64)>,
}

/// What a reader hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// To be handed in at the next call.
    pub cursor: ChangeCursor,
    /// Number of the newest key ring; 0: there is none.
    pub ring: u64,
    /// Number of the newest revocation list; 0: there is none.
    pub revocations: u64,
    /// How those clients stand that have changed, or all that are refused.
    pub clients: Vec<ClientStanding>,
    /// `clients` are all that are refused; whoever is not among them is not.
    pub is_whole: bool,
}

/// What both statements give first: how far this one reaches, and the documents' numbers.
const HEAD: &str = "pg_snapshot_xmin(s.snapshot)::text::bigint, pg_snapshot_xmax(s.snapshot)::text::bigint,
    (SELECT d.number FROM trust_document d JOIN n USING (network) WHERE d.kind = 1),
    (SELECT d.number FROM trust_document d JOIN n USING (network) WHERE d.kind = 2)";
const WITH: &str = "WITH n AS (SELECT network FROM network WHERE name = $1), s AS (SELECT pg_current_snapshot() AS snapshot)";

impl Store {
    /// What has changed since `cursor`. Without one, or if it is not this database's, or if too much has changed: everything that
    /// holds, with the clients that have been refused since `refused_since_ms` (who was refused before has no token any more).
    ///
    /// # Errors
    /// The database's.
    pub async fn changes(
        &self,
        cursor: Option<ChangeCursor>,
        refused_since_ms: u64,
    ) -> Result<Changes, StoreError> {
        let network = self.network.0;
        self.pool
            .run("reading what has changed", move |session| {
                Box::pin(async move {
                    if let Some(cursor) = cursor
                        && let Some(changes) = since(session, &network, cursor).await?
                    {
                        return Ok(changes);
                    }
                    whole(session, &network, refused_since_ms).await
                })
            })
            .await
    }
}

/// `None`: a cursor of another database, or more than is read one by one.
async fn since(
    session: &Session,
    network: &[u8; 32],
    cursor: ChangeCursor,
) -> Result<Option<Changes>, StoreError> {
    let sql = format!(
        "{WITH} SELECT {HEAD}, c.client, c.cause, c.refused_at,
            (SELECT count(*) FROM (SELECT FROM change_log l JOIN n USING (network) WHERE l.written_by >= $2::xid8 LIMIT $3 + 1) few)
         FROM s LEFT JOIN LATERAL (SELECT f.* FROM n, changed_clients(n.network, $2::xid8, $3) f) c ON true"
    );
    let values = values![&network[..] => BYTEA, cursor.0.to_string() => TEXT, MOST_CHANGES => INT4];
    let rows = session.rows(&sql, &values).await?;
    let first = rows.first().ok_or(StoreError::Corrupt { what: "an answer without a row" })?;
    if cursor.0 > unsigned(first.get(1)) || first.get::<_, i64>(7) > i64::from(MOST_CHANGES) {
        return Ok(None);
    }
    read(&rows, first, false).map(Some)
}

async fn whole(session: &Session, network: &[u8; 32], refused_since_ms: u64) -> Result<Changes, StoreError> {
    let sql = format!(
        "{WITH} SELECT {HEAD}, c.client, c.cause, c.refused_at
         FROM s LEFT JOIN LATERAL (SELECT f.* FROM n, refused_clients(n.network, $2, $3) f) c ON true"
    );
    let values =
        values![&network[..] => BYTEA, from_ms(refused_since_ms) => TIMESTAMPTZ, MOST_REFUSED => INT4];
    let rows = session.rows(&sql, &values).await?;
    let first = rows.first().ok_or(StoreError::Corrupt { what: "an answer without a row" })?;
    read(&rows, first, true)
}

fn read(rows: &[Row], first: &Row, is_whole: bool) -> Result<Changes, StoreError> {
    let number = |column| first.get::<_, Option<i64>>(column).map_or(0, unsigned);
    let clients = rows.iter().filter(|row| row.get::<_, Option<uuid::Uuid>>(4).is_some()).map(standing);
    Ok(Changes {
        cursor: ChangeCursor(unsigned(first.get(0))),
        ring: number(2),
        revocations: number(3),
        clients: clients.collect::<Result<_, _>>()?,
        is_whole,
    })
}

fn standing(row: &Row) -> Result<ClientStanding, StoreError> {
    let why = match row.get::<_, i16>(5) {
        0 => None,
        1 => Some(ClientRefusal::Revoked),
        2 => Some(ClientRefusal::Disabled),
        3 => Some(ClientRefusal::AccountDisabled),
        _ => return Err(StoreError::Corrupt { what: "the cause of a client's refusal" }),
    };
    let since_ms = row.get::<_, Option<_>>(6).map_or(0, to_ms);
    Ok(ClientStanding { client: ClientId(row.get(4)), refused: why.map(|why| (why, since_ms)) })
}

/// Notes a change of the network's documents, or of a client; in the transaction of that change.
pub(crate) async fn note(
    session: &Session,
    network: &[u8; 32],
    change: Change,
    subject: Option<ClientId>,
) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO change_log (network, kind, subject) SELECT network, $2, $3 FROM network WHERE name = $1";
    let values = values![
        &network[..] => BYTEA,
        change.number() => INT2,
        subject.map(|client| client.0) => UUID,
    ];
    session.execute(sql, &values).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
