//! The statements of a look, and its rows.

use super::LOOKER;
use crate::login_plane::own_query::Row;
use locks::{Action, Backend, LockMode, LockRow, Verb};
use std::time::Duration;

/// Once on each connection: a look waits for nobody, and says who it is.
pub(super) fn prepare() -> String {
    format!(
        "SET statement_timeout = 1000; SET lock_timeout = 300; SET application_name = '{LOOKER}'; \
         SET search_path = pg_catalog"
    )
}

/// One round trip, one snapshot of the lock table. First those who wait, the longest first; [`locks::MAX_ROWS`] at most.
macro_rules! look {
    ($waited:literal) => {
        concat!(
            "WITH l AS MATERIALIZED (SELECT *, concat_ws('/', locktype, database, relation, page, tuple, virtualxid, \
             transactionid, classid, objid, objsubid) AS object, ",
            $waited,
            " AS waited FROM pg_locks) \
             SELECT l.object, l.locktype, n.nspname || '.' || c.relname, l.mode, l.granted, coalesce(l.pid, 0), \
             coalesce(a.leader_pid, l.pid, 0), (extract(epoch FROM l.waited) * 1000)::bigint, a.state, a.usename, \
             a.application_name, left(a.query, 400) \
             FROM l LEFT JOIN pg_stat_activity a ON a.pid = l.pid \
             LEFT JOIN pg_class c ON c.oid = l.relation AND l.locktype = 'relation' \
             AND l.database IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) \
             LEFT JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE l.object IN (SELECT object FROM l WHERE NOT granted) \
             ORDER BY l.granted, l.waited DESC NULLS LAST LIMIT 1000"
        )
    };
}

/// The look for a server of that version (`server_version`); before 14 it does not tell since when somebody waits.
pub(super) fn look(version: Option<&str>) -> &'static str {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let major = version.and_then(|version| digits(version).parse::<u32>().ok());
    if major.is_some_and(|major| major >= 14) {
        look!("clock_timestamp() - waitstart")
    } else {
        look!("NULL::interval")
    }
}

/// Tells somebody to stop, if it stands there still.
pub(super) fn act(action: &Action) -> String {
    let (pid, mode) = (action.party.pid, action.party.mode.name());
    let (function, granted) = match action.verb {
        Verb::CancelWaiter => ("pg_cancel_backend", "NOT granted"),
        Verb::CancelBlocker => ("pg_cancel_backend", "granted"),
        Verb::TerminateBlocker => ("pg_terminate_backend", "granted"),
    };
    format!(
        "SELECT {function}(pid) FROM pg_locks \
         WHERE pid = {pid} AND mode = '{mode}' AND locktype = 'relation' AND {granted} LIMIT 1"
    )
}

/// Reads a row; none if it is of a kind of lock that nobody waits for.
pub(super) fn lock_row(row: &Row) -> Option<LockRow> {
    let [object, kind, relation, mode, granted, pid, leader, waited, state, user, application, statement] =
        row.as_slice()
    else {
        return None;
    };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let pid = pid.as_deref()?.parse().ok()?;
    let waited_ms = waited.as_deref().and_then(|waited| waited.parse::<i64>().ok());
    Some(LockRow {
        object: object.as_deref()?.into(),
        is_relation: kind.as_deref() == Some("relation"),
        relation: relation.as_deref().map(Into::into),
        mode: LockMode::parse(mode.as_deref()?)?,
        granted: granted.as_deref() == Some("t"),
        waited: waited_ms.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs())),
        backend: Backend {
            pid,
            leader: leader.as_deref().and_then(|leader| leader.parse().ok()).unwrap_or(pid),
            state: text(state),
            user: text(user),
            application: text(application),
            statement: text(statement),
        },
    })
}

#[cfg(test)]
mod tests;
