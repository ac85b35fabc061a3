//! Requests on their way from a client to its server.

mod scan;
mod translate;

use super::Engine;
use crate::client::ClientState;
use crate::connection::{ClientId, ServerId};
use crate::held::join;
use crate::seam::{Flow, Transport};
use crate::statements::{self, Shape};
use crate::texts;
use pgwire::frame;
use pgwire::message::TransactionStatus;
use scan::{Eye, Limits, Scanned, Stop, scan};
use settings::pooler::{PoolMode, SessionState};
use translate::Translator;

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
        let Some(client) = self.clients.find_mut(id) else { return };
        let Some(server) = self.servers.find_mut(server_id) else { return };
        let ClientState::Active { streaming, .. } = client.state else { return };
        let pool = &mut self.pools[server.pool.0 as usize];
        let mode = pool.settings.pool_mode;
        let was_at_rest = server.replies.is_empty();
        let mut held = std::mem::take(&mut client.held);
        let bytes = join(&mut held, chunk);
        let general = &self.config.general;
        let limits = Limits {
            message: general.max_packet_size,
            hold: general.waiter_buffer,
            extended_only: general.disable_pqexec,
        };
        // A simple query of a client that prepares nothing concerns no name.
        let is_plain = streaming == 0
            && client.statements.is_none()
            && !server.statements.has_pending()
            && is_one_query(bytes);
        let translates = server.translates_statements && !is_plain;
        let mut translated = std::mem::take(&mut self.translated);
        let mut translator = translates.then(|| Translator {
            input: bytes,
            client_id: id,
            client: &mut client.statements,
            server: &mut server.statements,
            statements: &mut self.statements,
            limits: statements::Limits::of(general),
            output: &mut translated,
            copied: 0,
            shape: Shape::default(),
            answers: Vec::new(),
            marked: None,
            is_inside_message: server.rest > 0,
        });
        let is_watched = mode != PoolMode::Session && pool.settings.session_state != SessionState::Ignore;
        let eye = is_watched.then_some(Eye {
            watch: &mut server.watch,
            parameters: &self.parameters,
            server: &server.parameters,
        });
        let Scanned { end, streaming, flushes, stop } =
            scan(bytes, streaming, limits, &mut server.replies, &mut pool.counters, translator.as_mut(), eye);
        let mut answers = Vec::new();
        let mut ready = &bytes[..end];
        if let Some(translator) = translator {
            let shape = translator.shape;
            let is_changed = translator.finish(end, &mut answers);
            if is_changed {
                ready = &translated;
            }
            let is_whole = was_at_rest && streaming == 0 && end == bytes.len() && prefix.is_none();
            let is_alone = is_whole && server.replies.status() == TransactionStatus::Idle;
            server.again.note(bytes, shape, is_alone);
            // Answers of the pooler's own wait for those of the server, but a Flush asks for them now. Inside a message that
            // the client has only part of they would be read as its rest; they come behind it.
            while flushes
                && server.rest == 0
                && let Some(answer) = server.take_simulated(Some((id, &mut client.statements)))
            {
                answers.extend_from_slice(answer.message());
            }
        } else {
            server.statements.note_query();
            server.again.forget();
        }

        client.request_at = self.now;
        if was_at_rest {
            server.query_at = self.now;
            if server.replies.status() == TransactionStatus::Idle {
                server.transaction_at = self.now;
            }
        }
        client.state = ClientState::Active { server: server_id, streaming };
        if matches!(stop, Stop::Tail | Stop::Full) && end < bytes.len() {
            client.held = bytes[end..].to_vec();
        }
        client.partial_since = match (streaming > 0 || !client.held.is_empty(), client.partial_since) {
            (false, _) => None,
            (true, since) => Some(since.filter(|_| end == 0).unwrap_or(self.now)),
        };
        let partial = client.partial_since == Some(self.now);
        if matches!(stop, Stop::Full) {
            client.throttled = true;
            transport.set_reading(id.into(), false);
        }

        let flow = match prefix {
            Some(prefix) => transport.send(server_id.into(), &[prefix, ready]),
            None if ready.is_empty() => Flow::Flushed,
            None => transport.send(server_id.into(), &[ready]),
        };
        if translates {
            translated.clear();
            translated.shrink_to(MAX_TRANSLATED_BYTES);
        }
        self.translated = translated;
        if flow == Flow::Blocked {
            client.server_full = true;
            transport.set_reading(id.into(), false);
        }
        if !answers.is_empty() {
            self.send_to_client(transport, id, &answers, None);
        }
        match stop {
            Stop::Tail | Stop::Full => {
                if partial {
                    self.arm_partial(id);
                }
                // What the pooler has answered itself, or a COPY that has failed, is over by now. A message of which nothing
                // has gone on is yet to begin.
                let is_over = end > 0 && streaming == 0 && self.is_at_rest(server_id);
                if is_over && mode != PoolMode::Session {
                    self.release_from_client(transport, server_id, id);
                } else {
                    self.arm_active(id);
                }
            }
            Stop::Terminate => self.client_gone(transport, id, "client close request"),
            Stop::SimpleQuery => self.refuse_simple_query(transport, id),
            Stop::Broken(what) => self.break_protocol(transport, id, &what),
            Stop::TooMuch(what) => {
                let farewell = texts::fatal(texts::PROGRAM_LIMIT_EXCEEDED, &what);
                self.dismiss_client(transport, id, &farewell, &what);
            }
        }
    }

    fn is_at_rest(&self, id: ServerId) -> bool {
        self.servers.find(id).is_some_and(|server| server.replies.is_settled() && server.rest == 0)
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

/// True if that is one whole Query and nothing else.
#[inline]
fn is_one_query(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'Q')
        && matches!(frame::head(bytes, u32::MAX), Ok(Some(head)) if head.total == bytes.len())
}
