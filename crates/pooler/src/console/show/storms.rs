//! SHOW STORMS: who tries to connect, or loses requests, far more often than before. PgBouncer has no such result.

use crate::console::table::{self, Cell, int4, numeric, plain, shown, text};
use pgwire::message::backend::Column;
use pooling::snapshot::StormRow;

pub(super) const COLUMNS: [Column<'static>; 9] = [
    // `attempts` to connect, or `lost_requests`, which got no server.
    text("what"),
    text("user"),
    text("application_name"),
    text("addr"),
    // A second: now, at most, and before.
    numeric("rate"),
    numeric("greatest_rate"),
    numeric("usual_rate"),
    // Seconds since it began, and since it was over; NULL while it goes on.
    int4("began"),
    int4("ended"),
];

/// One row per storm.
pub(in crate::console) fn storms(out: &mut Vec<u8>, storms: &[StormRow]) {
    let rows = storms.iter().map(|storm| {
        [
            plain(storm.what),
            plain(&storm.user),
            plain(&storm.application_name),
            plain(&storm.origin),
            rate(storm.rate_milli),
            rate(storm.greatest_rate_milli),
            rate(storm.usual_rate_milli),
            shown(storm.began.as_secs()),
            storm.ended.and_then(|ended| shown(ended.as_secs())),
        ]
    });
    table::write(out, &COLUMNS, rows);
}

fn rate<'a>(milli: u64) -> Cell<'a> {
    shown(format_args!("{}.{:03}", milli / 1_000, milli % 1_000))
}
