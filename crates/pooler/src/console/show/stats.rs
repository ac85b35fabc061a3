//! SHOW STATS, and its two halves.

use crate::console::averages::{COUNTERS, Counters, PerDatabase, StatsHistory};
use crate::console::table::{self, Cell, numeric, plain, shown, text};
use overload::Moment;
use pgwire::message::backend::Column;

/// PgBouncer's names: what is called `received` in one half is `recv` in the other, and `bytes_received` in a third.
pub(super) const TOTAL_AND_AVERAGE: [Column<'static>; 1 + 2 * COUNTERS] = [
    text("database"),
    numeric("total_server_assignment_count"),
    numeric("total_xact_count"),
    numeric("total_query_count"),
    numeric("total_received"),
    numeric("total_sent"),
    numeric("total_xact_time"),
    numeric("total_query_time"),
    numeric("total_wait_time"),
    numeric("total_client_parse_count"),
    numeric("total_server_parse_count"),
    numeric("total_bind_count"),
    numeric("total_client_login_count"),
    numeric("avg_server_assignment_count"),
    numeric("avg_xact_count"),
    numeric("avg_query_count"),
    numeric("avg_recv"),
    numeric("avg_sent"),
    numeric("avg_xact_time"),
    numeric("avg_query_time"),
    numeric("avg_wait_time"),
    numeric("avg_client_parse_count"),
    numeric("avg_server_parse_count"),
    numeric("avg_bind_count"),
    numeric("avg_client_login_count"),
];

pub(super) const TOTALS: [Column<'static>; 1 + COUNTERS] =
    half("client_parse_count", "server_parse_count", "bind_count");

pub(super) const AVERAGES: [Column<'static>; 1 + COUNTERS] =
    half("avg_client_parse_count", "avg_server_parse_count", "avg_bind_count");

/// SHOW STATS.
pub(in crate::console) fn stats(
    out: &mut Vec<u8>,
    totals: &PerDatabase,
    history: &StatsHistory,
    now: Moment,
) {
    let rows = totals.iter().map(|(database, counters)| {
        let averages = history.averages(now, database, counters);
        let mut row = [const { None }; TOTAL_AND_AVERAGE.len()];
        fill(&mut row, database, counters.iter().chain(&averages));
        row
    });
    table::write(out, &TOTAL_AND_AVERAGE, rows);
}

/// SHOW STATS_TOTALS.
pub(in crate::console) fn stats_totals(out: &mut Vec<u8>, totals: &PerDatabase) {
    table::write(out, &TOTALS, totals.iter().map(|(database, counters)| half_row(database, counters)));
}

/// SHOW STATS_AVERAGES.
pub(in crate::console) fn stats_averages(
    out: &mut Vec<u8>,
    totals: &PerDatabase,
    history: &StatsHistory,
    now: Moment,
) {
    let rows = totals
        .iter()
        .map(|(database, counters)| half_row(database, &history.averages(now, database, counters)));
    table::write(out, &AVERAGES, rows);
}

fn half_row<'a>(database: &'a str, counters: &Counters) -> [Cell<'a>; 1 + COUNTERS] {
    let mut row = [const { None }; 1 + COUNTERS];
    fill(&mut row, database, counters.iter());
    row
}

fn fill<'a, 'c>(row: &mut [Cell<'a>], database: &'a str, counters: impl Iterator<Item = &'c u64>) {
    let cells = std::iter::once(plain(database)).chain(counters.map(shown));
    for (place, cell) in row.iter_mut().zip(cells) {
        *place = cell;
    }
}

const fn half(
    client_parse: &'static str,
    server_parse: &'static str,
    bind: &'static str,
) -> [Column<'static>; 1 + COUNTERS] {
    [
        text("database"),
        numeric("server_assignment_count"),
        numeric("xact_count"),
        numeric("query_count"),
        numeric("bytes_received"),
        numeric("bytes_sent"),
        numeric("xact_time"),
        numeric("query_time"),
        numeric("wait_time"),
        numeric(client_parse),
        numeric(server_parse),
        numeric(bind),
        numeric("client_login_count"),
    ]
}
