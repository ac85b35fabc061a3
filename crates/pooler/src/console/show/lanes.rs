//! SHOW LANES: the classes of work of each pool. PgBouncer has no such result.

use crate::console::table::{self, int4, int8, plain, seconds_and_micros, shown, text};
use pgwire::message::backend::Column;
use pooling::snapshot::LaneRow;

pub(super) const COLUMNS: [Column<'static>; 11] = [
    text("database"),
    text("user"),
    text("lane"),
    int4("weight"),
    int4("share_percent"),
    // Whole servers of those that there are now.
    int4("guaranteed"),
    int4("cl_waiting"),
    int4("sv_active"),
    int4("maxwait"),
    int4("maxwait_us"),
    // Servers given to it so far.
    int8("served"),
];

/// One row per lane and pool; none without `[lanes]`.
pub(in crate::console) fn lanes(out: &mut Vec<u8>, lanes: &[LaneRow]) {
    let rows = lanes.iter().map(|lane| {
        let (maxwait, maxwait_us) = seconds_and_micros(lane.maxwait);
        [
            plain(&lane.database),
            plain(&lane.user),
            plain(&lane.lane),
            shown(lane.weight),
            shown(lane.share_percent),
            shown(lane.guaranteed),
            shown(lane.waiting),
            shown(lane.active),
            maxwait,
            maxwait_us,
            shown(lane.served),
        ]
    });
    table::write(out, &COLUMNS, rows);
}
