//! Who is connected, and which streams run between whom. One thread: forwarding is a function call.
//!
//! A stream is two [`Route`]s, one in each connection's table, each naming the other. A connection's insides are borrowed for
//! as long as a frame of its own is handled; the other end's are borrowed inside that, never the other way round, since an
//! opener and a provider are never the same connection.

mod aside;
mod connection;
mod control;
mod data;
mod deadlines;
mod departure;
mod inside;
mod open;
mod parked;
mod peer;

pub(crate) use connection::{Connection, leaves, linger};
pub(crate) use peer::PeerLink;

use crate::config::Config;
use crate::contracts::Contracts;
use crate::counters::{Counters, Status};
use crate::elsewhere::Elsewhere;
use ::keys::Known;
use aside::Aside;
use clock::Clock;
use deadlines::Deadlines;
use parked::Parked;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::watch;
use trust::{ClientId, RelayId};

/// A provider has come or gone: for the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is connected.
    Came {
        /// Who.
        client: ClientId,
        /// The number of its start.
        epoch: u64,
        /// Name and version of its program.
        software: Box<str>,
        /// Since when, ms since 1970.
        at_ms: u64,
    },
    /// It is not any more.
    Left {
        /// Who.
        client: ClientId,
        /// The number of its start.
        epoch: u64,
        /// Why: a code of the protocol, or 0 for a connection that broke.
        cause: u16,
        /// Since when, ms since 1970.
        at_ms: u64,
    },
}

/// One receiver may hold this part of the room for all.
const SHARE_DIVISOR: usize = 4;

pub(crate) struct Hub {
    pub config: Config,
    pub relay: RelayId,
    /// The number of this start.
    pub epoch: u64,
    pub clock: Clock,
    pub counters: Counters,
    pub contracts: Contracts,
    /// They change while the relay runs.
    pub keys: watch::Receiver<Arc<Known>>,
    pub held: Cell<usize>,
    pub waiting: Cell<usize>,
    pub draining: Cell<bool>,
    /// Usage cannot be written down: nothing new is begun.
    pub journal_full: Cell<bool>,
    /// What is on the disk or further: bytes that no end of this process can lose.
    pub journalled_bytes: Cell<u64>,
    /// How long the disk took for the last write, ms.
    pub journal_write_ms: Cell<u64>,
    clients: RefCell<HashMap<ClientId, Rc<Connection>>>,
    /// What the other relays say.
    pub elsewhere: RefCell<Elsewhere<PeerLink>>,
    /// Something has changed in it.
    pub elsewhere_changed: watch::Sender<()>,
    /// Connections whose client has come back, here or at another relay: their streams may end.
    aside: RefCell<Aside<Connection>>,
    providers: Cell<usize>,
    streams: Cell<usize>,
    /// Bytes in all outboxes.
    queued: Cell<usize>,
    deadlines: Deadlines,
    pub parked: Parked,
    presence: RefCell<VecDeque<Presence>>,
    pub presence_changed: tokio::sync::Notify,
}

impl Hub {
    pub(crate) fn new(
        config: Config,
        relay: RelayId,
        epoch: u64,
        keys: watch::Receiver<Arc<Known>>,
    ) -> Rc<Self> {
        let clock = Clock::start();
        let contracts = Contracts::new(clock, config.offline_after_ms);
        Rc::new(Self {
            config,
            relay,
            epoch,
            clock,
            counters: Counters::default(),
            contracts,
            keys,
            held: Cell::new(0),
            waiting: Cell::new(0),
            draining: Cell::new(false),
            journal_full: Cell::new(false),
            journalled_bytes: Cell::new(0),
            journal_write_ms: Cell::new(0),
            clients: RefCell::default(),
            elsewhere: RefCell::new(Elsewhere::new(relay)),
            elsewhere_changed: watch::Sender::new(()),
            aside: RefCell::default(),
            providers: Cell::new(0),
            streams: Cell::new(0),
            queued: Cell::new(0),
            deadlines: Deadlines::default(),
            parked: Parked::default(),
            presence: RefCell::default(),
            presence_changed: tokio::sync::Notify::new(),
        })
    }

    pub(crate) fn client(&self, id: ClientId) -> Option<Rc<Connection>> {
        self.clients.borrow().get(&id).cloned()
    }

    pub(crate) fn connections(&self) -> Vec<Rc<Connection>> {
        let mut all: Vec<_> = self.clients.borrow().values().cloned().collect();
        all.extend(self.aside.borrow().all());
        all
    }

    /// The first of what has come and gone, and is not written down yet.
    pub(crate) fn presence(&self, most: usize) -> Vec<Presence> {
        self.presence.borrow().iter().take(most).cloned().collect()
    }

    /// The first `count` are written down.
    pub(crate) fn forget_presence(&self, count: usize) {
        self.presence.borrow_mut().drain(..count);
    }

    /// Keeps the last `most`; whether others were lost.
    pub(crate) fn trim_presence(&self, most: usize) -> bool {
        let mut presence = self.presence.borrow_mut();
        let over = presence.len().saturating_sub(most);
        presence.drain(..over);
        over > 0
    }

    /// Slow receivers hold so much that nothing new is to be begun.
    pub(crate) const fn is_crowded(&self) -> bool {
        self.queued.get() / 9 >= self.config.buffer_bytes / 10
    }

    /// Slow receivers hold so much that whoever is behind is granted no more.
    pub(crate) const fn is_filling(&self) -> bool {
        self.queued.get() / 7 >= self.config.buffer_bytes / 10
    }

    /// There is no room left: what is meant for those who are behind is not taken.
    pub(crate) const fn is_full(&self) -> bool {
        self.queued.get() >= self.config.buffer_bytes
    }

    /// What may wait for one receiver: so that a single one never fills the relay.
    pub(crate) fn share_bytes(&self) -> usize {
        (self.config.buffer_bytes / SHARE_DIVISOR).max(data::HIGH_WATER_BYTES)
    }

    pub(crate) fn status(&self) -> Status {
        let counters = &self.counters;
        let clients = self.clients.borrow().len();
        Status {
            providers: self.providers.get(),
            openers: clients - self.providers.get(),
            relays: self.elsewhere.borrow().links().count(),
            elsewhere: self.elsewhere.borrow().providers(),
            streams: self.streams.get(),
            queued_bytes: self.queued.get(),
            contracts: self.contracts.len(),
            offline: self.contracts.is_offline(),
            allowances: self.contracts.allowed.get(),
            allowance_bytes: self.contracts.allowed_bytes.get(),
            journalled_bytes: self.journalled_bytes.get(),
            journal_write_ms: self.journal_write_ms.get(),
            held: self.held.get(),
            waiting: self.waiting.get(),
            accepted: counters.accepted.get(),
            admitted: counters.admitted.get(),
            put_off: counters.put_off.get(),
            handshakes_failed: counters.handshakes_failed.get(),
            opens: counters.opens.get(),
            opened: counters.opened.get(),
            moved: counters.moved.get(),
            forwarded: counters.forwarded.get(),
            bytes: counters.bytes.get(),
            refused: counters.refused.borrow().clone(),
            draining: self.draining.get(),
        }
    }

    /// The interval at which a client that comes now is asked when it is silent: it grows with their number.
    pub(crate) fn ping_interval_ms(&self) -> u32 {
        let clients = u32::try_from(self.clients.borrow().len()).unwrap_or(u32::MAX);
        let shared = u64::from(clients) * 1_000 / u64::from(self.config.pings_per_second.max(1));
        u32::try_from(shared).unwrap_or(u32::MAX).max(self.config.ping_interval_ms)
    }
}
