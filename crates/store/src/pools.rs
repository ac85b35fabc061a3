//! Generations of pools: what the worker builds them from, and how they are kept and read.

use trust::{BlobHash, ClientId, PublicIdentity};

use crate::clients::identity;
use crate::relays::{NOT_REMOVED, live, number, unsigned};
use crate::session::{Session, values};
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// Generations that are kept, with the bytes that they name: whoever reads one of the last may finish.
pub const GENERATIONS_KEPT: i64 = 10;
/// The most connected providers that a generation is built from.
const MOST_LIVE: i64 = 200_000;
/// A relay that has not beaten for so long is not missed any more, ms.
const KNOWN_MS: u64 = 3_600_000;
/// A stream that worked so long ago says that its provider works, ms.
const VERIFIED_MS: u64 = 3_600_000;

/// A provider that is connected.
#[derive(Clone, Debug)]
pub struct LiveProvider {
    /// Its name.
    pub provider: ClientId,
    /// Its start.
    pub epoch: u64,
    /// Its keys.
    pub identity: PublicIdentity,
    /// Its relay's `host:port`.
    pub relay: String,
    /// Where it says that it is.
    pub country: Option<String>,
    /// Since when it has been connected, ms since 1970.
    pub connected_at_ms: u64,
    /// A stream through it that began within the last hour has worked and ended.
    pub verified: bool,
}

/// Everybody who is connected, and how far that can be trusted.
#[derive(Clone, Debug, Default)]
pub struct LiveNetwork {
    /// Connected providers.
    pub providers: Vec<LiveProvider>,
    /// Providers that are registered and not disabled.
    pub registered: u64,
    /// Relays that have beaten lately and take clients.
    pub relays_fresh: u32,
    /// Of them, those that have started only lately.
    pub relays_settling: u32,
    /// Relays that should beat.
    pub relays_known: u32,
}

/// A pool of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolRow {
    /// `best`, or a country.
    pub name: String,
    /// The name of its bytes.
    pub hash: BlobHash,
    /// Providers in the list.
    pub listed: u32,
    /// Providers that are connected.
    pub connected: u32,
    /// Of those that are listed: verified.
    pub verified: u32,
}

/// A generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Grows.
    pub number: u64,
    /// When it was built, ms since 1970.
    pub built_at_ms: u64,
    /// When it was last found to be still so.
    pub confirmed_at_ms: u64,
    /// About how often the worker looks.
    pub every_ms: u64,
    /// Registered providers.
    pub registered: u64,
    /// Why the next one is held, while it is.
    pub held_cause: Option<String>,
    /// Its pools.
    pub pools: Vec<PoolRow>,
}

impl Store {
    /// Connected providers, and what the list is worth.
    ///
    /// # Errors
    /// The database's.
    pub async fn live_network(
        &self,
        now_ms: u64,
        relay_silence_ms: u64,
        settling_ms: u64,
    ) -> Result<LiveNetwork, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking for connected providers", move |session| {
                Box::pin(async move {
                    let mut found = relays(session, &network, now_ms, relay_silence_ms, settling_ms).await?;
                    let live = live("");
                    // One look into the index for each provider: the cost does not grow with streams.
                    let sql = format!(
                        "WITH live AS MATERIALIZED ({live})
                         SELECT c.client, l.epoch, c.identity, l.address, c.country, l.connected_at,
                             EXISTS (SELECT FROM exit_record e WHERE e.provider = c.client AND e.opened_at > $2)
                         FROM live l JOIN client c USING (client) JOIN account a USING (account)
                         WHERE c.role = 1 AND c.disabled_at IS NULL AND a.disabled_at IS NULL LIMIT {MOST_LIVE}"
                    );
                    let values = values![
                        &network[..] => BYTEA,
                        from_ms(now_ms.saturating_sub(VERIFIED_MS)) => TIMESTAMPTZ,
                    ];
                    for row in session.rows(&sql, &values).await? {
                        found.providers.push(LiveProvider {
                            provider: ClientId(row.get(0)),
                            epoch: unsigned(row.get(1)),
                            identity: identity(row.get(2))?,
                            relay: row.get(3),
                            country: row.get(4),
                            connected_at_ms: to_ms(row.get(5)),
                            verified: row.get(6),
                        });
                    }
                    Ok(found)
                })
            })
            .await
    }

    /// The newest generation.
    ///
    /// # Errors
    /// The database's.
    pub async fn generation(&self) -> Result<Option<Generation>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("reading the newest generation of pools", move |session| {
                Box::pin(async move {
                    let sql =
                        "SELECT g.number, g.built_at, g.confirmed_at, g.every_ms, g.registered, g.held_cause,
                            g.names, g.hashes, g.listed, g.connected, g.verified
                        FROM pool_generation g JOIN network n USING (network)
                        WHERE n.name = $1 ORDER BY g.number DESC LIMIT 1";
                    let row = session.row(sql, &values![&network[..] => BYTEA]).await?;
                    row.map(|row| generation(&row)).transpose()
                })
            })
            .await
    }

    /// The bytes of one pool.
    ///
    /// # Errors
    /// The database's.
    pub async fn pool_blob(&self, hash: BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("reading a pool", move |session| {
                Box::pin(async move {
                    let sql = "SELECT b.body FROM pool_blob b JOIN network n USING (network)
                        WHERE n.name = $1 AND b.hash = $2";
                    let values = values![&network[..] => BYTEA, &hash.0[..] => BYTEA];
                    Ok(session.row(sql, &values).await?.map(|row| row.get(0)))
                })
            })
            .await
    }

    /// Publishes a generation whole, with the bytes that are new, and drops those that are too old. `false`: there is one of this
    /// number or a higher one, and nothing was done.
    ///
    /// # Errors
    /// The database's.
    pub async fn publish_generation(
        &self,
        generation: Generation,
        blobs: Vec<(BlobHash, Vec<u8>)>,
    ) -> Result<bool, StoreError> {
        let network = self.network.0;
        let (new, every_ms) = (number(generation.number)?, number(generation.every_ms)?);
        let registered = number(generation.registered)?;
        self.pool
            .run("publishing a generation of pools", move |session| {
                Box::pin(async move {
                    session.begin().await?;
                    let pools = &generation.pools;
                    let all = |count: fn(&PoolRow) -> u32| -> Vec<i32> {
                        pools.iter().map(|pool| i32::try_from(count(pool)).unwrap_or(i32::MAX)).collect()
                    };
                    let sql = "INSERT INTO pool_generation (network, number, built_at, confirmed_at, every_ms, registered,
                            names, hashes, listed, connected, verified)
                        SELECT n.network, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM network n
                        WHERE n.name = $1 AND NOT EXISTS
                            (SELECT FROM pool_generation g WHERE g.network = n.network AND g.number >= $2)
                        ON CONFLICT DO NOTHING";
                    let values = values![
                        &network[..] => BYTEA,
                        new => INT8,
                        from_ms(generation.built_at_ms) => TIMESTAMPTZ,
                        from_ms(generation.confirmed_at_ms) => TIMESTAMPTZ,
                        every_ms => INT8,
                        registered => INT8,
                        pools.iter().map(|pool| pool.name.as_str()).collect::<Vec<&str>>() => TEXT_ARRAY,
                        pools.iter().map(|pool| &pool.hash.0[..]).collect::<Vec<&[u8]>>() => BYTEA_ARRAY,
                        all(|pool| pool.listed) => INT4_ARRAY,
                        all(|pool| pool.connected) => INT4_ARRAY,
                        all(|pool| pool.verified) => INT4_ARRAY,
                    ];
                    if session.execute(sql, &values).await? != 1 {
                        session.rollback().await?;
                        return Ok(false);
                    }
                    // One by one: together they may be longer than a statement should be.
                    for (hash, body) in &blobs {
                        let sql = "INSERT INTO pool_blob AS b (network, hash, body, last_number)
                            SELECT n.network, $2, $3, $4 FROM network n WHERE n.name = $1
                            ON CONFLICT (network, hash) DO NOTHING";
                        let values =
                            values![&network[..] => BYTEA, &hash.0[..] => BYTEA, &body[..] => BYTEA, new => INT8];
                        session.execute(sql, &values).await?;
                    }
                    let sql = "UPDATE pool_blob b SET last_number = $2 FROM network n
                        WHERE n.name = $1 AND b.network = n.network AND b.hash = ANY ($3) AND b.last_number < $2";
                    let hashes = pools.iter().map(|pool| &pool.hash.0[..]).collect::<Vec<&[u8]>>();
                    session
                        .execute(sql, &values![&network[..] => BYTEA, new => INT8, hashes => BYTEA_ARRAY])
                        .await?;
                    drop_old(session, &network).await?;
                    session.commit().await?;
                    Ok(true)
                })
            })
            .await
    }

    /// The newest generation is still so, or (with a cause) the next one is held and nobody vouches for this one.
    ///
    /// # Errors
    /// The database's.
    pub async fn confirm_generation(
        &self,
        generation: u64,
        confirmed_at_ms: u64,
        held_cause: Option<String>,
    ) -> Result<(), StoreError> {
        let network = self.network.0;
        let generation = number(generation)?;
        self.pool
            .run("confirming a generation of pools", move |session| {
                Box::pin(async move {
                    let sql = "UPDATE pool_generation g SET held_cause = left($4, 200),
                            confirmed_at = CASE WHEN $4::text IS NULL THEN greatest(g.confirmed_at, $3) ELSE g.confirmed_at END
                        FROM network n WHERE n.name = $1 AND g.network = n.network AND g.number = $2";
                    let values = values![
                        &network[..] => BYTEA,
                        generation => INT8,
                        from_ms(confirmed_at_ms) => TIMESTAMPTZ,
                        held_cause => TEXT,
                    ];
                    session.execute(sql, &values).await?;
                    Ok(())
                })
            })
            .await
    }
}

async fn relays(
    session: &Session,
    network: &[u8],
    now_ms: u64,
    relay_silence_ms: u64,
    settling_ms: u64,
) -> Result<LiveNetwork, StoreError> {
    let sql = format!(
        "SELECT
            count(*) FILTER (WHERE b.beat_at > $2),
            count(*) FILTER (WHERE b.beat_at > $2 AND b.started_at > $3),
            count(*),
            (SELECT count(*) FROM client c JOIN network o USING (network) WHERE o.name = $1 AND c.role = 1
                AND c.disabled_at IS NULL)
        FROM relay_beat b JOIN network n USING (network)
        WHERE n.name = $1 AND b.beat_at > $4 AND NOT b.draining AND {NOT_REMOVED}"
    );
    let values = values![
        network => BYTEA,
        from_ms(now_ms.saturating_sub(relay_silence_ms)) => TIMESTAMPTZ,
        from_ms(now_ms.saturating_sub(settling_ms)) => TIMESTAMPTZ,
        from_ms(now_ms.saturating_sub(KNOWN_MS)) => TIMESTAMPTZ,
    ];
    let mut found = LiveNetwork::default();
    if let Some(row) = session.row(&sql, &values).await? {
        let count = |place: usize| u32::try_from(row.get::<_, i64>(place)).unwrap_or(u32::MAX);
        (found.relays_fresh, found.relays_settling, found.relays_known) = (count(0), count(1), count(2));
        found.registered = unsigned(row.get(3));
    }
    Ok(found)
}

async fn drop_old(session: &Session, network: &[u8]) -> Result<(), StoreError> {
    let oldest = format!(
        "SELECT g.number FROM pool_generation g JOIN network n USING (network) WHERE n.name = $1
         ORDER BY g.number DESC LIMIT 1 OFFSET {}",
        GENERATIONS_KEPT - 1
    );
    for (table, column) in [("pool_blob", "last_number"), ("pool_generation", "number")] {
        let sql = format!(
            "DELETE FROM {table} t USING network n
             WHERE n.name = $1 AND t.network = n.network AND t.{column} < ({oldest})"
        );
        session.execute(&sql, &values![network => BYTEA]).await?;
    }
    Ok(())
}

fn generation(row: &tokio_postgres::Row) -> Result<Generation, StoreError> {
    let names: Vec<String> = row.get(6);
    let hashes: Vec<Vec<u8>> = row.get(7);
    let counts = |place: usize| -> Vec<u32> {
        let counts: Vec<i32> = row.get(place);
        counts.into_iter().map(|count| u32::try_from(count).unwrap_or_default()).collect()
    };
    let mut pools = Vec::with_capacity(names.len());
    let figures = counts(8).into_iter().zip(counts(9)).zip(counts(10));
    for ((name, hash), ((listed, connected), verified)) in names.into_iter().zip(hashes).zip(figures) {
        let hash = hash.try_into().map_err(|_| StoreError::Corrupt { what: "the hash of a pool" })?;
        pools.push(PoolRow { name, hash: BlobHash(hash), listed, connected, verified });
    }
    Ok(Generation {
        number: unsigned(row.get(0)),
        built_at_ms: to_ms(row.get(1)),
        confirmed_at_ms: to_ms(row.get(2)),
        every_ms: unsigned(row.get(3)),
        registered: unsigned(row.get(4)),
        held_cause: row.get(5),
        pools,
    })
}

#[cfg(test)]
mod tests;
