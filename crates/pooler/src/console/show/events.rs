//! SHOW EVENTS: the flight recorder. PgBouncer has no such result.

use crate::console::table::{self, int8, moment, plain, shown, text};
use pgwire::message::backend::Column;
use pooling::snapshot::EventRow;
use std::time::SystemTime;

pub(super) const COLUMNS: [Column<'static>; 8] = [
    text("first_time"),
    text("last_time"),
    int8("count"),
    text("event"),
    text("cause"),
    text("database"),
    text("user"),
    text("detail"),
];

/// One row per event, in the order in which they began. What happened several times is one event.
pub(in crate::console) fn events(out: &mut Vec<u8>, events: &[EventRow], now: SystemTime) {
    let rows = events.iter().map(|event| {
        [
            moment(now, event.first_ago),
            moment(now, event.last_ago),
            shown(event.count),
            plain(event.event),
            plain(event.cause),
            plain(&event.database),
            plain(&event.user),
            plain(&event.detail),
        ]
    });
    table::write(out, &COLUMNS, rows);
}
