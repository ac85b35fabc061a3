//! What a client has left in its server's session: found out before anybody else gets the server.
//!
//! What can follow the client follows it; what cannot keeps the server with its client, or is refused.

use super::Engine;
use crate::client::ClientState;
use crate::connection::{ClientId, ServerId};
use crate::parameters::ROLE;
use crate::seam::Transport;
use crate::server::Probe;
use crate::texts;
use crate::watch::{Found, Held, Inquiry, MAX_OWN_NAMES, Verdict, question};
use pgwire::message::frontend;
use settings::pooler::SessionState;

/// Questions that a late cancel may hit before the client is given up.
const MAX_PROBE_RETRIES: u8 = 3;

impl Engine {
    /// The client's transaction is over. True if the server is not free all the same: it stays with its client, or has
    /// to be asked first.
    #[inline]
    pub(super) fn keeps_server(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        client_id: ClientId,
    ) -> bool {
        let Some(server) = self.servers.find_mut(id) else { return false };
        // Such a server is closed, whatever it holds.
        if server.said_fatal || server.replies.is_doubtful() {
            return false;
        }
        match server.watch.verdict() {
            Verdict::Clean => {
                server.watch.forget_suspicion();
                false
            }
            Verdict::Keep => {
                server.watch.forget_suspicion();
                self.resume_throttled(transport, client_id, id);
                self.arm_active(client_id);
                self.rest_in_session(transport, id, client_id);
                true
            }
            Verdict::BackAtStart => self.take_back_to_start(transport, id, client_id),
            Verdict::Ask(inquiry) => self.start_probe(transport, id, client_id, inquiry),
        }
    }

    /// The driver's own reset has been seen: the client is where it began, and the server where it began.
    fn take_back_to_start(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        client_id: ClientId,
    ) -> bool {
        let (Some(server), Some(client)) = (self.servers.find_mut(id), self.clients.find_mut(client_id))
        else {
            return false;
        };
        if !server.watch.has_discarded_all() && server.parameters.further_value(ROLE).is_some() {
            // RESET ALL spares it.
            let inquiry = Inquiry { parameters: true, held: server.watch.held() };
            return self.start_probe(transport, id, client_id, inquiry);
        }
        self.parameters.forget_further(&mut server.parameters);
        client.parameters = client.start.clone();
        server.watch.clear();
        self.unpin(id);
        false
    }

    fn start_probe(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        client_id: ClientId,
        inquiry: Inquiry,
    ) -> bool {
        let now = self.now;
        let (Some(server), Some(client)) = (self.servers.find_mut(id), self.clients.find_mut(client_id))
        else {
            return false;
        };
        let named = &mut client.names;
        let further = client.parameters.further().chain(client.start.further());
        let set = further.map(|(name, _)| name).filter(|name| name.contains('.')).map(Box::from);
        let mut is_whole = true;
        for name in server.watch.take_names().into_iter().chain(set) {
            if !named.contains(&name) {
                is_whole &= named.len() < MAX_OWN_NAMES;
                if is_whole {
                    named.push(name);
                }
            }
        }
        let mut query = Vec::new();
        frontend::query(&mut query, &question(inquiry, named));
        let mut found = Found::default();
        if !is_whole {
            found.held |= Held::UNNAMED;
        }
        client.state = ClientState::Preparing { server: id };
        client.partial_since = None;
        server.query_at = now;
        server.own_error = None;
        // Nothing is owed, so there is room.
        server.note_own_query();
        transport.send(id.into(), &[&query]);
        server.probe = Some(Box::new(Probe { inquiry, found, query, retries: 0 }));
        let pool = server.pool;
        self.pool_mut(pool).counters.session_probes += 1;
        self.arm_active(client_id);
        true
    }

    /// The server has answered what its session holds.
    pub(super) fn end_probe(&mut self, transport: &mut impl Transport, id: ServerId, client_id: ClientId) {
        let (Some(server), Some(client)) = (self.servers.find_mut(id), self.clients.find_mut(client_id))
        else {
            return;
        };
        let Some(mut probe) = server.probe.take() else { return };
        if let Some(error) = server.own_error.take() {
            if error.code == texts::QUERY_CANCELED && probe.retries < MAX_PROBE_RETRIES {
                probe.retries += 1;
                server.note_own_query();
                transport.send(id.into(), &[&probe.query]);
                server.probe = Some(probe);
                return;
            }
            let text = format!("the state of the session could not be read: {}", error.message);
            let farewell = texts::fatal(&error.code, &text);
            return self.dismiss_client(transport, client_id, &farewell, &text);
        }
        let mut held = probe.found.held;
        if probe.inquiry.parameters {
            let found = &probe.found.parameters;
            let (server, client, start) = (&mut server.parameters, &mut client.parameters, &client.start);
            if !self.parameters.settle(server, client, start, found) {
                held |= Held::UNNAMED;
            }
        }
        server.watch.settle(held);
        if server.watch.held().is_empty() {
            self.unpin(id);
            if self.clients.find(client_id).is_some_and(|client| client.blocked_since.is_none()) {
                transport.set_reading(client_id.into(), true);
            }
            return self.part(transport, id, client_id);
        }
        self.pin(transport, id, client_id);
    }

    /// The server stays with its client, if that is allowed and there is room.
    fn pin(&mut self, transport: &mut impl Transport, id: ServerId, client_id: ClientId) {
        let Some(server) = self.servers.find_mut(id) else { return };
        let what = server.watch.held().name();
        let pool = &mut self.pools[server.pool.0 as usize];
        if !server.pinned {
            let farewell = if pool.settings.session_state == SessionState::Refuse {
                Some(texts::refused_state(pool.settings.pool_mode.as_str(), what))
            } else if pool.pinned >= most_pinned(pool.settings.pool_size) {
                Some(texts::too_many_pinned(what))
            } else {
                None
            };
            if let Some(farewell) = farewell {
                pool.counters.pin_refusals += 1;
                let reason = format!("session state that cannot follow the client: {what}");
                return self.dismiss_client(transport, client_id, &farewell, &reason);
            }
            server.pinned = true;
            pool.pinned += 1;
            pool.counters.pins += 1;
        }
        let now = self.now;
        let Some(client) = self.clients.find_mut(client_id) else { return };
        client.state = ClientState::Active { server: id, streaming: 0 };
        client.request_at = now;
        client.throttled = false;
        if !client.server_full {
            transport.set_reading(client_id.into(), true);
        }
        if self.dismiss_if_stopping(transport, client_id) {
            return;
        }
        self.arm_client_idle(client_id);
        if self.clients.find(client_id).is_some_and(|client| !client.held.is_empty()) {
            self.forward_request(transport, client_id, id, &[], None);
        }
    }

    /// True if a server stays with its client and does nothing for it now.
    pub(super) fn rests_pinned(&self, id: ServerId) -> bool {
        self.servers.find(id).is_some_and(|server| server.pinned && server.replies.is_settled())
    }

    fn unpin(&mut self, id: ServerId) {
        let Some(server) = self.servers.find_mut(id) else { return };
        if std::mem::take(&mut server.pinned) {
            self.pools[server.pool.0 as usize].pinned -= 1;
        }
    }
}

/// One server at least is left for the others, if there is more than one.
const fn most_pinned(pool_size: usize) -> usize {
    if pool_size > 1 { pool_size - 1 } else { 1 }
}
