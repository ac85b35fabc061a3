//! Bytes on their way through: counted, checked against credit, and put into the other end's outbox.

use super::inside::{Inside, Route};
use super::{Connection, Hub};
use crate::counters::add;
use link::message::{Refuse, Reset};
use link::seal::TAG_BYTES;
use link::{Code, HEADER_BYTES, Kind, write_frame};
use std::rc::Rc;

/// A connection that has more than this to send holds back the credit that its client grants.
pub(super) const HIGH_WATER_BYTES: usize = 1024 * 1024;
/// Below this it passes it on again.
pub(super) const LOW_WATER_BYTES: usize = 256 * 1024;
/// A provider that has more than this to take gets no new streams.
pub(super) const BEHIND_BYTES: usize = 8 * HIGH_WATER_BYTES;
/// Frames of at least this size are encrypted from where they stand, as a record of their own.
const LARGE_BYTES: usize = 4 * 1024;

/// Remembers that `peer` has something to send.
pub(super) fn touch(touched: &mut Vec<Rc<Connection>>, peer: &Rc<Connection>) {
    if !peer.touched.replace(true) {
        touched.push(Rc::clone(peer));
    }
}

/// Sends what was put into them.
pub(super) fn flush_all(hub: &Hub, touched: &[Rc<Connection>]) {
    for peer in touched {
        peer.touched.set(false);
        peer.flush_from_outside(hub);
    }
}

impl Connection {
    /// DATA has come: `frame` is the whole of it.
    pub(super) fn data(
        self: &Rc<Self>,
        hub: &Hub,
        stream: u32,
        frame: &mut [u8],
        touched: &mut Vec<Rc<Self>>,
    ) {
        let mut guard = self.inside.borrow_mut();
        // A stream that is over here may be told more; that is nobody's fault.
        let Some(route) = guard.routes.get_mut(&stream) else { return };
        let bytes = frame.len() - HEADER_BYTES;
        let fault = if route.opening || route.ended || route.fin || bytes < TAG_BYTES {
            Some(Code::ProtocolError)
        } else if bytes == TAG_BYTES {
            // The sealed end costs no credit; there is one.
            route.ended = true;
            None
        } else if route.credit.available() < bytes as u64 {
            Some(Code::FlowControl)
        } else if route.peer.takes_no_more(hub) {
            Some(Code::Stalled)
        } else {
            let _ = route.credit.spend(bytes);
            None
        };
        let waits = fault.is_none() && !route.pay(hub, bytes);
        drop(guard);
        if let Some(code) = fault {
            hub.counters.refuse(code);
            self.cut(hub, stream, code, touched);
        } else if waits {
            self.park(hub, stream, frame, touched);
        } else {
            self.pass(hub, stream, frame, touched);
        }
    }

    /// What is paid for goes to the other end.
    pub(super) fn pass(&self, hub: &Hub, stream: u32, frame: &mut [u8], touched: &mut Vec<Rc<Self>>) {
        let guard = self.inside.borrow();
        let Some(route) = guard.routes.get(&stream) else { return };
        let (peer, peer_stream) = (Rc::clone(&route.peer), route.peer_stream);
        drop(guard);
        add(&hub.counters.bytes, (frame.len() - HEADER_BYTES) as u64);
        frame[4..HEADER_BYTES].copy_from_slice(&peer_stream.to_be_bytes());
        peer.put(hub, frame);
        touch(touched, &peer);
    }

    /// It is so far behind that its streams are cut: their bytes have no room here.
    fn takes_no_more(&self, hub: &Hub) -> bool {
        let bytes = self.inside.borrow().out.bytes();
        bytes > HIGH_WATER_BYTES && (hub.is_full() || bytes > hub.share_bytes())
    }

    /// Adds a whole frame to what is to be sent.
    fn put(&self, hub: &Hub, frame: &[u8]) {
        let mut guard = self.inside.borrow_mut();
        let Inside { tls, out, .. } = &mut *guard;
        if frame.len() < LARGE_BYTES {
            out.plain().extend_from_slice(frame);
        } else if out.seal(tls, frame).is_err() {
            self.end(Code::Idle);
        }
        hub.count(&mut guard);
    }

    /// FIN has come.
    pub(super) fn fin(self: &Rc<Self>, hub: &Hub, stream: u32, touched: &mut Vec<Rc<Self>>) {
        let (peer, peer_stream) = {
            let mut guard = self.inside.borrow_mut();
            let Some(route) = guard.routes.get_mut(&stream) else { return };
            if route.opening || route.fin {
                drop(guard);
                return self.cut(hub, stream, Code::ProtocolError, touched);
            }
            route.fin = true;
            // It comes behind what waits.
            if !route.parked.is_empty() {
                return;
            }
            (Rc::clone(&route.peer), route.peer_stream)
        };
        self.pass_fin(hub, stream, (&peer, peer_stream), touched);
    }

    /// FIN goes to the other end.
    pub(super) fn pass_fin(
        &self,
        hub: &Hub,
        stream: u32,
        (peer, peer_stream): (&Rc<Self>, u32),
        touched: &mut Vec<Rc<Self>>,
    ) {
        let over = {
            let mut guard = peer.inside.borrow_mut();
            let Inside { routes, out, .. } = &mut *guard;
            write_frame(out.plain(), Kind::Fin, peer_stream, |_| {});
            routes.get(&peer_stream).is_none_or(|route| route.fin && route.parked.is_empty())
        };
        touch(touched, peer);
        if over {
            self.unlink(hub, stream);
        }
    }

    /// RESET has come.
    pub(super) fn reset(self: &Rc<Self>, hub: &Hub, stream: u32, reset: Reset, touched: &mut Vec<Rc<Self>>) {
        if let Some(Unlinked { peer, peer_stream, opening, answers }) = self.unlink(hub, stream) {
            let mut guard = peer.inside.borrow_mut();
            if opening && !answers {
                let code = reset.code.from_provider();
                let refuse = Refuse { code, cause: "".into(), retry_after: reset.retry_after };
                refuse.write(peer_stream, guard.out.plain());
            } else {
                reset.write(peer_stream, guard.out.plain());
            }
            drop(guard);
            touch(touched, &peer);
        }
    }

    /// Ends a stream from here: both ends are told.
    pub(super) fn cut(self: &Rc<Self>, hub: &Hub, stream: u32, code: Code, touched: &mut Vec<Rc<Self>>) {
        Reset::because(code).write(stream, self.inside.borrow_mut().out.plain());
        // It may not be the one whose turn this is.
        touch(touched, self);
        self.reset(hub, stream, Reset::because(code), touched);
    }

    /// Takes a stream out of both tables.
    pub(super) fn unlink(&self, hub: &Hub, stream: u32) -> Option<Unlinked> {
        let route = self.inside.borrow_mut().routes.remove(&stream)?;
        let other = route.peer.inside.borrow_mut().routes.remove(&route.peer_stream);
        [Some(&route), other.as_ref()].into_iter().flatten().for_each(|route| hub.unpark(route));
        hub.streams.set(hub.streams.get().saturating_sub(1));
        let Route { peer, peer_stream, opening, answers, .. } = route;
        Some(Unlinked { peer, peer_stream, opening, answers: !answers })
    }
}

/// The other end of a stream that is in no table any more.
pub(super) struct Unlinked {
    pub peer: Rc<Connection>,
    pub peer_stream: u32,
    /// The provider had not answered yet.
    pub opening: bool,
    /// It was the end that carries.
    pub answers: bool,
}

impl Hub {
    /// Keeps the count of all that waits here.
    pub(super) fn count(&self, inside: &mut Inside) {
        let bytes = inside.out.bytes();
        self.queued.set((self.queued.get() + bytes).saturating_sub(inside.counted));
        inside.counted = bytes;
    }
}
