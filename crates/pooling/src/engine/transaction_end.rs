//! What a setting asks for at the end of a transaction: a reset in every pool mode (`server_reset_query_always`), and the
//! end of a session whose server is to be replaced (`server_fast_close`).

use super::Engine;
use crate::client::ClientState;
use crate::connection::{ClientId, ServerId};
use crate::seam::Transport;
use crate::server::{Cleaning, ServerState};
use crate::texts;
use settings::pooler::PoolMode;

impl Engine {
    /// A client of transaction or statement mode does not need its server any more.
    pub(super) fn end_transaction(&mut self, transport: &mut impl Transport, id: ServerId) {
        let general = &self.config.general;
        if !general.resets_after_transactions() {
            return self.release_server(transport, id);
        }
        let deadline = self.now + general.cancel_wait_timeout;
        // It is expected back within a round trip: no login is started in its place.
        let cleaning = Cleaning {
            thorough: true,
            after_transaction: true,
            is_test: true,
            ..Cleaning::until(Some(deadline))
        };
        self.start_short_cleaning(transport, id, cleaning, deadline);
    }

    /// A client of session mode may be between two transactions.
    pub(super) fn rest_in_session(&mut self, transport: &mut impl Transport, id: ServerId, client: ClientId) {
        if self.rests_pinned(id) && self.dismiss_if_stopping(transport, client) {
            return;
        }
        if !self.end_session_if_retired(transport, id) {
            self.arm_session_idle(client);
        }
    }

    /// With `server_fast_close`: a server that is to be replaced goes between two transactions of its session, and its
    /// client hears why. True if it did.
    pub(super) fn end_session_if_retired(&mut self, transport: &mut impl Transport, id: ServerId) -> bool {
        if !self.config.general.server_fast_close {
            return false;
        }
        let Some(server) = self.servers.find(id) else { return false };
        let (Some(cause), ServerState::Active(client_id)) = (server.close_needed, &server.state) else {
            return false;
        };
        let client_id = *client_id;
        let at_rest = server.is_at_rest();
        let is_between = self
            .clients
            .find(client_id)
            .is_some_and(|client| matches!(client.state, ClientState::Active { streaming: 0, .. }));
        if self.pool(server.pool).settings.pool_mode != PoolMode::Session || !at_rest || !is_between {
            return false;
        }
        let text = cause.log_text();
        self.dismiss_client(transport, client_id, &texts::fatal(texts::ADMIN_SHUTDOWN, text), text);
        self.close_server(transport, id, cause);
        true
    }
}
