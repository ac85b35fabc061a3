//! Cancel requests from clients: forwarded to the query that they mean, and to no other.

use super::Engine;
use crate::client::{CancelKeyBytes, ClientState};
use crate::connection::{ClientId, ServerId};
use crate::seam::Transport;
use crate::server::ServerState;
use crate::texts;
use pgwire::CancelKey;

/// Cancel requests on their way to one server: the first may be late and hit what ran before, the second is for what
/// runs now. More would say nothing new.
const MAX_CANCELS: u32 = 2;

impl Engine {
    /// A connection has shown a cancel key. It is closed when the cancel request has ended, as PostgreSQL does.
    pub(super) fn on_cancel_request(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        key: &CancelKey,
    ) {
        // It is not a login, nor a probe.
        if let Some(requester) = self.clients.find_mut(id) {
            requester.state = ClientState::Cancelling;
            self.in_login -= 1;
        }
        let Some(target) = self.owner_of(key) else {
            return self.client_gone(transport, id, "cancel request with an unknown key");
        };
        match self.clients.find(target).map(|client| &client.state) {
            Some(ClientState::Waiting(ticket)) => {
                let ticket = *ticket;
                // Drivers ask for this when the caller's time is up.
                self.learn_from_departure(target);
                if let Some(pool) = self.clients.find(target).and_then(|client| client.pool) {
                    self.pool_mut(pool).line.remove(ticket);
                    self.update_need(pool);
                }
                let error =
                    texts::error(texts::QUERY_CANCELED, "canceling statement due to user request", None);
                self.refuse_request(transport, target, &error);
            }
            Some(&ClientState::Active { server, .. }) => {
                let needs_one = self
                    .servers
                    .find(server)
                    // At rest there is nothing to cancel.
                    .is_some_and(|server| server.cancels < MAX_CANCELS && !server.replies.is_empty());
                if needs_one {
                    self.start_cancel(transport, server);
                    if let Some(pool) = self.servers.find(server).map(|server| server.pool) {
                        self.pool_mut(pool).counters.client_cancels += 1;
                    }
                    self.cancellers.entry(server).or_default().push(id);
                    return;
                }
            }
            _ => {}
        }
        self.client_gone(transport, id, "cancel request");
    }

    /// Whose key it is, all of it.
    fn owner_of(&self, key: &CancelKey) -> Option<ClientId> {
        let head: [u8; 4] = *key.secret.as_bytes().first_chunk()?;
        let mut name: CancelKeyBytes = [0; 8];
        name[..4].copy_from_slice(&key.process_id.to_be_bytes());
        name[4..].copy_from_slice(&head);
        let &id = self.keys.get(&name)?;
        // Compared in constant time.
        self.clients.find(id).filter(|client| client.cancel_key().secret == key.secret).map(|_| id)
    }

    /// The connection of a cancel request has ended: it will not arrive any more.
    pub fn on_cancel_ended(&mut self, transport: &mut impl Transport, id: ServerId) {
        if let Some(requesters) = self.cancellers.get_mut(&id) {
            let requester = requesters.pop();
            if requesters.is_empty() {
                self.cancellers.remove(&id);
            }
            if let Some(requester) = requester {
                self.client_gone(transport, requester, "cancel request");
            }
        }
        let Some(server) = self.servers.find_mut(id) else { return };
        server.cancels = server.cancels.saturating_sub(1);
        if matches!(server.state, ServerState::Cleaning(_)) {
            self.advance_cleaning(transport, id);
        }
    }
}
