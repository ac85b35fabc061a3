//! Bytes from servers: forwarded to the client whose answer they are, or kept to ourselves.

use super::Engine;
use crate::client::{Client, ClientState};
use crate::close_cause::CloseCause;
use crate::connection::{ClientId, ServerId, Slab};
use crate::seam::{Flow, Transport};
use crate::server::{Server, ServerState};
use crate::texts;
use overload::Moment;
use pgwire::frame;
use pgwire::message::{ErrorFields, TransactionStatus, parse};
use pgwire::replies::{Desync, MAX_OWED, Origin, Received};
use settings::pooler::PoolMode;
use tracing::warn;

/// Servers may send messages of up to 1 GB; the protocol's own limit is the sign bit.
const MAX_SERVER_MESSAGE: u32 = i32::MAX as u32;

/// Messages whose body is looked at are held until they are whole, up to this many bytes.
const MAX_INSPECTED_BYTES: usize = 64 * 1024;

/// What a read from a server came to.
struct Outcome {
    /// The client's transaction is over and nothing is owed.
    released: bool,
    desync: Option<Desync>,
    /// The client's parameters have been set.
    parameters_set: bool,
    /// A transaction of several statements has begun where only single ones are allowed.
    transaction_refused: bool,
    /// A query of the pooler's own failed while the client has the server: its parameters cannot be set.
    set_failed: Option<ErrorFields>,
}

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
        let mut joined = std::mem::take(&mut server.held);
        let bytes = if joined.is_empty() {
            chunk
        } else {
            joined.extend_from_slice(chunk);
            &joined[..]
        };
        let outcome = self.scan_answer(transport, id, client, bytes);
        self.settle_answer(transport, id, client, outcome);
    }

    /// Walks over the messages of one read, forwarding runs of them.
    fn scan_answer(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
        client: Option<ClientId>,
        bytes: &[u8],
    ) -> Outcome {
        let mut outcome = Outcome {
            released: false,
            desync: None,
            parameters_set: false,
            transaction_refused: false,
            set_failed: None,
        };
        let Some(server) = self.servers.find_mut(id) else { return outcome };
        let now = self.now;
        let pool_id = server.pool;
        let mode = self.pools[pool_id.0 as usize].settings.pool_mode;
        // The run of bytes that the client gets and that has not been sent yet.
        let mut run: Option<usize> = None;
        let mut at = bytes.len().min(usize::try_from(server.rest).unwrap_or(usize::MAX));
        server.rest -= at as u64;
        if at > 0 && server.rest_forwarded && client.is_some() {
            run = Some(0);
        }
        let mut blocked = false;
        let mut sent = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let head = match frame::head(rest, MAX_SERVER_MESSAGE) {
                Ok(Some(head)) => head,
                Ok(None) => break,
                Err(_) => {
                    outcome.desync = Some(Desync { got: rest[0], expected: "a message" });
                    break;
                }
            };
            let whole = head.total <= rest.len();
            let inspected = matches!(head.tag, b'Z' | b'S' | b'E');
            if !whole && inspected && head.total <= MAX_INSPECTED_BYTES {
                break;
            }
            let body = &rest[frame::HEADER_BYTES.min(rest.len())..head.total.min(rest.len())];
            let received = match server.replies.received(head.tag, body.first().copied()) {
                Ok(received) => received,
                Err(desync) => {
                    outcome.desync = Some(desync);
                    break;
                }
            };
            if head.tag == b'E' && says_fatal(body) {
                server.said_fatal = true;
            }
            let mut forwarded = match received {
                // An answer that was made with another client's parameters is not this one's.
                Received::Answer(Origin::Client) | Received::Ready(Origin::Client, _) => {
                    client.is_some() && !outcome.released && outcome.set_failed.is_none()
                }
                Received::Answer(Origin::Pooler) => {
                    if head.tag == b'E' {
                        // The first one says why; those that follow from it do not.
                        server.own_error.get_or_insert_with(|| ErrorFields::parse(body));
                    }
                    false
                }
                Received::Ready(Origin::Pooler, _) => {
                    if let Some(client) = client {
                        match server.own_error.take() {
                            Some(error) => outcome.set_failed = Some(error),
                            None => outcome.parameters_set = true,
                        }
                        if let Some(client) = self.clients.find_mut(client).filter(|_| outcome.parameters_set)
                        {
                            // The server may spell a value in its own way: that is the client's from now on.
                            self.parameters.note_proven(&client.parameters);
                            self.parameters.note_proven(&server.parameters);
                            client.parameters = server.parameters.clone();
                        }
                    }
                    false
                }
                Received::Asynchronous => {
                    let own = server.replies.head_origin() == Some(Origin::Pooler);
                    if head.tag == b'S'
                        && let Some((name, value)) = reported(body)
                    {
                        self.parameters.report(&mut server.parameters, name, value);
                        if let Some(client) = client.filter(|_| !own).and_then(|id| self.clients.find_mut(id))
                        {
                            self.parameters.report(&mut client.parameters, name, value);
                        }
                    }
                    client.is_some() && !own && !outcome.released && outcome.set_failed.is_none()
                }
            };
            if let Received::Ready(Origin::Client, status) = received {
                note_ready(&mut self.pools[pool_id.0 as usize], server, status, now);
                // A client in the middle of a long message keeps the server until the message is over.
                outcome.released |= mode != PoolMode::Session
                    && server.replies.is_settled()
                    && !still_needs_it(&self.clients, client);
                if mode == PoolMode::Statement && status != TransactionStatus::Idle {
                    // It does not hear that its transaction has begun: it hears why it may not have one.
                    outcome.transaction_refused = true;
                    forwarded = false;
                }
            }
            if forwarded {
                run.get_or_insert(at);
            } else if let (Some(start), Some(client)) = (run.take(), client) {
                sent += at - start;
                blocked |= transport.send(client.into(), &[&bytes[start..at]]) == Flow::Blocked;
            }
            if whole {
                at += head.total;
            } else {
                server.rest = (head.total - rest.len()) as u64;
                server.rest_forwarded = forwarded;
                at = bytes.len();
            }
        }
        if at < bytes.len() && outcome.desync.is_none() {
            server.held = bytes[at..].to_vec();
        }
        // What was left of a message of its own kept a client from going idle.
        outcome.released |= client.is_some()
            && mode != PoolMode::Session
            && server.rest == 0
            && server.replies.is_settled()
            && !still_needs_it(&self.clients, client);
        if let Some(client) = client {
            if let Some(start) = run {
                sent += at - start;
                blocked |= transport.send(client.into(), &[&bytes[start..at]]) == Flow::Blocked;
            }
            self.pools[pool_id.0 as usize].counters.sent += sent as u64;
            if blocked {
                // Whoever is released with bytes still on their way is read again when they have left.
                let pause = if outcome.released { client.into() } else { id.into() };
                transport.set_reading(pause, false);
                self.note_blocked(client);
            }
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
        if outcome.parameters_set && self.begin_prepared(transport, id, client_id) {
            return;
        }
        if outcome.released {
            self.release_from_client(transport, id, client_id);
        } else if let Some(server) = self.servers.find(id) {
            if server.replies.len() < MAX_OWED / 2 {
                self.resume_throttled(transport, client_id, id);
            }
            self.arm_active(client_id);
            self.arm_session_idle(client_id);
        }
    }

    /// The parameters of a client that waited for that are set: its request goes out.
    fn begin_prepared(&mut self, transport: &mut impl Transport, id: ServerId, client_id: ClientId) -> bool {
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
        let now = self.now;
        if self.servers.find(id).is_none() {
            return;
        }
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
        self.release_server(transport, id);
        if self.dismiss_if_stopping(transport, client_id) {
            return;
        }
        // A message that was only half there when the transaction ended stays held; one that is whole is a new request.
        if self.clients.find(client_id).is_some_and(|client| !client.held.is_empty()) {
            self.begin_request(transport, client_id, &[]);
        }
    }
}

/// True for an error after which the server closes by itself. The severity that is not translated has the code `V`.
fn says_fatal(body: &[u8]) -> bool {
    body.split(|&byte| byte == 0).any(|field| matches!(field, b"VFATAL" | b"VPANIC"))
}

/// Name and value of a ParameterStatus; `None` if it is not text, and so none of those that are tracked.
fn reported(body: &[u8]) -> Option<(&str, &str)> {
    let (name, value) = parse::parameter_status(body).ok()?;
    Some((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?))
}

/// True if the client is not done with its server although nothing is owed: it is in the middle of a long message, or
/// its request still waits for its parameters.
fn still_needs_it(clients: &Slab<ClientId, Client>, client: Option<ClientId>) -> bool {
    client.and_then(|id| clients.find(id)).is_some_and(|client| {
        matches!(client.state, ClientState::Active { streaming: 1.., .. } | ClientState::Preparing { .. })
    })
}

/// Counts a finished query, and a finished transaction.
fn note_ready(pool: &mut crate::pool::Pool, server: &mut Server, status: TransactionStatus, now: Moment) {
    let span = now.since(server.query_at);
    pool.counters.query_count += 1;
    pool.counters.query_time_us += micros(now, server.query_at);
    pool.counters.query.record(span);
    pool.answered_at = Some(now);
    server.query_at = now;
    if status == TransactionStatus::Idle {
        pool.counters.xact_count += 1;
        pool.counters.xact_time_us += micros(now, server.transaction_at);
        server.transaction_at = now;
    }
}

fn micros(now: Moment, earlier: Moment) -> u64 {
    now.as_micros().saturating_sub(earlier.as_micros())
}
