//! Streams that go faster than the blocks which pay for them come.
//!
//! An opener asks for the next block when half of one is used; a fast stream is through the rest before the answer is here. Its
//! frames wait: they are within the stream's credit, which is not granted anew meanwhile, so that a stream holds at most its
//! window. The block that follows sets it going; without one in time, it is reset, unless the database is gone: then it may go on
//! for an allowance.

use super::inside::Route;
use super::{Connection, Hub};
use crate::contracts::Contract;
use clock::unix_ms;
use link::{Code, Frame, HEADER_BYTES};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Duration;
use trust::ContractId;

/// Ends of streams that wait at once.
const MAX_PARKED: usize = 65_536;

/// One end of a stream.
type StreamEnd = (Weak<Connection>, u32);

/// Which ends of streams wait for what follows a contract.
#[derive(Default)]
pub(crate) struct Parked {
    waiting: RefCell<HashMap<ContractId, Vec<StreamEnd>>>,
}

impl Route {
    /// `bytes` are paid for; `false` if there is nothing to pay them from now. Nothing overtakes what waits already.
    pub(super) fn pay(&mut self, hub: &Hub, bytes: usize) -> bool {
        let Some(contract) = &mut self.contract else { return true };
        let costs = if bytes == link::seal::TAG_BYTES { 0 } else { bytes as u64 };
        self.parked.is_empty() && Contract::spend(contract, costs, &hub.contracts, unix_ms()).is_ok()
    }
}

impl Connection {
    /// A frame waits for the block that pays for it.
    pub(super) fn park(self: &Rc<Self>, hub: &Hub, stream: u32, frame: &[u8], touched: &mut Vec<Rc<Self>>) {
        let mut guard = self.inside.borrow_mut();
        let Some(route) = guard.routes.get_mut(&stream) else { return };
        let begins = route.parked.is_empty();
        let Some(last) = route.contract.as_ref().map(Contract::last) else { return };
        if begins && (last.has_expired(unix_ms()) || hub.parked.count() >= MAX_PARKED) {
            drop(guard);
            hub.counters.refuse(Code::ContractSpent);
            return self.cut(hub, stream, Code::ContractSpent, touched);
        }
        if begins {
            route.parked_since = hub.clock.now();
        }
        route.parked.extend_from_slice(frame);
        hub.queued.set(hub.queued.get() + frame.len());
        drop(guard);
        if begins {
            let patience = hub.contract_wait();
            hub.parked.waiting.borrow_mut().entry(last.id).or_default().push((Rc::downgrade(self), stream));
            hub.deadlines.add(hub, patience, self, stream);
        }
    }

    /// The block that follows is here: what waits goes on, as far as that pays.
    fn resume(self: &Rc<Self>, hub: &Hub, stream: u32, touched: &mut Vec<Rc<Self>>) {
        let parked = {
            let mut guard = self.inside.borrow_mut();
            let Some(route) = guard.routes.get_mut(&stream) else { return };
            std::mem::take(&mut route.parked)
        };
        // It has gone on already, by another way.
        if parked.is_empty() {
            return;
        }
        hub.queued.set(hub.queued.get().saturating_sub(parked.len()));
        let mut rest = parked;
        let mut at = 0;
        while let Ok(Some(frame)) = Frame::parse(&rest[at..]) {
            let end = at + frame.bytes();
            let pays = {
                let mut guard = self.inside.borrow_mut();
                let Some(route) = guard.routes.get_mut(&stream) else { return };
                route.pay(hub, end - at - HEADER_BYTES)
            };
            if !pays {
                return self.park(hub, stream, &rest[at..], touched);
            }
            self.pass(hub, stream, &mut rest[at..end], touched);
            at = end;
        }
        let ended = {
            let guard = self.inside.borrow();
            guard
                .routes
                .get(&stream)
                .filter(|route| route.fin)
                .map(|route| (Rc::clone(&route.peer), route.peer_stream))
        };
        if let Some((peer, peer_stream)) = ended {
            self.pass_fin(hub, stream, (&peer, peer_stream), touched);
        }
    }

    /// Nothing has followed in time.
    pub(super) fn unpaid(self: &Rc<Self>, hub: &Hub, stream: u32) {
        let now = hub.clock.now();
        let overdue = self.inside.borrow().routes.get(&stream).is_some_and(|route| {
            !route.parked.is_empty() && now.since(route.parked_since) >= hub.contract_wait()
        });
        if !overdue {
            return;
        }
        let mut touched = Vec::new();
        if !self.go_on(hub, stream, &mut touched) {
            hub.counters.refuse(Code::ContractSpent);
            self.cut(hub, stream, Code::ContractSpent, &mut touched);
        }
        super::data::flush_all(hub, &touched);
        self.flush_from_outside(hub);
    }
}

impl Connection {
    /// What waits goes on for its contract's allowance, if it may have that, and that pays at least its first frame.
    fn go_on(self: &Rc<Self>, hub: &Hub, stream: u32, touched: &mut Vec<Rc<Self>>) -> bool {
        let first = {
            let guard = self.inside.borrow();
            guard.routes.get(&stream).and_then(|route| {
                let frame = Frame::parse(&route.parked).ok().flatten()?;
                Some((route.contract.as_ref()?.last(), (frame.bytes() - HEADER_BYTES) as u64))
            })
        };
        let Some((last, costs)) = first else { return false };
        let affords = || last.affords(costs, unix_ms());
        let goes_on = affords() || (hub.contracts.allow(&last) && affords());
        if goes_on {
            self.resume(hub, stream, touched);
        }
        goes_on
    }
}

impl Parked {
    fn count(&self) -> usize {
        self.waiting.borrow().values().map(Vec::len).sum()
    }
}

impl Hub {
    fn contract_wait(&self) -> Duration {
        Duration::from_millis(self.config.contract_wait_ms)
    }

    /// A block that follows `before` was shown.
    pub(super) fn resume_after(&self, before: ContractId, touched: &mut Vec<Rc<Connection>>) {
        let waiting = self.parked.waiting.borrow_mut().remove(&before).unwrap_or_default();
        for (connection, stream) in waiting {
            if let Some(connection) = connection.upgrade() {
                connection.resume(self, stream, touched);
            }
        }
    }

    /// In an outage, what waits for a block does not wait to the end of its patience.
    pub(crate) fn resume_without_database(&self) {
        if !self.contracts.allows() {
            return;
        }
        let waiting = self.parked.waiting.take();
        let mut touched = Vec::new();
        for (before, mut ends) in waiting {
            ends.retain(|(connection, stream)| {
                connection.upgrade().is_some_and(|connection| !connection.go_on(self, *stream, &mut touched))
            });
            if !ends.is_empty() {
                self.parked.waiting.borrow_mut().entry(before).or_default().append(&mut ends);
            }
        }
        super::data::flush_all(self, &touched);
    }

    /// A route is gone, and what waited on it.
    pub(super) fn unpark(&self, route: &Route) {
        self.queued.set(self.queued.get().saturating_sub(route.parked.len()));
    }

    /// Forgets ends of streams that are gone.
    pub(crate) fn sweep_parked(&self) {
        self.parked.waiting.borrow_mut().retain(|_, waiting| {
            waiting.retain(|(connection, stream)| {
                connection.upgrade().is_some_and(|connection| {
                    connection
                        .inside
                        .borrow()
                        .routes
                        .get(stream)
                        .is_some_and(|route| !route.parked.is_empty())
                })
            });
            !waiting.is_empty()
        });
    }
}
