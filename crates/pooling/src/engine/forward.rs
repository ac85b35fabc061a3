//! Requests on their way from a client to its server.

mod pass;
mod scan;
mod translate;

use super::Engine;
use crate::client::ClientState;
use crate::connection::{ClientId, ServerId};
use crate::held::{join, keep};
use crate::seam::{Flow, Transport};
use crate::texts;
use pass::{Pass, Passed};
use pgwire::message::TransactionStatus;
use scan::{Scanned, Stop};
use settings::pooler::PoolMode;

/// What is kept of the shared buffer for translated requests between two of them.
const MAX_TRANSLATED_BYTES: usize = 64 * 1024;

impl Engine {
    /// Sends what a client has sent on to its server: whole messages at once, long ones as they come. `prefix` is a
    /// query of the pooler's own that goes ahead in the same write; its reply is noted already.
    ///
    /// A message that may be held is never sent in part: if its client dies, the server is not left half-told.
    pub(super) fn forward_request(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        server_id: ServerId,
        chunk: &[u8],
        prefix: Option<&[u8]>,
    ) {
        let now = self.now;
        let Some(client) = self.clients.find_mut(id) else { return };
        let Some(server) = self.servers.find_mut(server_id) else { return };
        let ClientState::Active { streaming, .. } = client.state else { return };
        let pool = &mut self.pools[server.pool.0 as usize];
        let mode = pool.settings.pool_mode;
        let was_at_rest = server.replies.is_empty();
        let mut held = std::mem::take(&mut client.held);
        let bytes = join(&mut held, chunk);
        let pass = Pass {
            general: &self.config.general,
            parameters: &self.parameters,
            statements: &mut self.statements,
            pool,
            server,
            id,
            client,
            translated: &mut self.translated,
        };
        let Passed { scanned, is_translated, answers } = pass.over(bytes, streaming, prefix.is_none());
        let Scanned { end, streaming, stop, .. } = scanned;

        let ready = if is_translated { &self.translated[..] } else { &bytes[..end] };
        let flow = match prefix {
            Some(prefix) => transport.send(server_id.into(), &[prefix, ready]),
            None if ready.is_empty() => Flow::Flushed,
            None => transport.send(server_id.into(), &[ready]),
        };
        if is_translated {
            self.translated.clear();
            self.translated.shrink_to(MAX_TRANSLATED_BYTES);
        }

        if was_at_rest {
            server.query_at = now;
            if server.replies.status() == TransactionStatus::Idle {
                server.transaction_at = now;
            }
        }
        // What the pooler has answered itself, or a COPY that has failed, is over by now. A message of which nothing has gone
        // on is yet to begin.
        let is_over = end > 0 && streaming == 0 && mode != PoolMode::Session && server.is_at_rest();
        let is_kept = matches!(stop, Stop::Tail | Stop::Full) && end < bytes.len();
        if is_kept {
            client.held = keep(held, chunk, end);
        }
        client.state = ClientState::Active { server: server_id, streaming };
        client.request_at = now;
        client.partial_since = match (streaming > 0 || is_kept, client.partial_since) {
            (false, _) => None,
            (true, since) => Some(since.filter(|_| end == 0).unwrap_or(now)),
        };
        let is_partial = client.partial_since == Some(now);
        client.throttled |= matches!(stop, Stop::Full);
        client.server_full |= flow == Flow::Blocked;
        if matches!(stop, Stop::Full) || flow == Flow::Blocked {
            transport.set_reading(id.into(), false);
        }
        if !answers.is_empty() {
            self.send_to_client(transport, id, &answers, None);
        }
        if is_partial && matches!(stop, Stop::Tail | Stop::Full) {
            self.arm_partial(id);
        }
        match stop {
            Stop::Tail | Stop::Full if is_over => self.release_from_client(transport, server_id, id),
            Stop::Tail | Stop::Full => self.arm_active(id),
            Stop::Terminate => self.client_gone(transport, id, "client close request"),
            Stop::SimpleQuery => self.refuse_simple_query(transport, id),
            Stop::Broken(what) => self.break_protocol(transport, id, &what),
            Stop::TooMuch(what) => {
                let farewell = texts::fatal(texts::PROGRAM_LIMIT_EXCEEDED, &what);
                self.dismiss_client(transport, id, &farewell, &what);
            }
        }
    }

    /// The server has answered some: a client that had too much in flight goes on.
    pub(super) fn resume_throttled(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        server: ServerId,
    ) {
        let Some(client) = self.clients.find_mut(id) else { return };
        if !client.throttled {
            return;
        }
        client.throttled = false;
        if !client.server_full {
            transport.set_reading(id.into(), true);
        }
        self.forward_request(transport, id, server, &[], None);
    }
}
