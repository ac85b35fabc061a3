//! What is said about relays: by their peers, and by the worker.

use std::time::SystemTime;

use tokio_postgres::Row;
use trust::RelayId;
use uuid::Uuid;

use crate::relays::{number, unsigned};
use crate::session::values;
use crate::time::{from_ms, to_ms};
use crate::{Store, StoreError};

/// Relays that are judged at most.
pub const MOST_JUDGED: usize = 1_000;
/// Words of relays about others that are read at most.
const MOST_WORDS: i64 = 4_000;
/// Relays that one relay is asked about at most.
const MOST_ASKED: i64 = 16;
/// Workers that are listed at most.
const MOST_WORKERS: i64 = 64;
/// A moment as a number that is exact: microseconds.
const STAMP: &str = "(extract(epoch FROM b.beat_at) * 1000000)::int8";

/// That a worker lives, and what it says of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerBeat {
    /// This start of it.
    pub worker: Uuid,
    /// Why nobody is removed, and since when (ms since 1970).
    pub hold: Option<(&'static str, u64)>,
    /// Relays that count.
    pub relays: u32,
    /// Those of them that are late.
    pub late: u32,
}

/// A relay's record and what the worker last said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelaySeen {
    /// Its name.
    pub relay: RelayId,
    /// Its start.
    pub epoch: u64,
    /// Of its last beat: grows with each.
    pub stamp: u64,
    /// `host:port` that clients dial.
    pub address: String,
    /// It is about to end.
    pub draining: bool,
    /// What stands.
    pub verdict: Option<RelayVerdict>,
    /// How long ago it was removed last, ms of the database's clock.
    pub removed_ms_ago: Option<u64>,
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayVerdict {
    /// About whom.
    pub relay: RelayId,
    /// About which start.
    pub epoch: u64,
    /// The last beat that was known.
    pub stamp: u64,
    /// One of `alive`, `late`, `unknown`, `suspect`, `dead`.
    pub state: String,
    /// Why: a name, at most 64 bytes.
    pub cause: String,
}

/// What a relay says of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayWord {
    /// Who says it.
    pub by: RelayId,
    /// Of whom.
    pub about: RelayId,
    /// Whether it answers.
    pub reaches: bool,
}

/// All that a judge goes by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelaysSeen {
    /// At most [`MOST_JUDGED`].
    pub relays: Vec<RelaySeen>,
    /// What they have said of each other within the last seconds.
    pub words: Vec<RelayWord>,
}

/// A relay for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayListed {
    /// Its record and verdict.
    pub seen: RelaySeen,
    /// Its clients, as it says.
    pub connections: u64,
    /// Its last beat, ms since 1970.
    pub beat_at_ms: u64,
    /// Since when the verdict stands, ms since 1970.
    pub since_ms: Option<u64>,
}

/// A worker for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerListed {
    /// This start of it.
    pub worker: Uuid,
    /// Its last beat, ms since 1970.
    pub beat_at_ms: u64,
    /// Why nobody is removed, and since when (ms since 1970).
    pub hold: Option<(String, u64)>,
    /// Relays that count.
    pub relays: u32,
    /// Those of them that are late.
    pub late: u32,
}

impl Store {
    /// Writes that a worker lives, by the way that all services write, and reads what is known of relays. Words count that are
    /// younger than `words_ms`.
    ///
    /// # Errors
    /// The database's: then nothing was proven, and nothing may be judged.
    pub async fn look_at_relays(&self, beat: WorkerBeat, words_ms: u64) -> Result<RelaysSeen, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking at relays", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO worker_beat AS w (worker, network, beat_at, hold, hold_since, relays, late)
                        SELECT $2, network, now(), $3, $4, $5, $6 FROM network WHERE name = $1
                        ON CONFLICT (worker) DO UPDATE SET beat_at = now(), hold = excluded.hold,
                            hold_since = excluded.hold_since, relays = excluded.relays, late = excluded.late";
                    let values = values![
                        &network[..] => BYTEA,
                        beat.worker => UUID,
                        beat.hold.map(|(cause, _)| cause) => TEXT,
                        beat.hold.map(|(_, since_ms)| from_ms(since_ms)) => TIMESTAMPTZ,
                        count(beat.relays) => INT4,
                        count(beat.late) => INT4,
                    ];
                    session.execute(sql, &values).await?;
                    let sql = format!(
                        "SELECT {COLUMNS} FROM relay_beat b JOIN network n USING (network)
                         LEFT JOIN relay_verdict v USING (relay)
                         WHERE n.name = $1 ORDER BY b.relay LIMIT {MOST_JUDGED}"
                    );
                    let rows = session.rows(&sql, &values![&network[..] => BYTEA]).await?;
                    let relays = rows.iter().map(seen).collect();
                    let sql = format!(
                        "SELECT relay, about, reaches FROM relay_word
                         WHERE told_at > now() - $1 * interval '1 ms' ORDER BY told_at DESC LIMIT {MOST_WORDS}"
                    );
                    let words_ms = i32::try_from(words_ms).unwrap_or(i32::MAX);
                    let rows = session.rows(&sql, &values![words_ms => INT4]).await?;
                    let words = rows.iter().map(|row| RelayWord {
                        by: RelayId(row.get(0)),
                        about: RelayId(row.get(1)),
                        reaches: row.get(2),
                    });
                    Ok(RelaysSeen { relays, words: words.collect() })
                })
            })
            .await
    }

    /// Writes verdicts. One over a relay that has beaten meanwhile, or whose record is gone, is not written. Returns how many were.
    ///
    /// # Errors
    /// The database's; [`StoreError::Invalid`] for more than [`MOST_JUDGED`].
    pub async fn write_verdicts(&self, verdicts: Vec<RelayVerdict>) -> Result<u64, StoreError> {
        if verdicts.len() > MOST_JUDGED {
            return Err(StoreError::Invalid { what: "more than 1,000 verdicts in one call" });
        }
        self.pool
            .run("writing verdicts", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "INSERT INTO relay_verdict AS v (relay, network, epoch, beat_at, state, cause, removed_at)
                         SELECT b.relay, b.network, b.epoch, b.beat_at, t.state, t.cause,
                            CASE WHEN t.state = 'dead' THEN now() END
                         FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::text[], $5::text[])
                            AS t (relay, epoch, stamp, state, cause)
                         JOIN relay_beat b ON b.relay = t.relay AND b.epoch = t.epoch AND {STAMP} = t.stamp
                         ON CONFLICT (relay) DO UPDATE SET epoch = excluded.epoch, beat_at = excluded.beat_at,
                            state = excluded.state, cause = excluded.cause, judged_at = now(),
                            since = CASE WHEN (v.state, v.epoch) = (excluded.state, excluded.epoch) THEN v.since
                                ELSE now() END,
                            removed_at = CASE WHEN (v.state, v.epoch, v.beat_at)
                                = (excluded.state, excluded.epoch, excluded.beat_at) THEN v.removed_at
                                ELSE coalesce(excluded.removed_at, v.removed_at) END"
                    );
                    let values = values![
                        verdicts.iter().map(|row| row.relay.0).collect::<Vec<Uuid>>() => UUID_ARRAY,
                        numbers(verdicts.iter().map(|row| row.epoch))? => INT8_ARRAY,
                        numbers(verdicts.iter().map(|row| row.stamp))? => INT8_ARRAY,
                        verdicts.iter().map(|row| row.state.as_str()).collect::<Vec<&str>>() => TEXT_ARRAY,
                        verdicts.iter().map(|row| row.cause.as_str()).collect::<Vec<&str>>() => TEXT_ARRAY,
                    ];
                    session.execute(&sql, &values).await
                })
            })
            .await
    }

    /// Relays that a relay should say something about: others whose beats are missed, and where they are.
    ///
    /// # Errors
    /// The database's.
    pub async fn relays_in_doubt(&self, but: RelayId) -> Result<Vec<(RelayId, String)>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("looking for relays in doubt", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT b.relay, b.address FROM relay_verdict v JOIN network n USING (network)
                         JOIN relay_beat b ON b.relay = v.relay AND b.epoch = v.epoch AND b.beat_at <= v.beat_at
                         WHERE n.name = $1 AND v.relay <> $2 AND v.state IN ('late', 'unknown', 'suspect')
                         ORDER BY random() LIMIT {MOST_ASKED}"
                    );
                    let rows = session.rows(&sql, &values![&network[..] => BYTEA, but.0 => UUID]).await?;
                    Ok(rows.iter().map(|row| (RelayId(row.get(0)), row.get(1))).collect())
                })
            })
            .await
    }

    /// Writes what a relay says of others.
    ///
    /// # Errors
    /// The database's; [`StoreError::Invalid`] for more than it was asked about.
    pub async fn tell_of_relays(&self, by: RelayId, words: Vec<(RelayId, bool)>) -> Result<(), StoreError> {
        if words.len() > usize::try_from(MOST_ASKED).unwrap_or_default() {
            return Err(StoreError::Invalid { what: "more words than were asked for" });
        }
        self.pool
            .run("telling of relays", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO relay_word (relay, about, reaches, told_at)
                        SELECT $1, t.about, t.reaches, now() FROM unnest($2::uuid[], $3::bool[]) AS t (about, reaches)
                        ON CONFLICT (relay, about) DO UPDATE SET reaches = excluded.reaches, told_at = now()";
                    let values = values![
                        by.0 => UUID,
                        words.iter().map(|(about, _)| about.0).collect::<Vec<Uuid>>() => UUID_ARRAY,
                        words.iter().map(|(_, reaches)| *reaches).collect::<Vec<bool>>() => BOOL_ARRAY,
                    ];
                    session.execute(sql, &values).await?;
                    Ok(())
                })
            })
            .await
    }

    /// All relays with their verdicts, and the workers that were heard within the last day, the last one first.
    ///
    /// # Errors
    /// The database's.
    pub async fn relays_listed(&self) -> Result<(Vec<RelayListed>, Vec<WorkerListed>), StoreError> {
        let network = self.network.0;
        self.pool
            .run("listing relays and verdicts", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT {COLUMNS}, b.connections, b.beat_at, v.since
                         FROM relay_beat b JOIN network n USING (network) LEFT JOIN relay_verdict v USING (relay)
                         WHERE n.name = $1 ORDER BY b.address, b.relay LIMIT {MOST_JUDGED}"
                    );
                    let rows = session.rows(&sql, &values![&network[..] => BYTEA]).await?;
                    let relays = rows.iter().map(|row| RelayListed {
                        seen: seen(row),
                        connections: u64::try_from(row.get::<_, i32>(10)).unwrap_or_default(),
                        beat_at_ms: to_ms(row.get(11)),
                        since_ms: row.get::<_, Option<SystemTime>>(12).map(to_ms),
                    });
                    let sql = format!(
                        "SELECT w.worker, w.beat_at, w.hold, w.hold_since, w.relays, w.late
                         FROM worker_beat w JOIN network n USING (network)
                         WHERE n.name = $1 AND w.beat_at > now() - interval '1 day'
                         ORDER BY w.beat_at DESC LIMIT {MOST_WORKERS}"
                    );
                    let rows = session.rows(&sql, &values![&network[..] => BYTEA]).await?;
                    let workers = rows.iter().map(|row| WorkerListed {
                        worker: row.get(0),
                        beat_at_ms: to_ms(row.get(1)),
                        hold: row
                            .get::<_, Option<String>>(2)
                            .map(|cause| (cause, row.get::<_, Option<SystemTime>>(3).map_or(0, to_ms))),
                        relays: u32::try_from(row.get::<_, i32>(4)).unwrap_or_default(),
                        late: u32::try_from(row.get::<_, i32>(5)).unwrap_or_default(),
                    });
                    Ok((relays.collect(), workers.collect()))
                })
            })
            .await
    }
}

const COLUMNS: &str =
    "b.relay, b.epoch, (extract(epoch FROM b.beat_at) * 1000000)::int8, b.address, b.draining,
    v.state, v.cause, v.epoch, (extract(epoch FROM v.beat_at) * 1000000)::int8,
    (extract(epoch FROM now() - v.removed_at) * 1000)::int8";

fn seen(row: &Row) -> RelaySeen {
    let relay = RelayId(row.get(0));
    let verdict = row.get::<_, Option<String>>(5).map(|state| RelayVerdict {
        relay,
        epoch: unsigned(row.get(7)),
        stamp: unsigned(row.get(8)),
        state,
        cause: row.get(6),
    });
    RelaySeen {
        relay,
        epoch: unsigned(row.get(1)),
        stamp: unsigned(row.get(2)),
        address: row.get(3),
        draining: row.get(4),
        verdict,
        removed_ms_ago: row.get::<_, Option<i64>>(9).map(unsigned),
    }
}

fn numbers(values: impl Iterator<Item = u64>) -> Result<Vec<i64>, StoreError> {
    values.map(number).collect()
}

fn count(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
