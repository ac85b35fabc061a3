//! What relays say about themselves and about who is connected to them, and what others read from it.
//!
//! A connection is live if nobody has closed its row, its relay's start is the one that beats, and no verdict says that the
//! relay is gone. So a relay that is gone has nobody, without anyone having to clean up behind it. A relay that is merely silent
//! has all of its clients: silence is not death, and its next beat ends a verdict at once, whoever has given it.

use std::time::SystemTime;

use tokio_postgres::Row;
use trust::{ClientId, ContractId, PublicIdentity, RelayId};
use uuid::Uuid;

use crate::clients::identity;
use crate::session::values;
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// The most rows in one call.
pub const MOST_ROWS: usize = 10_000;
/// The most rows that one statement closes of a relay's earlier starts.
const CLOSED_AT_ONCE: i64 = 5_000;
/// Connections of relays without a record are kept for so long, days: as long as the record itself.
const ORPHAN_DAYS: u32 = 7;
/// A relay that has been silent for so long is tried after the others, s.
const LATE_S: u32 = 30;

/// A relay that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Its name, kept for ever.
    pub relay: RelayId,
    /// Its start.
    pub epoch: u64,
    /// `host:port` that clients dial.
    pub address: String,
    /// How many clients it has.
    pub connections: u32,
    /// It is about to end, and takes nobody.
    pub draining: bool,
    /// When it started, ms since 1970.
    pub started_at_ms: u64,
    /// Number of the key ring that it holds.
    pub ring: u64,
    /// Number of the revocation list that it holds.
    pub revocations: u64,
}

/// A client that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The client.
    pub client: ClientId,
    /// Its start.
    pub epoch: u64,
    /// Name and version of its software, at most 64 bytes.
    pub software: String,
    /// When, ms since 1970.
    pub at_ms: u64,
}

/// A client that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnected {
    /// The client.
    pub client: ClientId,
    /// Its start.
    pub epoch: u64,
    /// A code of the link protocol (`docs/protocol.md` §7), 0 if it is not known.
    pub cause: u16,
    /// When, ms since 1970.
    pub at_ms: u64,
}

/// Bytes that a relay moved under a contract. The same report twice is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The contract.
    pub contract: ContractId,
    /// Counts up within a start of the relay, for each contract or for all.
    pub sequence: u64,
    /// Both directions together, since the report before.
    pub bytes: u64,
}

/// A provider that can be dialled.
#[derive(Clone, Debug)]
pub struct Candidate {
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
    /// Its relay's last beat, ms since 1970.
    pub seen_at_ms: u64,
}

/// Candidates, and how many there are.
#[derive(Clone, Debug, Default)]
pub struct CandidatesFound {
    /// At most as many as were asked for, in random order.
    pub candidates: Vec<Candidate>,
    /// How many fit and are connected.
    pub connected: u64,
    /// How many fit, connected or not.
    pub registered: u64,
}

/// What came of a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beaten {
    /// It is written into the relay's record.
    Known,
    /// There was no record: this is the first beat of all, or the record had vanished.
    New,
    /// A later start of this relay beats: this one should end.
    Superseded,
    /// The network has no record yet: none of its api has started on this database.
    NoNetwork,
}

/// A condition on `relay_beat AS b`: no verdict says that this start is gone, or it has beaten since.
pub(crate) const NOT_REMOVED: &str = "NOT EXISTS (SELECT FROM relay_verdict v WHERE v.relay = b.relay \
    AND v.state = 'dead' AND v.epoch = b.epoch AND v.beat_at >= b.beat_at)";

/// Live connections: the highest start of each client, on a relay that is not gone, nor about to end. `further` narrows them.
pub(crate) fn live(further: &str) -> String {
    format!(
        "SELECT DISTINCT ON (l.client) l.client, l.epoch, l.connected_at, b.address, b.beat_at
         FROM connection l
         JOIN network n ON n.network = l.network AND n.name = $1
         JOIN relay_beat b ON b.relay = l.relay AND b.epoch = l.relay_epoch AND NOT b.draining AND {NOT_REMOVED}
         WHERE l.disconnected_at IS NULL {further}
         ORDER BY l.client, l.epoch DESC"
    )
}

impl Store {
    /// Says that a relay lives. An earlier start of it does not overwrite a later one.
    ///
    /// # Errors
    /// The database's.
    pub async fn beat(&self, beat: Beat) -> Result<Beaten, StoreError> {
        let network = self.network.0;
        let (epoch, ring, revocations) = (number(beat.epoch)?, number(beat.ring)?, number(beat.revocations)?);
        self.pool
            .run("a relay's beat", move |session| {
                Box::pin(async move {
                    let sql = "WITH known AS (SELECT network FROM network WHERE name = $1), beaten AS (
                            INSERT INTO relay_beat AS b
                                (relay, network, address, epoch, connections, draining, started_at, beat_at, ring, revocations)
                            SELECT $2, network, $3, $4, $5, $6, $7, now(), $8, $9 FROM known
                            ON CONFLICT (relay) DO UPDATE SET network = excluded.network, address = excluded.address,
                                epoch = excluded.epoch, connections = excluded.connections, draining = excluded.draining,
                                started_at = excluded.started_at, beat_at = excluded.beat_at,
                                ring_since = CASE WHEN b.ring = excluded.ring AND b.epoch = excluded.epoch
                                    THEN b.ring_since ELSE excluded.beat_at END,
                                ring = excluded.ring, revocations = excluded.revocations
                            WHERE b.epoch <= excluded.epoch
                            RETURNING b.xmax = 0 AS is_new)
                        SELECT (SELECT is_new FROM beaten) FROM known";
                    let values = values![
                        &network[..] => BYTEA,
                        beat.relay.0 => UUID,
                        beat.address => TEXT,
                        epoch => INT8,
                        i32::try_from(beat.connections).unwrap_or(i32::MAX) => INT4,
                        beat.draining => BOOL,
                        from_ms(beat.started_at_ms) => TIMESTAMPTZ,
                        ring => INT8,
                        revocations => INT8,
                    ];
                    // A row that was inserted has no transaction that updated it.
                    Ok(match session.row(sql, &values).await?.map(|row| row.get(0)) {
                        Some(Some(true)) => Beaten::New,
                        Some(Some(false)) => Beaten::Known,
                        Some(None) => Beaten::Superseded,
                        None => Beaten::NoNetwork,
                    })
                })
            })
            .await
    }

    /// Closes connections of a relay's earlier starts: they ended with it. Returns how many; call again until it is 0.
    ///
    /// # Errors
    /// The database's.
    pub async fn close_earlier_connections(&self, relay: RelayId, epoch: u64) -> Result<u64, StoreError> {
        let epoch = number(epoch)?;
        self.pool
            .run("closing connections of earlier starts", move |session| {
                Box::pin(async move {
                    let sql = "UPDATE connection SET disconnected_at = now(), cause = 0
                        WHERE ctid = ANY (ARRAY(SELECT ctid FROM connection
                            WHERE relay = $1 AND relay_epoch < $2 AND disconnected_at IS NULL LIMIT $3))";
                    session
                        .execute(sql, &values![relay.0 => UUID, epoch => INT8, CLOSED_AT_ONCE => INT8])
                        .await
                })
            })
            .await
    }

    /// Deletes connections that nobody has closed, of relays that have no record any more: a relay that ended for good, and whose
    /// record is past its keep, closes none. A relay that lives puts its record back, and its connections. Returns how many; call
    /// again until it is 0.
    ///
    /// # Errors
    /// The database's.
    pub async fn drop_orphaned_connections(&self) -> Result<u64, StoreError> {
        self.pool
            .run("dropping connections of relays that are gone for good", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "DELETE FROM connection WHERE ctid = ANY (ARRAY(
                            SELECT l.ctid FROM connection l WHERE l.disconnected_at IS NULL
                              AND l.connected_at < now() - interval '{ORPHAN_DAYS} days'
                              AND NOT EXISTS (SELECT FROM relay_beat b WHERE b.relay = l.relay) LIMIT $1))"
                    );
                    session.execute(&sql, &values![CLOSED_AT_ONCE => INT8]).await
                })
            })
            .await
    }

    /// Writes down who came and who went, in one transaction. Again is the same. A start that comes again is connected again. No
    /// (client, epoch) twice in `came`. At most 10,000 of each.
    ///
    /// # Errors
    /// The database's; [`StoreError::Invalid`] for more.
    pub async fn record_connections(
        &self,
        relay: RelayId,
        relay_epoch: u64,
        came: Vec<Connected>,
        went: Vec<Disconnected>,
    ) -> Result<(), StoreError> {
        bounded(came.len().max(went.len()))?;
        let network = self.network.0;
        let relay_epoch = number(relay_epoch)?;
        self.pool
            .run("writing connections", move |session| {
                Box::pin(async move {
                    session.begin().await?;
                    if !came.is_empty() {
                        let sql = "INSERT INTO connection AS l
                                (client, epoch, relay, relay_epoch, network, software, connected_at)
                            SELECT DISTINCT ON (t.client, t.epoch)
                                t.client, t.epoch, $2, $3, n.network, t.software, t.connected_at
                            FROM network n, unnest($4::uuid[], $5::int8[], $6::text[], $7::timestamptz[])
                                AS t (client, epoch, software, connected_at)
                            WHERE n.name = $1 ORDER BY t.client, t.epoch, t.connected_at DESC
                            ON CONFLICT (client, epoch, relay, relay_epoch) DO UPDATE
                            SET connected_at = excluded.connected_at, software = excluded.software,
                                disconnected_at = NULL, cause = NULL
                            WHERE l.connected_at < excluded.connected_at";
                        let values = values![
                            &network[..] => BYTEA,
                            relay.0 => UUID,
                            relay_epoch => INT8,
                            came.iter().map(|row| row.client.0).collect::<Vec<Uuid>>() => UUID_ARRAY,
                            came.iter().map(|row| number(row.epoch)).collect::<Result<Vec<i64>, _>>()? => INT8_ARRAY,
                            came.iter().map(|row| short(&row.software)).collect::<Vec<&str>>() => TEXT_ARRAY,
                            came.iter().map(|row| from_ms(row.at_ms)).collect::<Vec<SystemTime>>() => TIMESTAMPTZ_ARRAY,
                        ];
                        session.execute(sql, &values).await?;
                    }
                    if !went.is_empty() {
                        let sql = "UPDATE connection l SET disconnected_at = t.disconnected_at, cause = t.cause
                            FROM unnest($3::uuid[], $4::int8[], $5::int2[], $6::timestamptz[])
                                AS t (client, epoch, cause, disconnected_at)
                            WHERE l.client = t.client AND l.epoch = t.epoch AND l.relay = $1 AND l.relay_epoch = $2
                              AND l.disconnected_at IS NULL AND l.connected_at <= t.disconnected_at";
                        let values = values![
                            relay.0 => UUID,
                            relay_epoch => INT8,
                            went.iter().map(|row| row.client.0).collect::<Vec<Uuid>>() => UUID_ARRAY,
                            went.iter().map(|row| number(row.epoch)).collect::<Result<Vec<i64>, _>>()? => INT8_ARRAY,
                            went.iter().map(|row| i16::try_from(row.cause).unwrap_or(0)).collect::<Vec<i16>>() => INT2_ARRAY,
                            went.iter().map(|row| from_ms(row.at_ms)).collect::<Vec<SystemTime>>() => TIMESTAMPTZ_ARRAY,
                        ];
                        session.execute(sql, &values).await?;
                    }
                    session.commit().await
                })
            })
            .await
    }

    /// Writes reports of usage down, in one statement. Reports that are there already are left as they are. At most 10,000.
    ///
    /// # Errors
    /// The database's; [`StoreError::Invalid`] for more.
    pub async fn record_usage(
        &self,
        relay: RelayId,
        relay_epoch: u64,
        reports: Vec<Usage>,
    ) -> Result<(), StoreError> {
        bounded(reports.len())?;
        let relay_epoch = number(relay_epoch)?;
        self.pool
            .run("writing usage", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO usage (contract, relay, relay_epoch, sequence, bytes)
                        SELECT t.contract, $1, $2, t.sequence, t.bytes
                        FROM unnest($3::uuid[], $4::int8[], $5::int8[]) AS t (contract, sequence, bytes)
                        ORDER BY t.contract, t.sequence
                        ON CONFLICT DO NOTHING";
                    let values = values![
                        relay.0 => UUID,
                        relay_epoch => INT8,
                        reports.iter().map(|row| row.contract.0).collect::<Vec<Uuid>>() => UUID_ARRAY,
                        reports.iter().map(|row| number(row.sequence)).collect::<Result<Vec<i64>, _>>()? => INT8_ARRAY,
                        reports.iter().map(|row| number(row.bytes)).collect::<Result<Vec<i64>, _>>()? => INT8_ARRAY,
                    ];
                    session.execute(sql, &values).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Relays that take clients, in the order in which they should be tried: those that beat, and of these the ones with the
    /// fewest clients, before those that are late.
    ///
    /// # Errors
    /// The database's.
    pub async fn relay_addresses(&self, most: u32) -> Result<Vec<String>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("listing relays", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT b.address FROM relay_beat b JOIN network n USING (network)
                         WHERE n.name = $1 AND NOT b.draining AND {NOT_REMOVED}
                         ORDER BY b.beat_at < now() - interval '{LATE_S} s', b.connections, b.relay LIMIT $2"
                    );
                    let values = values![&network[..] => BYTEA, i64::from(most) => INT8];
                    Ok(session.rows(&sql, &values).await?.iter().map(|row| row.get(0)).collect())
                })
            })
            .await
    }

    /// Connected providers of a country (or of all, or this one), at most `most` in random order.
    ///
    /// # Errors
    /// The database's.
    pub async fn candidates(
        &self,
        country: Option<String>,
        provider: Option<ClientId>,
        most: u32,
    ) -> Result<CandidatesFound, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking for providers", move |session| {
                Box::pin(async move {
                    let live = live(if provider.is_some() { "AND l.client = $3" } else { "" });
                    let sql = format!(
                        "WITH live AS ({live}), fitting AS (
                            SELECT c.client, c.identity, c.country FROM client c JOIN network n USING (network)
                            JOIN account a USING (account)
                            WHERE n.name = $1 AND c.role = 1 AND c.disabled_at IS NULL AND a.disabled_at IS NULL
                              AND ($2::text IS NULL OR c.country = $2) AND ($3::uuid IS NULL OR c.client = $3)),
                        found AS (SELECT * FROM live JOIN fitting USING (client))
                        SELECT f.client, f.epoch, f.identity, f.address, f.country, f.connected_at, f.beat_at,
                            t.connected, t.registered
                        FROM (SELECT (SELECT count(*) FROM found) AS connected, (SELECT count(*) FROM fitting) AS registered) t
                        LEFT JOIN (SELECT * FROM found ORDER BY random() LIMIT $4) f ON true"
                    );
                    let values = values![
                        &network[..] => BYTEA,
                        country => TEXT,
                        provider.map(|provider| provider.0) => UUID,
                        i64::from(most) => INT8,
                    ];
                    let rows = session.rows(&sql, &values).await?;
                    let mut found = CandidatesFound::default();
                    for row in &rows {
                        found.connected = unsigned(row.get(7));
                        found.registered = unsigned(row.get(8));
                        if row.get::<_, Option<Uuid>>(0).is_some() {
                            found.candidates.push(candidate(row)?);
                        }
                    }
                    Ok(found)
                })
            })
            .await
    }

    /// Connected providers by country.
    ///
    /// # Errors
    /// The database's.
    pub async fn locations(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("counting providers by country", move |session| {
                Box::pin(async move {
                    let live = live("");
                    let sql = format!(
                        "WITH live AS ({live}) SELECT c.country, count(*) FROM live JOIN client c USING (client)
                         WHERE c.role = 1 AND c.disabled_at IS NULL GROUP BY c.country ORDER BY 2 DESC, 1"
                    );
                    let rows = session.rows(&sql, &values![&network[..] => BYTEA]).await?;
                    Ok(rows.iter().map(|row| (row.get(0), unsigned(row.get(1)))).collect())
                })
            })
            .await
    }
}

fn candidate(row: &Row) -> Result<Candidate, StoreError> {
    Ok(Candidate {
        provider: ClientId(row.get(0)),
        epoch: unsigned(row.get(1)),
        identity: identity(row.get(2))?,
        relay: row.get(3),
        country: row.get(4),
        connected_at_ms: to_ms(row.get(5)),
        seen_at_ms: to_ms(row.get(6)),
    })
}

/// At most 64 bytes of a text, whole characters.
fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(64)).unwrap_or_default()
}

pub(crate) fn bounded(rows: usize) -> Result<(), StoreError> {
    if rows > MOST_ROWS {
        return Err(StoreError::Invalid { what: "more than 10,000 rows in one call" });
    }
    Ok(())
}

pub(crate) fn number(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::Invalid { what: "a number above 2^63 - 1" })
}

pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
