//! SHOW LOCKS: pools whose servers pile up behind a lock, and whose doing it is. PgBouncer has no such result.

use crate::console::table::{self, Cell, int4, int8, plain, shown, text};
use locks::Party;
use pgwire::message::backend::Column;
use pooling::snapshot::LockRow;

pub(super) const COLUMNS: [Column<'static>; 16] = [
    text("database"),
    text("user"),
    text("relation"),
    // Servers that wait, of those that the pool has.
    int4("sv_behind"),
    int4("sv_live"),
    int4("cl_waiting"),
    // The first of them, by the server's clock; NULL before PostgreSQL 14.
    int8("longest_wait_ms"),
    int8("seen_ms"),
    // NULL if they wait for a lock that is held.
    int4("waiter_pid"),
    text("waiter_user"),
    text("waiter_application_name"),
    text("waiter_statement"),
    text("blocker_pids"),
    text("blocker_state"),
    text("blocker_application_name"),
    text("blocker_statement"),
];

/// One row per pool; of several blockers the first is described.
pub(in crate::console) fn locks(out: &mut Vec<u8>, rows: &[LockRow]) {
    let rows = rows.iter().map(|row| {
        let pile = &row.pile;
        let waiter = pile.waiter.as_ref();
        let blocker = pile.blockers.first();
        let pids: Vec<String> = pile.blockers.iter().map(|blocker| blocker.pid.to_string()).collect();
        [
            plain(&row.database),
            plain(&row.user),
            pile.relation.as_deref().and_then(plain),
            shown(pile.behind),
            shown(pile.live),
            shown(row.waiting),
            pile.longest.and_then(|longest| shown(longest.as_millis())),
            shown(row.seen.as_millis()),
            waiter.and_then(|waiter| shown(waiter.pid)),
            of(waiter, |party| &party.user),
            of(waiter, |party| &party.application),
            of(waiter, |party| &party.statement),
            shown(pids.join(",")),
            of(blocker, |party| &party.state),
            of(blocker, |party| &party.application),
            of(blocker, |party| &party.statement),
        ]
    });
    table::write(out, &COLUMNS, rows);
}

fn of(party: Option<&Party>, text: impl Fn(&Party) -> &str) -> Cell<'_> {
    party.and_then(|party| plain(text(party)))
}
