//! Who is in the way, before anything is tried.

use std::time::Duration;

use locks::sql::shown;
use serde::Serialize;
use tokio_postgres::{Client, Error};

use crate::names::names;

/// Most blockers that are named.
const MAX_NAMED: i64 = 5;

/// A transaction that has a lock on a table concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// Its process id; 0 for a prepared transaction.
    pub pid: i32,
    /// The table.
    pub table: String,
    /// Age of its transaction.
    pub age_ms: u64,
    /// `active`, `idle in transaction`, …; empty if it may not be seen.
    pub state: String,
    /// Its statement, without constants.
    pub statement: String,
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, table, age_ms, state, statement } = self;
        write!(out, "process {pid} ({state}) has had {table} for {:.1} s: {statement}", *age_ms as f64 / 1e3)
    }
}

/// Transactions older than `oldest` that hold a lock on a table which these statements name, the oldest first. A transaction
/// whose age may not be seen counts as old.
pub(crate) async fn blockers(
    client: &Client,
    statements: &[String],
    oldest: Duration,
) -> Result<Vec<Blocker>, Error> {
    const QUERY: &str = "SELECT coalesce(l.pid, 0), c.oid::regclass::text, \
        coalesce(extract(epoch FROM clock_timestamp() - a.xact_start) * 1000, 1e12)::bigint AS age, \
        coalesce(a.state, ''), coalesce(left(a.query, 400), '') \
        FROM (SELECT DISTINCT to_regclass(name) AS oid FROM unnest($1::text[]) AS name) c \
        JOIN pg_locks l ON l.relation = c.oid AND l.locktype = 'relation' AND l.granted \
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
        LEFT JOIN pg_stat_activity a ON a.pid = l.pid \
        WHERE l.pid IS DISTINCT FROM pg_backend_pid() \
        AND coalesce(clock_timestamp() - a.xact_start > make_interval(secs => $2), true) \
        ORDER BY age DESC LIMIT $3";
    let mut all: Vec<String> = statements.iter().flat_map(|statement| names(statement)).collect();
    all.sort();
    all.dedup();
    let rows = client.query(QUERY, &[&all, &oldest.as_secs_f64(), &MAX_NAMED]).await?;
    Ok(rows
        .iter()
        .map(|row| Blocker {
            pid: row.get(0),
            table: row.get(1),
            age_ms: u64::try_from(row.get::<_, i64>(2)).unwrap_or(0),
            state: row.get(3),
            statement: shown(row.get(4)),
        })
        .collect())
}
