//! The results of SHOW, each from the rows of one moment.

mod budget;
mod config;
mod events;
mod guard;
mod holders;
mod lanes;
mod locks;
mod pools;
mod sockets;
mod stalls;
mod stats;
mod storms;
#[cfg(test)]
mod tests;

pub(super) use budget::budget;
pub(super) use config::{config, config_hash, config_truth};
pub(super) use events::events;
pub(super) use guard::{overloads, patience};
pub(super) use holders::holders;
pub(super) use lanes::lanes;
pub(super) use locks::locks;
pub(super) use pools::pools;
pub(super) use sockets::{clients, servers};
pub(super) use stalls::stalls;
pub(super) use stats::{stats, stats_averages, stats_totals};
pub(super) use storms::storms;

use super::table::{self, Cell, plain, shown};
use pgwire::message::{ErrorFields, Severity, backend};
use pooling::seam::ClientAddress;

/// SHOW HELP: a notice, as PgBouncer sends it.
pub(super) fn help(out: &mut Vec<u8>) {
    const USAGE: &str = "\n\tSHOW HELP|CONFIG|CONFIG_TRUTH|CONFIG_HASH|POOLS|CLIENTS|SERVERS|HOLDERS|BUDGET|EVENTS|STALLS|LANES|LOCKS|OVERLOAD|PATIENCE|STORMS|VERSION\
        \n\tSHOW STATS|STATS_TOTALS|STATS_AVERAGES\
        \n\tRELOAD";
    let usage = ErrorFields {
        detail: Some(USAGE.to_owned()),
        ..ErrorFields::new(Severity::Notice, "00000", "Console usage")
    };
    usage.write_notice(out);
    backend::command_complete(out, "SHOW");
}

/// SHOW VERSION.
pub(super) fn version(out: &mut Vec<u8>, version: &str) {
    table::write(out, &[table::text("version")], [[shown(format_args!("holdfast {version}"))]]);
}

/// SHOW of one parameter.
pub(super) fn parameter(out: &mut Vec<u8>, name: &'static str, value: &str) {
    table::write(out, &[table::text(name)], [[plain(value)]]);
}

/// Address and port of a client, then of our end, then its process id where the system tells it.
fn address_cells<'a>(address: &ClientAddress) -> ([Cell<'a>; 4], Cell<'a>) {
    match address {
        ClientAddress::Tcp { peer, local } => (
            [
                shown(peer.ip().to_canonical()),
                shown(peer.port()),
                shown(local.ip().to_canonical()),
                shown(local.port()),
            ],
            table::zero(),
        ),
        ClientAddress::Unix { port, pid, .. } => {
            ([plain("unix"), shown(port), plain("unix"), shown(port)], shown(pid))
        }
    }
}
