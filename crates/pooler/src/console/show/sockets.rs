//! SHOW CLIENTS and SHOW SERVERS.

use super::address_cells;
use crate::console::sessions::Entry;
use crate::console::table::{
    self, Cell, int4, int8, plain, seconds_and_micros, shown, text, timestamp, zero,
};
use pgwire::message::backend::Column;
use pooling::CONSOLE_DATABASE;
use pooling::snapshot::{ClientRow, ServerRow};
use std::time::{Duration, SystemTime};

/// PgBouncer's, but for the type of `id`: ours do not fit its `int4`.
pub(super) const COLUMNS: [Column<'static>; 21] = [
    text("type"),
    text("user"),
    text("database"),
    text("replication"),
    text("state"),
    text("addr"),
    int4("port"),
    text("local_addr"),
    int4("local_port"),
    text("connect_time"),
    text("request_time"),
    int4("wait"),
    int4("wait_us"),
    int4("close_needed"),
    text("ptr"),
    text("link"),
    int4("remote_pid"),
    text("tls"),
    text("application_name"),
    int4("prepared_statements"),
    int8("id"),
];

/// One row per client, those of the console among them.
pub(in crate::console) fn clients(
    out: &mut Vec<u8>,
    clients: &[ClientRow],
    console: &[Entry],
    now: SystemTime,
) {
    let own = console.iter().map(|entry| console_row(entry, now));
    table::write(out, &COLUMNS, own.chain(clients.iter().map(|client| client_row(client, now))));
}

/// One row per server connection.
pub(in crate::console) fn servers(out: &mut Vec<u8>, servers: &[ServerRow], now: SystemTime) {
    table::write(out, &COLUMNS, servers.iter().map(|server| server_row(server, now)));
}

fn client_row(client: &ClientRow, now: SystemTime) -> [Cell<'_>; COLUMNS.len()] {
    let ([addr, port, local_addr, local_port], remote_pid) = address_cells(&client.address);
    let (wait, wait_us) = seconds_and_micros(client.wait);
    [
        plain("C"),
        named(&client.user, "(nouser)"),
        named(&client.database, "(nodb)"),
        plain("none"),
        plain(client.state),
        addr,
        port,
        local_addr,
        local_port,
        ago(now, client.connected),
        ago(now, client.requested),
        wait,
        wait_us,
        zero(),
        pointer(Some(client.id)),
        pointer(client.link),
        remote_pid,
        plain(&client.tls),
        plain(&client.application_name),
        shown(client.prepared_statements),
        shown(client.id),
    ]
}

fn server_row(server: &ServerRow, now: SystemTime) -> [Cell<'_>; COLUMNS.len()] {
    let (addr, port) = match server.peer {
        Some(peer) => (shown(peer.ip().to_canonical()), shown(peer.port())),
        None => (plain("unix"), shown(server.port)),
    };
    [
        plain("S"),
        plain(&server.user),
        plain(&server.database),
        plain("none"),
        plain(server.state),
        addr,
        port,
        // Our end of it is not kept.
        plain(if server.peer.is_some() { "" } else { "unix" }),
        zero(),
        ago(now, server.connected),
        ago(now, server.requested),
        zero(),
        zero(),
        shown(u8::from(server.close_needed)),
        pointer(Some(server.id)),
        pointer(server.link),
        shown(server.remote_pid),
        plain(&server.tls),
        plain(&server.application_name),
        shown(server.prepared_statements),
        shown(server.id),
    ]
}

fn console_row(entry: &Entry, now: SystemTime) -> [Cell<'_>; COLUMNS.len()] {
    let ([addr, port, local_addr, local_port], remote_pid) = address_cells(&entry.address);
    [
        plain("C"),
        plain(&entry.user),
        plain(CONSOLE_DATABASE),
        plain("none"),
        plain("active"),
        addr,
        port,
        local_addr,
        local_port,
        ago(now, entry.connected.elapsed()),
        ago(now, entry.requested.elapsed()),
        zero(),
        zero(),
        zero(),
        shown(format_args!("{:#x}", entry.id)),
        plain(""),
        remote_pid,
        plain(&entry.tls),
        plain(""),
        zero(),
        shown(entry.id),
    ]
}

fn named<'a>(name: &'a str, otherwise: &'static str) -> Cell<'a> {
    plain(if name.is_empty() { otherwise } else { name })
}

fn ago<'a>(now: SystemTime, span: Duration) -> Cell<'a> {
    timestamp(now.checked_sub(span).unwrap_or(SystemTime::UNIX_EPOCH))
}

/// PgBouncer prints an address in memory, which only serves to find the other end of a link. The identity does the same.
fn pointer<'a>(id: Option<u64>) -> Cell<'a> {
    id.map_or_else(|| plain(""), |id| shown(format_args!("{id:#x}")))
}
