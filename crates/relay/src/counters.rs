//! What a relay has done, for whoever looks after it.

use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Counters of one relay; it has one thread.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub accepted: Cell<u64>,
    pub admitted: Cell<u64>,
    /// Told, before TLS, when to come back.
    pub put_off: Cell<u64>,
    pub handshakes_failed: Cell<u64>,
    pub opens: Cell<u64>,
    pub opened: Cell<u64>,
    /// Opens that were sent to another relay.
    pub moved: Cell<u64>,
    /// Opens that were passed on to another relay.
    pub forwarded: Cell<u64>,
    pub bytes: Cell<u64>,
    /// By code: hellos, opens and streams together.
    pub refused: std::cell::RefCell<BTreeMap<&'static str, u64>>,
}

/// How a relay stands.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// Connected providers.
    pub providers: usize,
    /// Connected apps and proxies.
    pub openers: usize,
    /// Other relays to which a link stands.
    pub relays: usize,
    /// Providers that other relays have.
    pub elsewhere: usize,
    /// Streams that stand.
    pub streams: usize,
    /// Bytes that wait here for slow receivers.
    pub queued_bytes: usize,
    /// Contracts that are known.
    pub contracts: usize,
    /// The database gives no answer: contracts that are used up go on for their allowance.
    pub offline: bool,
    /// Contracts that were allowed to go on beyond their block since the start.
    pub allowances: u64,
    /// Bytes that were carried so.
    pub allowance_bytes: u64,
    /// Bytes of use that the usage journal has taken since the start. What is not in it is lost if the relay is killed.
    pub journalled_bytes: u64,
    /// How long the disk took to take the last of them, ms.
    pub journal_write_ms: u64,
    /// Refused clients that are held.
    pub held: usize,
    /// Connections that wait for their handshake, and those that are in it.
    pub waiting: usize,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Clients admitted since the start.
    pub admitted: u64,
    /// Connections that were told, before TLS, when to come back.
    pub put_off: u64,
    /// Connections that ended in their handshake.
    pub handshakes_failed: u64,
    /// Opens since the start.
    pub opens: u64,
    /// Opens that a provider has taken.
    pub opened: u64,
    /// Opens whose opener was told the provider's relay.
    pub moved: u64,
    /// Opens that were passed on to the provider's relay.
    pub forwarded: u64,
    /// Bytes that have passed.
    pub bytes: u64,
    /// Refusals by code.
    pub refused: BTreeMap<&'static str, u64>,
    /// It sends its clients away.
    pub draining: bool,
}

pub(crate) fn add(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get().wrapping_add(more));
}

impl Counters {
    pub(crate) fn refuse(&self, code: link::Code) {
        *self.refused.borrow_mut().entry(code.label()).or_default() += 1;
    }
}
