//! Who checks tokens, and which documents each of them holds: before a new key signs, all who live have to know it.

use trust::KeyId;
use uuid::Uuid;

use crate::relays::{number, unsigned};
use crate::session::values;
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// The most verifiers that are listed.
const MOST_LISTED: i64 = 10_000;

/// An api that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiBeat {
    /// This start of it.
    pub api: Uuid,
    /// When it started, ms since 1970.
    pub started_at_ms: u64,
    /// Number of the key ring that it holds.
    pub ring: u64,
    /// Number of the revocation list that it holds.
    pub revocations: u64,
    /// Token keys whose secrets it has.
    pub holds: Vec<KeyId>,
    /// The one that it signs with.
    pub signs_with: Option<KeyId>,
}

/// What kind of process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifierKind {
    /// A relay, and its address.
    Relay(String),
    /// An api, and the token keys that it could sign with.
    Api {
        /// Names of the keys whose secrets it has.
        holds: Vec<String>,
        /// The name of the one that it signs with.
        signs_with: Option<String>,
    },
}

/// A process that checks tokens, as it last said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    /// Its name.
    pub name: Uuid,
    /// What it is.
    pub kind: VerifierKind,
    /// Number of the key ring that it holds; 0: none, or it does not say.
    pub ring: u64,
    /// Since when it has held that, ms since 1970.
    pub ring_since_ms: u64,
    /// Number of the revocation list that it holds.
    pub revocations: u64,
    /// Its last beat, ms since 1970.
    pub beat_at_ms: u64,
}

impl Store {
    /// Says that an api lives.
    ///
    /// # Errors
    /// The database's.
    pub async fn beat_api(&self, beat: ApiBeat) -> Result<(), StoreError> {
        let network = self.network.0;
        let (ring, revocations) = (number(beat.ring)?, number(beat.revocations)?);
        self.pool
            .run("an api's beat", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO api_beat AS b
                            (api, network, ring, ring_since, revocations, holds, signs_with, started_at, beat_at)
                        SELECT $2, network, $3, now(), $4, $5, $6, $7, now() FROM network WHERE name = $1
                        ON CONFLICT (api) DO UPDATE SET beat_at = excluded.beat_at,
                            ring_since = CASE WHEN b.ring = excluded.ring THEN b.ring_since ELSE excluded.beat_at END,
                            ring = excluded.ring, revocations = excluded.revocations,
                            holds = excluded.holds, signs_with = excluded.signs_with";
                    let holds: Vec<String> = beat.holds.iter().map(ToString::to_string).collect();
                    let values = values![
                        &network[..] => BYTEA,
                        beat.api => UUID,
                        ring => INT8,
                        revocations => INT8,
                        holds => TEXT_ARRAY,
                        beat.signs_with.map(|id| id.to_string()) => TEXT,
                        from_ms(beat.started_at_ms) => TIMESTAMPTZ,
                    ];
                    session.execute(sql, &values).await?;
                    Ok(())
                })
            })
            .await
    }

    /// An api that ends says so: nobody waits for it any more.
    ///
    /// # Errors
    /// The database's.
    pub async fn end_api(&self, api: Uuid) -> Result<(), StoreError> {
        self.pool
            .run("an api's end", move |session| {
                Box::pin(async move {
                    let sql = "UPDATE api_beat SET beat_at = 'epoch' WHERE api = $1";
                    session.execute(sql, &values![api => UUID]).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Who has beaten within the last `silence_ms` by the database's clock: relays, then apis. Whoever has not is not waited for.
    ///
    /// # Errors
    /// The database's.
    pub async fn verifiers(&self, silence_ms: u64) -> Result<Vec<Verifier>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("listing who checks tokens", move |session| {
                Box::pin(async move {
                    let sql = "SELECT v.* FROM network n, LATERAL (
                            SELECT b.relay, b.ring, b.ring_since, b.revocations, b.beat_at, b.address, NULL::text[], NULL::text
                                FROM relay_beat b WHERE b.network = n.network
                            UNION ALL SELECT a.api, a.ring, a.ring_since, a.revocations, a.beat_at, NULL, a.holds, a.signs_with
                                FROM api_beat a WHERE a.network = n.network) v (name, ring, since, revocations, beat_at, address, holds, signs)
                        WHERE n.name = $1 AND v.beat_at > now() - $2 * interval '1 ms' ORDER BY v.address, v.name LIMIT $3";
                    let silence_ms = number(silence_ms)?;
                    let values = values![&network[..] => BYTEA, silence_ms => INT8, MOST_LISTED => INT8];
                    let rows = session.rows(sql, &values).await?;
                    let read = |row: &tokio_postgres::Row| Verifier {
                        name: row.get(0),
                        ring: unsigned(row.get(1)),
                        ring_since_ms: to_ms(row.get(2)),
                        revocations: unsigned(row.get(3)),
                        beat_at_ms: to_ms(row.get(4)),
                        kind: match row.get::<_, Option<String>>(5) {
                            Some(address) => VerifierKind::Relay(address),
                            None => VerifierKind::Api { holds: row.get(6), signs_with: row.get(7) },
                        },
                    };
                    Ok(rows.iter().map(read).collect())
                })
            })
            .await
    }
}
