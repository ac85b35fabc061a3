//! SHOW BUDGET: the connections of each database server that its poolers share. PgBouncer has no such result.

use crate::console::table::{self, int4, int8, plain, shown, text};
use pgwire::message::backend::Column;
use pooling::snapshot::{BudgetRow, EstimateRow};

pub(super) const COLUMNS: [Column<'static>; 20] = [
    text("server"),
    // `unused`, `held`, or `lost`: without a control connection nothing new is opened.
    text("lease"),
    // No further place is to be had.
    int4("exhausted"),
    // All of it; NULL before the server has been asked.
    int4("budget"),
    int4("reserved"),
    int4("chunks"),
    // Of the chunks, and how many of those may be used.
    int4("places"),
    int4("usable"),
    // Connections that count; of those: logging in, and ended while their process may go on.
    int4("used"),
    int4("logging_in"),
    int4("doubtful"),
    // What the pools could use beyond that.
    int4("wanted"),
    int4("poolers"),
    // What other poolers have, and what belongs to none.
    int4("others"),
    int4("unowned"),
    // What the server has been seen to carry; NULL if it has refused nothing lately.
    int4("server_estimate"),
    // The same of roles and databases.
    text("estimates"),
    int8("looks"),
    int8("losses"),
    int8("looked_ms"),
];

/// One row per server; none without `server_budget`.
pub(in crate::console) fn budget(out: &mut Vec<u8>, budgets: &[BudgetRow]) {
    let rows = budgets.iter().map(|row| {
        let lease = &row.lease;
        [
            plain(&row.address),
            plain(lease.state.label()),
            shown(u8::from(lease.is_exhausted)),
            lease.budget.and_then(shown),
            shown(lease.reserved),
            shown(lease.chunks),
            shown(lease.places),
            shown(lease.usable),
            shown(lease.used),
            shown(lease.attempts),
            shown(lease.doubtful),
            shown(row.wanted),
            shown(lease.poolers),
            shown(lease.others),
            shown(lease.unowned),
            lease.estimate.and_then(shown),
            shown(estimates(&row.estimates)),
            shown(lease.looks),
            shown(lease.losses),
            lease.looked.and_then(|looked| shown(looked.as_millis())),
        ]
    });
    table::write(out, &COLUMNS, rows);
}

/// `role app 20/20, database shop 7/9`: used, and the most that is opened.
fn estimates(rows: &[EstimateRow]) -> String {
    let words: Vec<String> =
        rows.iter().map(|row| format!("{} {} {}/{}", row.kind, row.name, row.used, row.limit)).collect();
    words.join(", ")
}
