//! SHOW HOLDERS: who keeps a server without using it. PgBouncer has no such result.

use super::address_cells;
use crate::console::table::{self, int4, int8, plain, seconds_and_micros, shown, text};
use pgwire::message::backend::Column;
use pooling::snapshot::HolderRow;

pub(super) const COLUMNS: [Column<'static>; 11] = [
    text("database"),
    text("user"),
    text("addr"),
    int4("port"),
    text("application_name"),
    text("reason"),
    int4("held"),
    int4("held_us"),
    // Clients that wait in the same pool.
    int4("cl_waiting"),
    int4("remote_pid"),
    int8("id"),
];

/// One row per holder.
pub(in crate::console) fn holders(out: &mut Vec<u8>, holders: &[HolderRow]) {
    let rows = holders.iter().map(|holder| {
        let ([addr, port, _, _], _) = address_cells(&holder.address);
        let (held, held_us) = seconds_and_micros(holder.held);
        [
            plain(&holder.database),
            plain(&holder.user),
            addr,
            port,
            plain(&holder.application_name),
            plain(holder.reason),
            held,
            held_us,
            shown(holder.waiting),
            shown(holder.remote_pid),
            shown(holder.id),
        ]
    });
    table::write(out, &COLUMNS, rows);
}
