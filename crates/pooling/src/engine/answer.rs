//! Bytes from servers: forwarded to the client whose answer they are, or kept to ourselves.

mod judge;
mod names;
mod onward;

use super::Engine;
use crate::client::ClientState;
use crate::close_cause::CloseCause;
use crate::connection::{ClientId, ServerId};
use crate::held::{join, keep};
use crate::seam::Transport;
use crate::server::ServerState;
use crate::texts;
use judge::{Judge, Outcome};
use onward::Onward;
use pgwire::frame;
use pgwire::replies::{Desync, MAX_OWED};
use tracing::warn;

/// Servers may send messages of up to 1 GB; the protocol's own limit is the sign bit.
const MAX_SERVER_MESSAGE: u32 = i32::MAX as u32;

/// Messages whose body is looked at are held until they are whole, up to this many bytes.
const MAX_INSPECTED_BYTES: usize = 64 * 1024;

impl Engine {
    pub(super) fn on_server_bytes(&mut self, transport: &mut impl Transport, id: ServerId, chunk: &[u8]) {
        let Some(server) = self.servers.find_mut(id) else { return };
        let client = match &mut server.state {
            ServerState::Active(client) => Some(*client),
            ServerState::Cleaning(cleaning) => {
                cleaning.drained += chunk.len() as u64;
                None
            }
            ServerState::Idle => None,
            // After the farewell only the end matters.
            ServerState::Closing { .. } => return,
        };
        let held = std::mem::take(&mut server.held);
        let outcome = self.scan_answer(transport, id, client, held, chunk);
        self.settle_answer(transport, id, client, outcome);
    }

    /// Walks over the messages of one read, forwarding runs of them.
    fn scan_answer(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        client: Option<ClientId>,
        mut held: Vec<u8>,
        chunk: &[u8],
    ) -> Outcome {
        let Some(server) = self.servers.find_mut(id) else { return Outcome::default() };
        let pool = &mut self.pools[server.pool.0 as usize];
        let bytes = join(&mut held, chunk);
        let mut at = bytes.len().min(usize::try_from(server.rest).unwrap_or(usize::MAX));
        server.rest -= at as u64;
        let mut onward = Onward::new(&mut *transport, client, bytes);
        if at > 0 && server.rest_forwarded {
            onward.begin_run(0);
        }
        let translates = server.translates_statements;
        let mut judge = Judge {
            server,
            clients: &mut self.clients,
            parameters: &mut self.parameters,
            statements: translates.then_some(&mut self.statements),
            pool,
            replaced: None,
            client,
            now: self.now,
            outcome: Outcome::default(),
        };
        while at < bytes.len() {
            let rest = &bytes[at..];
            let head = match frame::head(rest, MAX_SERVER_MESSAGE) {
                Ok(Some(head)) => head,
                Ok(None) => break,
                Err(_) => {
                    judge.outcome.desync = Some(Desync { got: rest[0], expected: "a message" });
                    break;
                }
            };
            if judge.server.replies.is_next_simulated() {
                give_own_answers(&mut judge, &mut onward, at);
            }
            let whole = head.total <= rest.len();
            if !whole && judge.inspects(head.tag) && head.total <= MAX_INSPECTED_BYTES {
                break;
            }
            let body = &rest[frame::HEADER_BYTES.min(rest.len())..head.total.min(rest.len())];
            let forwarded = match judge.take(head.tag, body) {
                Ok(forwarded) => forwarded,
                Err(desync) => {
                    judge.outcome.desync = Some(desync);
                    break;
                }
            };
            if !judge.outcome.told.is_empty() {
                onward.send(&std::mem::take(&mut judge.outcome.told));
            }
            if forwarded {
                onward.begin_run(at);
            } else {
                onward.end_run(at);
            }
            if let Some(replaced) = judge.replaced.take() {
                onward.send(&replaced);
            }
            if whole {
                at += head.total;
            } else {
                judge.server.rest = (head.total - rest.len()) as u64;
                judge.server.rest_forwarded = forwarded;
                at = bytes.len();
            }
        }
        if judge.server.rest == 0 && judge.server.replies.is_next_simulated() {
            // Behind the last answer of the server there may be some of the pooler's own.
            give_own_answers(&mut judge, &mut onward, at);
        }
        onward.end_run(at);
        onward.flush();
        // What was left of a message of its own kept a client from going idle.
        judge.outcome.released |= client.is_some() && judge.server.rest == 0 && judge.is_done();
        judge.pool.counters.sent += onward.bytes;
        let is_blocked = onward.is_blocked;
        let Judge { server, outcome, .. } = judge;
        if at < bytes.len() && outcome.desync.is_none() {
            server.held = keep(held, chunk, at);
        }
        if let Some(client) = client.filter(|_| is_blocked) {
            // Whoever is released with bytes still on their way is read again when they have left.
            let pause = if outcome.released { client.into() } else { id.into() };
            transport.set_reading(pause, false);
            self.note_blocked(client);
        }
        outcome
    }

    /// What follows from a read, once its bytes have been sent on.
    fn settle_answer(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        client: Option<ClientId>,
        outcome: Outcome,
    ) {
        if let Some(desync) = outcome.desync {
            warn!(server = ?id, "{desync}: the connection is closed");
            if let Some(client) = client {
                let farewell = texts::fatal(texts::PROTOCOL_VIOLATION, "server sent an unexpected message");
                self.drop_client(transport, client, Some(&farewell), "server sent an unexpected message");
            }
            self.close_server(transport, id, CloseCause::Desync);
            return;
        }
        let Some(client_id) = client else {
            if self.servers.find(id).is_some_and(|server| server.said_fatal) {
                // Its end follows: nobody is to get it in between.
                self.close_server(transport, id, CloseCause::ServerClosed);
            } else {
                self.advance_cleaning(transport, id);
            }
            return;
        };
        if let Some(error) = outcome.set_failed {
            let farewell = texts::fatal(&error.code, &error.message);
            self.dismiss_client(transport, client_id, &farewell, "parameters of the client cannot be set");
            return;
        }
        if outcome.transaction_refused {
            let text = "transaction blocks not allowed in statement pooling mode";
            let farewell = texts::fatal(texts::PROTOCOL_VIOLATION, text);
            self.dismiss_client(transport, client_id, &farewell, text);
            return;
        }
        if outcome.probed {
            return self.end_probe(transport, id, client_id);
        }
        if outcome.repeats {
            return self.repeat_request(transport, id, client_id);
        }
        if outcome.parameters_set && self.begin_after_parameters(transport, id, client_id) {
            return;
        }
        if outcome.released {
            self.release_from_client(transport, id, client_id);
        } else if let Some(server) = self.servers.find(id) {
            if server.replies.len() < MAX_OWED / 2 {
                self.resume_throttled(transport, client_id, id);
            }
            self.arm_active(client_id);
            self.rest_in_session(transport, id, client_id);
        }
    }

    /// A plan was stale: the request goes out again, once, and what it uses is prepared anew.
    fn repeat_request(&mut self, transport: &mut impl Transport, id: ServerId, client_id: ClientId) {
        let Some(server) = self.servers.find_mut(id) else { return };
        let request = server.again.take();
        let Some(client) = self.clients.find_mut(client_id) else { return };
        // Ahead of what the client has sent meanwhile.
        client.held.splice(..0, request);
        self.forward_request(transport, client_id, id, &[], None);
        if let Some(server) = self.servers.find_mut(id) {
            server.again.forget();
        }
    }

    /// The parameters of a client that waited for that are set: its request goes out.
    fn begin_after_parameters(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        client_id: ClientId,
    ) -> bool {
        let Some(client) = self.clients.find_mut(client_id) else { return false };
        if !matches!(client.state, ClientState::Preparing { .. }) {
            return false;
        }
        client.state = ClientState::Active { server: id, streaming: 0 };
        transport.set_reading(client_id.into(), true);
        self.forward_request(transport, client_id, id, &[], None);
        true
    }

    /// The transaction is over: the client is idle, the server goes on to the next.
    pub(super) fn release_from_client(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        client_id: ClientId,
    ) {
        if self.servers.find(id).is_some() && !self.keeps_server(transport, id, client_id) {
            self.part(transport, id, client_id);
        }
    }

    /// The server holds nothing of its client any more, and they part.
    pub(super) fn part(&mut self, transport: &mut impl Transport, id: ServerId, client_id: ClientId) {
        let now = self.now;
        if let Some(client) = self.clients.find_mut(client_id) {
            client.state = ClientState::Idle;
            client.partial_since = None;
            client.request_at = now;
            let was_paused = client.throttled || client.server_full;
            client.throttled = false;
            client.server_full = false;
            if client.blocked_since.is_some() {
                // It is read when it has taken its answer; its server may have been paused for that.
                transport.set_reading(id.into(), true);
            } else if was_paused {
                // Data of a COPY that has failed may still be on its way to the server.
                transport.set_reading(client_id.into(), true);
            }
        }
        self.arm_client_idle(client_id);
        self.end_transaction(transport, id);
        if self.dismiss_if_stopping(transport, client_id) {
            return;
        }
        // A message that was only half there when the transaction ended stays held; one that is whole is a new request.
        if self.clients.find(client_id).is_some_and(|client| !client.held.is_empty()) {
            self.begin_request(transport, client_id, &[]);
        }
    }
}

/// Answers of the pooler's own whose turn has come go to the client behind what stands before `at`.
#[cold]
fn give_own_answers<T: Transport>(judge: &mut Judge<'_>, onward: &mut Onward<'_, T>, at: usize) {
    while let Some(answer) = judge.take_simulated() {
        onward.end_run(at);
        if judge.hears_answers() {
            onward.put(answer.message());
        }
    }
}
