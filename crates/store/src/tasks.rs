//! The worker's tasks: what is due later, what is due, who works on it, and what was done.
//!
//! A claim is a lease: it sets the moment at which the task can be claimed again. So a worker that dies loses its claims by
//! itself, and nobody has to look for them.

use std::time::SystemTime;

use ::tasks::{LANES, Lane, MOST_ATTEMPTS};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::relays::unsigned;
use crate::session::{Session, values};
use crate::time::from_ms;
use crate::{Store, StoreError};

/// Tasks of one lane that stand ready at most. The rest waits where its number costs nothing.
pub const MOST_READY: i32 = 1_000;
/// Tasks of one lane that one call moves.
const MOVED_AT_ONCE: i32 = 500;
/// So far ahead a task may be due, hours. What is due later stands on what it belongs to.
pub const HORIZON_HOURS: u32 = 24;
/// Partitions for what was done are made so many days ahead.
const DONE_DAYS_AHEAD: i32 = 2;
/// What was done is kept for so many days.
pub(crate) const KEEP_DONE_DAYS: i32 = 7;
/// New tasks in one call.
const MOST_NEW: usize = 10_000;
/// The longest payload, bytes.
const PAYLOAD_MAX: usize = 8_192;
/// Tasks of one lane that are counted at most.
const MOST_COUNTED: i64 = 10_000;

/// What a task may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerKind {
    /// A contract.
    Contract,
    /// An account.
    Account,
    /// A client.
    Client,
    /// A relay.
    Relay,
}

impl OwnerKind {
    const fn number(self) -> i16 {
        match self {
            Self::Contract => 1,
            Self::Account => 2,
            Self::Client => 3,
            Self::Relay => 4,
        }
    }

    const fn from_number(number: i16) -> Option<Self> {
        match number {
            1 => Some(Self::Contract),
            2 => Some(Self::Account),
            3 => Some(Self::Client),
            4 => Some(Self::Relay),
            _ => None,
        }
    }
}

/// What a task is done for: it goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Of which kind.
    pub kind: OwnerKind,
    /// Which.
    pub id: Uuid,
}

/// A task that is to be done once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Its name: one that waits already is not there twice.
    pub task: Uuid,
    /// What is to be done; at most 64 bytes.
    pub kind: &'static str,
    /// By whom.
    pub lane: Lane,
    /// For whom.
    pub owner: Option<Owner>,
    /// What is needed for it; at most 8 KiB.
    pub payload: String,
    /// When, ms since 1970; at most [`HORIZON_HOURS`] from now. What is past is due at once.
    pub due_ms: u64,
}

/// A job that is done again and again; one row for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurring {
    /// Its name.
    pub kind: &'static str,
    /// By whom.
    pub lane: Lane,
    /// How often, ms.
    pub every_ms: u64,
}

/// A task that this worker has to do, for as long as its lease holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Its name.
    pub task: Uuid,
    /// What is to be done.
    pub kind: String,
    /// Of which lane.
    pub lane: Lane,
    /// For whom.
    pub owner: Option<Owner>,
    /// What is needed for it.
    pub payload: String,
    /// It is a job that recurs.
    pub recurs: bool,
    /// How often it has failed in a row.
    pub failures: u32,
    /// When its lease ends, by the database's clock: this claim, and no other of the same task, is ended by it.
    pub leased_until: SystemTime,
}

/// What a claim brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// To do.
    pub claimed: Vec<Claimed>,
    /// When the next one can be claimed, ms from now.
    pub next_ms: Option<u64>,
}

/// How a task has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is done.
    Done,
    /// It is to be done (again) after so many ms.
    Again {
        /// From now, ms.
        after_ms: u64,
        /// Failures in a row.
        failures: u32,
    },
    /// It was tried too often; at most 256 bytes say why.
    GivenUp(String),
}

/// How much waits in a lane; counted up to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneBacklog {
    /// Which.
    pub lane: Lane,
    /// Tasks that stand ready or are being done, recurring jobs among them.
    pub ready: u64,
    /// Tasks that are due and have no place there yet, at most 10,000.
    pub due: u64,
    /// For how long the first of all has been due, ms.
    pub oldest_ms: u64,
}

impl Store {
    /// Writes down the jobs that recur. What stands keeps its next moment; how often and by whom is changed. `false`: there is no
    /// such network yet.
    ///
    /// # Errors
    /// The database's.
    pub async fn set_recurring(&self, jobs: Vec<Recurring>) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("writing recurring jobs", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO task_ready AS r
                            (task, network, kind, lane, payload, due_at, ready_at, repeat_ms)
                        SELECT md5('recurring ' || n.network || ' ' || t.kind)::uuid, n.network, t.kind, t.lane, '',
                            now(), now(), t.every
                        FROM network n, unnest($2::text[], $3::int2[], $4::int4[]) AS t (kind, lane, every)
                        WHERE n.name = $1
                        ON CONFLICT (task) DO UPDATE SET lane = excluded.lane, repeat_ms = excluded.repeat_ms
                        WHERE (r.lane, r.repeat_ms) IS DISTINCT FROM (excluded.lane, excluded.repeat_ms)";
                    let values = values![
                        &network[..] => BYTEA,
                        jobs.iter().map(|job| job.kind).collect::<Vec<&str>>() => TEXT_ARRAY,
                        jobs.iter().map(|job| lane_number(job.lane)).collect::<Vec<i16>>() => INT2_ARRAY,
                        jobs.iter().map(|job| ms(job.every_ms.max(1))).collect::<Vec<i32>>() => INT4_ARRAY,
                    ];
                    session.execute(sql, &values).await?;
                    let sql = "SELECT FROM network WHERE name = $1";
                    Ok(session.row(sql, &values![&network[..] => BYTEA]).await?.is_some())
                })
            })
            .await
    }

    /// Writes down tasks that are to be done.
    ///
    /// # Errors
    /// The database's; [`StoreError::Invalid`] for more than 10,000, for one that is due too late, or one that is too long.
    pub async fn add_tasks(&self, tasks: Vec<NewTask>, now_ms: u64) -> Result<(), StoreError> {
        let horizon_ms = now_ms + u64::from(HORIZON_HOURS - 1) * 3_600_000;
        if tasks.len() > MOST_NEW {
            return Err(StoreError::Invalid { what: "more than 10,000 tasks in one call" });
        }
        if tasks.iter().any(|task| task.due_ms > horizon_ms) {
            return Err(StoreError::Invalid { what: "a task that is due in more than 23 hours" });
        }
        if tasks.iter().any(|task| task.payload.len() > PAYLOAD_MAX) {
            return Err(StoreError::Invalid { what: "a task with more than 8 KiB" });
        }
        let network = self.network.0;
        self.pool
            .run("writing tasks", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO task_future (task, network, kind, lane, owner_kind, owner, payload, due_at)
                        SELECT t.task, n.network, t.kind, t.lane, t.owner_kind, t.owner, t.payload, greatest(t.due_at, now())
                        FROM network n, unnest($2::uuid[], $3::text[], $4::int2[], $5::int2[], $6::uuid[], $7::text[],
                            $8::timestamptz[]) AS t (task, kind, lane, owner_kind, owner, payload, due_at)
                        WHERE n.name = $1";
                    let owner_kind = |task: &NewTask| task.owner.map(|owner| owner.kind.number());
                    let values = values![
                        &network[..] => BYTEA,
                        tasks.iter().map(|task| task.task).collect::<Vec<Uuid>>() => UUID_ARRAY,
                        tasks.iter().map(|task| task.kind).collect::<Vec<&str>>() => TEXT_ARRAY,
                        tasks.iter().map(|task| lane_number(task.lane)).collect::<Vec<i16>>() => INT2_ARRAY,
                        tasks.iter().map(owner_kind).collect::<Vec<Option<i16>>>() => INT2_ARRAY,
                        tasks.iter().map(|task| task.owner.map(|owner| owner.id)).collect::<Vec<Option<Uuid>>>() => UUID_ARRAY,
                        tasks.iter().map(|task| task.payload.as_str()).collect::<Vec<&str>>() => TEXT_ARRAY,
                        tasks.iter().map(|task| from_ms(task.due_ms)).collect::<Vec<_>>() => TIMESTAMPTZ_ARRAY,
                    ];
                    session.execute(sql, &values).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Moves tasks that are due to where they are claimed, as many as there is room for. Whether a lane may have more to move.
    ///
    /// # Errors
    /// The database's.
    pub async fn promote_tasks(&self) -> Result<bool, StoreError> {
        let network = self.network.0;
        self.pool
            .run("moving tasks that are due", move |session| {
                Box::pin(async move {
                    let sql = "SELECT promote_tasks(network, $2, $3, $4) FROM network WHERE name = $1";
                    let lanes: Vec<i16> = Lane::ALL.into_iter().map(lane_number).collect();
                    let values = values![
                        &network[..] => BYTEA,
                        lanes => INT2_ARRAY,
                        MOST_READY => INT4,
                        MOVED_AT_ONCE => INT4,
                    ];
                    let moved = session.row(sql, &values).await?.map_or(0, |row| row.get::<_, i64>(0));
                    Ok(moved >= i64::from(MOVED_AT_ONCE))
                })
            })
            .await
    }

    /// Claims at most so many tasks of each lane (by [`Lane::index`]), those that are due longest first, for `lease_ms`.
    ///
    /// # Errors
    /// The database's. If the answer is lost, the lease brings them back.
    pub async fn claim_tasks(
        &self,
        worker: Uuid,
        wanted: [usize; LANES],
        lease_ms: u64,
    ) -> Result<Claims, StoreError> {
        let network = self.network.0;
        self.pool
            .run("claiming tasks", move |session| {
                Box::pin(async move {
                    let lanes: Vec<i16> = Lane::ALL.into_iter().map(lane_number).collect();
                    let most: Vec<i32> =
                        wanted.iter().map(|most| i32::try_from(*most).unwrap_or(i32::MAX)).collect();
                    let values = values![
                        &network[..] => BYTEA,
                        lanes => INT2_ARRAY,
                        most => INT4_ARRAY,
                        worker => UUID,
                        ms(lease_ms) => INT4,
                    ];
                    let rows = session.rows(CLAIM, &values).await?;
                    let claimed = rows.iter().filter_map(claimed).collect();
                    let sql = "SELECT (extract(epoch FROM min(p.ready_at) - now()) * 1000)::int8
                        FROM network n, unnest($2::int2[]) AS l (lane) CROSS JOIN LATERAL (
                            SELECT r.ready_at FROM task_ready r WHERE r.network = n.network AND r.lane = l.lane
                            ORDER BY r.ready_at LIMIT 1) p
                        WHERE n.name = $1";
                    let row = session.row(sql, &values![&network[..] => BYTEA, lanes => INT2_ARRAY]).await?;
                    let next_ms = row.and_then(|row| row.get::<_, Option<i64>>(0)).map(unsigned);
                    Ok(Claims { claimed, next_ms })
                })
            })
            .await
    }

    /// Says how a claimed task has ended. `false`: this claim is over, because its lease was; the same worker may have a newer one.
    ///
    /// # Errors
    /// The database's; it can be said again.
    pub async fn end_task(&self, worker: Uuid, claim: &Claimed, ended: Ended) -> Result<bool, StoreError> {
        let (task, leased_until) = (claim.task, claim.leased_until);
        self.pool
            .run("ending a task", move |session| {
                Box::pin(async move {
                    let outcome = match ended {
                        Ended::Again { after_ms, failures } => {
                            let sql = "UPDATE task_ready SET ready_at = now() + $3 * interval '1 ms',
                                due_at = now() + $3 * interval '1 ms', failures = $4, claimed_by = NULL
                                WHERE task = $1 AND claimed_by = $2 AND ready_at = $5";
                            let failures = i32::try_from(failures).unwrap_or(i32::MAX);
                            let values = values![
                                task => UUID, worker => UUID, ms(after_ms) => INT4, failures => INT4,
                                leased_until => TIMESTAMPTZ,
                            ];
                            return Ok(session.execute(sql, &values).await? == 1);
                        }
                        Ended::Done => "done".to_owned(),
                        Ended::GivenUp(mut why) => {
                            why.truncate(why.floor_char_boundary(OUTCOME_MAX));
                            why
                        }
                    };
                    let sql = "WITH gone AS (DELETE FROM task_ready
                            WHERE task = $1 AND claimed_by = $2 AND ready_at = $4 RETURNING *)
                        INSERT INTO task_done
                            (task, network, kind, lane, owner_kind, owner, outcome, failures, worker, due_at)
                        SELECT task, network, kind, lane, owner_kind, owner, $3, failures, $2, due_at FROM gone";
                    let values = values![
                        task => UUID, worker => UUID, outcome => TEXT, leased_until => TIMESTAMPTZ,
                    ];
                    Ok(session.execute(sql, &values).await? == 1)
                })
            })
            .await
    }

    /// Gives back all that a worker has claimed: others have it at once. Returns how many there were.
    ///
    /// # Errors
    /// The database's: then the leases bring them back.
    pub async fn hand_back_tasks(&self, worker: Uuid) -> Result<u64, StoreError> {
        self.pool
            .run("handing tasks back", move |session| {
                Box::pin(async move {
                    let sql =
                        "UPDATE task_ready SET ready_at = due_at, claimed_by = NULL WHERE claimed_by = $1";
                    session.execute(sql, &values![worker => UUID]).await
                })
            })
            .await
    }

    /// Takes out what was to be done for these owners, wherever it waits. Returns how many there were.
    ///
    /// # Errors
    /// The database's.
    pub async fn retire_tasks(&self, kind: OwnerKind, owners: Vec<Uuid>) -> Result<u64, StoreError> {
        self.pool
            .run("retiring tasks", move |session| {
                Box::pin(async move {
                    session.begin().await?;
                    let retired = retire(session, kind, &owners).await?;
                    session.commit().await?;
                    Ok(retired)
                })
            })
            .await
    }

    /// Makes the partitions of the next hours and days, and drops those that are over: how many of each.
    ///
    /// # Errors
    /// The database's.
    pub async fn keep_partitions(&self) -> Result<(u32, u32), StoreError> {
        self.pool
            .run("keeping partitions", move |session| {
                Box::pin(async move {
                    let sql = "SELECT made, dropped FROM task_partitions($1, $2, $3)";
                    let hours = i32::try_from(HORIZON_HOURS).unwrap_or(i32::MAX);
                    let values = values![hours => INT4, DONE_DAYS_AHEAD => INT4, KEEP_DONE_DAYS => INT4];
                    let row = session.row(sql, &values).await?;
                    let count =
                        |row: &Row, column| u32::try_from(row.get::<_, i32>(column)).unwrap_or_default();
                    Ok(row.map_or((0, 0), |row| (count(&row, 0), count(&row, 1))))
                })
            })
            .await
    }

    /// How much waits in each lane, at a cost that does not depend on how much that is.
    ///
    /// # Errors
    /// The database's.
    pub async fn task_backlog(&self) -> Result<Vec<LaneBacklog>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("counting tasks", move |session| {
                Box::pin(async move {
                    let sql = format!(
                        "SELECT l.lane,
                            (SELECT count(*) FROM (SELECT FROM task_ready r WHERE r.network = n.network
                                AND r.lane = l.lane LIMIT {MOST_COUNTED}) few),
                            (SELECT count(*) FROM (SELECT FROM task_future f WHERE f.network = n.network
                                AND f.lane = l.lane AND f.due_at <= now() LIMIT {MOST_COUNTED}) few),
                            (extract(epoch FROM now() - least(
                                (SELECT r.due_at FROM task_ready r WHERE r.network = n.network AND r.lane = l.lane
                                    AND r.repeat_ms IS NULL ORDER BY r.ready_at LIMIT 1),
                                (SELECT f.due_at FROM task_future f WHERE f.network = n.network AND f.lane = l.lane
                                    ORDER BY f.due_at LIMIT 1))) * 1000)::int8
                         FROM network n, unnest($2::int2[]) AS l (lane) WHERE n.name = $1 ORDER BY l.lane"
                    );
                    let lanes: Vec<i16> = Lane::ALL.into_iter().map(lane_number).collect();
                    let rows = session.rows(&sql, &values![&network[..] => BYTEA, lanes => INT2_ARRAY]).await?;
                    let backlog = rows.iter().filter_map(|row| {
                        Some(LaneBacklog {
                            lane: lane(row.get(0))?,
                            ready: unsigned(row.get(1)),
                            due: unsigned(row.get(2)),
                            oldest_ms: row.get::<_, Option<i64>>(3).map_or(0, unsigned),
                        })
                    });
                    Ok(backlog.collect())
                })
            })
            .await
    }
}

/// Takes out what was to be done for these owners, in the transaction in which they go.
pub(crate) async fn retire(session: &Session, kind: OwnerKind, owners: &[Uuid]) -> Result<u64, StoreError> {
    let mut retired = 0;
    for table in ["task_future", "task_ready"] {
        let sql = format!("DELETE FROM {table} WHERE owner = ANY ($1) AND owner_kind = $2");
        retired += session.execute(&sql, &values![owners => UUID_ARRAY, kind.number() => INT2]).await?;
    }
    Ok(retired)
}

/// The longest outcome, bytes.
const OUTCOME_MAX: usize = 256;
/// `$1` network, `$2` lanes, `$3` how many of each, `$4` worker, `$5` lease in ms.
pub(crate) const CLAIM: &str =
    "UPDATE task_ready t SET ready_at = now() + $5 * interval '1 ms', claimed_by = $4
    WHERE t.ctid = ANY (ARRAY(
        SELECT p.ctid FROM network n, unnest($2::int2[], $3::int4[]) AS w (lane, most) CROSS JOIN LATERAL (
            SELECT r.ctid FROM task_ready r
            WHERE r.network = n.network AND r.lane = w.lane AND r.ready_at <= now()
            ORDER BY r.ready_at LIMIT w.most FOR UPDATE SKIP LOCKED) p
        WHERE n.name = $1))
    RETURNING t.task, t.kind, t.lane, t.owner_kind, t.owner, t.payload, t.repeat_ms IS NOT NULL, t.failures,
        t.ready_at";

fn claimed(row: &Row) -> Option<Claimed> {
    let owner_kind = row.get::<_, Option<i16>>(3).and_then(OwnerKind::from_number);
    Some(Claimed {
        task: row.get(0),
        kind: row.get(1),
        lane: lane(row.get(2))?,
        owner: owner_kind.zip(row.get::<_, Option<Uuid>>(4)).map(|(kind, id)| Owner { kind, id }),
        payload: row.get(5),
        recurs: row.get(6),
        failures: u32::try_from(row.get::<_, i32>(7)).unwrap_or_default(),
        leased_until: row.get(8),
    })
}

impl Claimed {
    /// What becomes of it after a failure: tried again after `after_ms`, or given up.
    #[must_use]
    pub fn after_failure(&self, after_ms: u64, why: String) -> Ended {
        let failures = self.failures.saturating_add(1);
        if !self.recurs && failures >= MOST_ATTEMPTS {
            return Ended::GivenUp(why);
        }
        Ended::Again { after_ms, failures }
    }
}

fn lane_number(lane: Lane) -> i16 {
    i16::try_from(lane.index()).unwrap_or_default()
}

fn lane(number: i16) -> Option<Lane> {
    Lane::ALL.into_iter().find(|lane| lane_number(*lane) == number)
}

fn ms(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
