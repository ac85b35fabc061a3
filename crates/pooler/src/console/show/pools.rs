//! SHOW POOLS.

use crate::console::table::{self, Cell, int4, plain, seconds_and_micros, shown, text, zero};
use pgwire::message::backend::Column;
use pooling::CONSOLE_DATABASE;
use pooling::snapshot::PoolRow;
use std::time::Duration;

/// The first 17 are PgBouncer's.
pub(super) const COLUMNS: [Column<'static>; 24] = [
    text("database"),
    text("user"),
    int4("cl_active"),
    int4("cl_waiting"),
    int4("cl_active_cancel_req"),
    int4("cl_waiting_cancel_req"),
    int4("sv_active"),
    int4("sv_active_cancel"),
    int4("sv_being_canceled"),
    int4("sv_idle"),
    int4("sv_used"),
    int4("sv_tested"),
    int4("sv_login"),
    int4("maxwait"),
    int4("maxwait_us"),
    text("pool_mode"),
    text("load_balance_hosts"),
    // Closed by us, end not seen yet: counts against the size.
    int4("sv_closing"),
    int4("pool_size"),
    // Seconds since a server last answered a query of this pool.
    int4("since_last_answer"),
    // Why no server can be opened, in a word and in full, and for how many seconds.
    text("failure"),
    text("failure_text"),
    int4("failing"),
    // Requests that may run at once (`running_limit`).
    int4("running_limit"),
];

/// One row per pool, and one for the console itself.
pub(in crate::console) fn pools(out: &mut Vec<u8>, pools: &[PoolRow], console_sessions: usize) {
    let own = console_row(console_sessions);
    table::write(out, &COLUMNS, std::iter::once(own).chain(pools.iter().map(row)));
}

fn row(pool: &PoolRow) -> [Cell<'_>; COLUMNS.len()] {
    let (maxwait, maxwait_us) = seconds_and_micros(pool.maxwait);
    let seconds = |span: Duration| shown(span.as_secs());
    let failure = pool.failure.as_ref();
    [
        plain(&pool.database),
        plain(&pool.user),
        shown(pool.cl_active),
        shown(pool.cl_waiting),
        shown(pool.cl_active_cancel_req),
        // Cancel requests have a slice of their own and wait for no place in the pool.
        zero(),
        shown(pool.sv_active),
        shown(pool.sv_active_cancel),
        shown(pool.sv_being_canceled),
        shown(pool.sv_idle),
        shown(pool.sv_used),
        shown(pool.sv_tested),
        shown(pool.sv_login),
        maxwait,
        maxwait_us,
        plain(pool.pool_mode),
        None,
        shown(pool.sv_closing),
        shown(pool.pool_size),
        pool.since_last_answer.and_then(seconds),
        failure.and_then(|(cause, _, _)| plain(cause)),
        failure.and_then(|(_, text, _)| plain(text)),
        failure.and_then(|(_, _, since)| seconds(*since)),
        pool.running_limit.and_then(shown),
    ]
}

fn console_row<'a>(sessions: usize) -> [Cell<'a>; COLUMNS.len()] {
    let mut row = [const { None }; COLUMNS.len()];
    for (cell, column) in row.iter_mut().zip(COLUMNS).take(15) {
        if column.type_oid == int4("").type_oid {
            *cell = zero();
        }
    }
    row[0] = plain(CONSOLE_DATABASE);
    row[1] = plain(CONSOLE_DATABASE);
    row[2] = shown(sessions);
    row[15] = plain("statement");
    row
}
