//! How a connection ends, and what becomes of its streams.

use super::connection::End;
use super::connection::Part;
use super::inside::Route;
use super::{Connection, Hub, Presence};
use crate::door::ended_lease;
use clock::unix_ms;
use link::Code;
use link::message::{Drain, PresenceChange, Refuse, Reset, Standing};
use std::rc::Rc;

impl Connection {
    /// Its streams are reset, and it is forgotten, unless a newer start has its place.
    pub(super) fn leave(self: &Rc<Self>, hub: &Hub, end: &End) {
        if let End::Said(code) = end {
            self.say(hub, *code);
        }
        let routes: Vec<(u32, Route)> = self.inside.borrow_mut().routes.drain().collect();
        hub.streams.set(hub.streams.get().saturating_sub(routes.len()));
        let mut touched = Vec::new();
        for (_, route) in routes {
            hub.unpark(&route);
            route.peer.lose(hub, &route, &mut touched);
        }
        super::data::flush_all(hub, &touched);
        let mut inside = self.inside.borrow_mut();
        hub.queued.set(hub.queued.get().saturating_sub(inside.counted));
        inside.counted = 0;
        drop(inside);
        if let Part::Relay(end) = &self.part {
            return hub.lose_peer(self, end);
        }
        let mut clients = hub.clients.borrow_mut();
        let current = clients.get(&self.client);
        let is_current = current.is_some_and(|current| Rc::ptr_eq(current, self));
        // Where the same start has come again, it has not left.
        let has_left = is_current || current.is_none_or(|current| current.epoch != self.epoch);
        if is_current {
            clients.remove(&self.client);
        }
        drop(clients);
        hub.aside.borrow_mut().remove(self.client, self);
        if self.is_provider() {
            if is_current {
                hub.providers.set(hub.providers.get() - 1);
                hub.tell_peers(PresenceChange::Left, self);
            }
            if has_left {
                let (client, epoch, cause) = (self.client, self.epoch, end.number());
                hub.note(Presence::Left { client, epoch, cause, at_ms: unix_ms() });
            }
        }
        let why = match end {
            End::Said(code) | End::Gone(code) => code.label(),
            End::Broken(why) => why,
        };
        let carries = self.is_provider();
        tracing::debug!(client = %self.client, carries, why, "client left");
    }

    /// The other end of one of its streams is gone.
    fn lose(self: &Rc<Self>, hub: &Hub, theirs: &Route, touched: &mut Vec<Rc<Self>>) {
        let code = if theirs.answers { Code::ProviderGone } else { Code::Cancelled };
        let mut inside = self.inside.borrow_mut();
        let Some(route) = inside.routes.remove(&theirs.peer_stream) else { return };
        hub.unpark(&route);
        if route.opening && !route.answers {
            let refuse = Refuse { code, cause: "the provider has left".into(), retry_after: None };
            refuse.write(theirs.peer_stream, inside.out.plain());
        } else {
            Reset::because(code).write(theirs.peer_stream, inside.out.plain());
        }
        drop(inside);
        super::data::touch(touched, self);
    }

    /// It is told to go elsewhere.
    pub(super) fn send_away(&self, hub: &Hub) {
        self.drained.set(true);
        let config = &hub.config;
        let drain = Drain {
            deadline_ms: config.drain_deadline_ms,
            spread_ms: config.drain_spread_ms,
            addresses: hub.other_addresses(),
        };
        drain.write(self.inside.borrow_mut().out.plain());
        self.poke.notify_one();
    }
}

impl Hub {
    pub(super) fn note(&self, presence: Presence) {
        self.presence.borrow_mut().push_back(presence);
        self.presence_changed.notify_one();
    }

    /// Whoever is connected is told to the records again.
    pub(crate) fn note_all_present(&self) {
        for connection in self.clients.borrow().values() {
            connection.note_presence(self);
        }
    }

    /// Ends the sessions of whoever is refused, whenever it is heard who is; never ends. For as long as nothing is heard, all
    /// sessions go on.
    pub(crate) async fn keep_leases(self: Rc<Self>) {
        let mut keys = self.keys.clone();
        while keys.changed().await.is_ok() {
            keys.mark_unchanged();
            for connection in self.connections() {
                if let Some(cause) = connection.refusal(&self) {
                    tracing::info!(client = %connection.client, cause = cause.label(), "a session's lease has ended");
                    connection.end(ended_lease(cause).0);
                }
            }
        }
    }

    /// Everybody is sent away; whoever has no stream left, and has come back elsewhere, is closed.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
        self.tell_standing(Standing { draining: true });
        for connection in self.connections() {
            connection.send_away(self);
        }
    }

    /// While draining: whoever has no streams, and nobody left here to have some with, is closed.
    pub(crate) fn let_go(&self) {
        let carriers = self.providers.get();
        for connection in self.connections() {
            let has_moved =
                || !self.client(connection.client).is_some_and(|own| Rc::ptr_eq(&own, &connection));
            let is_needed = if connection.is_provider() { !has_moved() } else { carriers > 0 };
            if !is_needed && connection.inside.borrow().routes.is_empty() {
                connection.end(Code::Draining);
            }
        }
    }

    /// The end of the drain: everybody is closed, and so are the links to other relays.
    pub(crate) fn close_all(&self) {
        for connection in self.connections().into_iter().chain(self.peers()) {
            connection.end(Code::Draining);
        }
    }
}
