//! SHOW STALLS: pools whose clients wait and that give no answer, and why. PgBouncer has no such result.

use crate::console::table::{self, int4, moment, plain, seconds_and_micros, shown, text};
use pgwire::message::backend::Column;
use pooling::snapshot::StallRow;
use std::time::SystemTime;

pub(super) const COLUMNS: [Column<'static>; 9] = [
    text("database"),
    text("user"),
    // `going_on`, or how it ended.
    text("state"),
    text("cause"),
    text("began"),
    int4("lasted"),
    int4("lasted_us"),
    int4("cl_waiting"),
    text("detail"),
];

/// One row per stall.
pub(in crate::console) fn stalls(out: &mut Vec<u8>, stalls: &[StallRow], now: SystemTime) {
    let rows = stalls.iter().map(|stall| {
        let (lasted, lasted_us) = seconds_and_micros(stall.lasted);
        [
            plain(&stall.database),
            plain(&stall.user),
            plain(stall.end.unwrap_or("going_on")),
            plain(stall.cause),
            moment(now, stall.began_ago),
            lasted,
            lasted_us,
            shown(stall.waiting),
            plain(&stall.detail),
        ]
    });
    table::write(out, &COLUMNS, rows);
}
