//! The SQL of a control connection. All of an order goes out as one simple query: locks are taken before the backends are
//! looked at, in one transaction, whose end takes no session lock back.
//!
//! Keys are pairs of integers in `budget_database` ([manual](https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-ADVISORY-LOCKS));
//! the first half says what a lock is for:
//!
//! | first half | second half | mode | says |
//! |---|---|---|---|
//! | [`CHUNK`] | size << 16, and number | exclusive | these places are mine |
//! | [`SERVER`] | process id | shared | this backend is mine |
//! | [`MEMBER`] | 0 | shared | I am a control connection |
//! | [`STARVING`] | 0 | shared | I lack places |

use super::session::SessionName;
use crate::login_plane::locks::LOOKER;
use budget::{Chunk, Order};
use std::fmt::Write as _;

/// "HFBC": a chunk.
const CHUNK: i32 = 0x4846_4243;
/// "HFBM": a control connection.
const MEMBER: i32 = 0x4846_424d;
/// "HFBN": one that lacks places.
const STARVING: i32 = 0x4846_424e;
/// "HFBS": a backend.
const SERVER: i32 = 0x4846_4253;

/// Our locks in this database.
const LOCKS: &str = "locktype = 'advisory' AND objsubid = 2 AND granted AND database = \
     (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The session sets itself up, so that its server notices soon when we are gone, and never ends it for being idle; the
/// last one of ours is ended.
pub(super) fn begin(last: Option<&SessionName>) -> String {
    let mut sql = String::from(
        "SET search_path = pg_catalog; SELECT set_config(name, CASE name WHEN 'tcp_keepalives_idle' THEN '5' WHEN 'tcp_keepalives_interval' THEN '2' \
         WHEN 'tcp_keepalives_count' THEN '3' ELSE '0' END, false) FROM pg_settings WHERE name IN \
         ('tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count', 'idle_session_timeout', \
         'statement_timeout', 'lock_timeout', 'transaction_timeout');",
    );
    if let Some(SessionName { process_id, started_us }) = last {
        let _ = write!(
            sql,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = {process_id} AND pid <> pg_backend_pid() \
             AND usename = current_user AND {} = {started_us};",
            micros("backend_start"),
        );
    }
    let _ = write!(
        sql,
        "SELECT pg_try_advisory_lock_shared({MEMBER}, 0); \
         SELECT 's', pid, {}, 0 FROM pg_stat_activity WHERE pid = pg_backend_pid()",
        micros("backend_start"),
    );
    sql
}

/// Everything that the order says, then the look.
pub(super) fn carry_out(order: &Order, tells_starving: bool) -> String {
    let mut sql = String::new();
    if !order.register.is_empty() {
        let pids = array(order.register.iter().copied());
        let _ =
            write!(sql, "SELECT count(pg_try_advisory_lock_shared({SERVER}, pid)) FROM unnest({pids}) pid;");
    }
    if !order.forget.is_empty() {
        let pids = array(order.forget.iter().copied());
        let _ =
            write!(sql, "SELECT count(pg_advisory_unlock_shared({SERVER}, pid)) FROM unnest({pids}) pid;");
    }
    if !order.release.is_empty() {
        let keys = array(order.release.iter().map(|chunk| chunk.key()));
        let _ = write!(sql, "SELECT count(pg_advisory_unlock({CHUNK}, key)) FROM unnest({keys}) key;");
    }
    if order.take > 0 {
        sql.push_str(&take(&order.candidates, order.take));
    }
    if order.is_starving != tells_starving {
        let verb =
            if order.is_starving { "pg_try_advisory_lock_shared" } else { "pg_advisory_unlock_shared" };
        let _ = write!(sql, "SELECT {verb}({STARVING}, 0);");
    }
    sql.push_str(&look(&order.doubtful));
    sql
}

/// Tries so many of the free ones, in no order, so that poolers that start together try others.
fn take(candidates: &[Chunk], count: usize) -> String {
    let keys = array(candidates.iter().map(|chunk| chunk.key()));
    format!(
        "SELECT count(pg_try_advisory_lock({CHUNK}, key)) FROM (SELECT key FROM unnest({keys}) key WHERE NOT EXISTS \
         (SELECT FROM pg_locks WHERE {LOCKS} AND classid = {CHUNK} AND objid::int8 = key) ORDER BY random() \
         LIMIT {count}) free;"
    )
}

/// Looks at locks count with the control connections. A backend whose kind we may not see counts: that is more rather than less.
fn look(doubtful: &[i32]) -> String {
    let doubtful = array(doubtful.iter().copied());
    format!(
        "WITH locks AS MATERIALIZED (SELECT pid, classid::int8 AS class, objid::int8 AS key FROM pg_locks WHERE {LOCKS} \
           AND classid IN ({CHUNK}, {MEMBER}, {STARVING}, {SERVER})), \
         backends AS MATERIALIZED (SELECT pid, application_name = '{LOOKER}' AS looks FROM pg_stat_activity \
           WHERE backend_type = 'client backend' OR backend_type IS NULL AND datid IS NOT NULL), \
         owners AS MATERIALIZED (SELECT pid, \
             coalesce(sum(key >> 16) FILTER (WHERE class = {CHUNK}), 0)::int8 AS places, \
             count(*) FILTER (WHERE class = {SERVER} AND key IN (SELECT pid FROM backends)) AS servers, \
             count(*) FILTER (WHERE class = {STARVING}) AS starving FROM locks GROUP BY pid), \
         ownerless AS MATERIALIZED (SELECT pid, looks FROM backends WHERE pid NOT IN (SELECT pid FROM owners) \
           AND pid NOT IN (SELECT key FROM locks WHERE class = {SERVER})) \
         SELECT 'c', key, 0::int8, 0::int8 FROM locks WHERE class = {CHUNK} AND pid = pg_backend_pid() \
         UNION ALL SELECT 'o', places, servers, starving FROM owners WHERE pid <> pg_backend_pid() \
         UNION ALL SELECT 'u', pid, 0, 0 FROM ownerless WHERE NOT looks \
         UNION ALL SELECT 'p', pid, 0, 0 FROM backends WHERE pid = ANY({doubtful}) \
         UNION ALL SELECT 'n', (SELECT count(*) FROM owners) + (SELECT count(*) FROM ownerless WHERE looks), 0, 0 \
         UNION ALL SELECT 'l', current_setting('max_connections')::int8, \
           current_setting('superuser_reserved_connections')::int8 \
           + coalesce(current_setting('reserved_connections', true), '0')::int8, 0"
    )
}

fn array(numbers: impl Iterator<Item = i32>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("'{{{}}}'::int4[]", numbers.join(","))
}

fn micros(column: &str) -> String {
    format!("(extract(epoch FROM {column}) * 1000000)::int8")
}
