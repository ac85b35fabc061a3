//! What becomes of a client that leaves, and of the server that it leaves behind.
//!
//! A server connection outlives its client. It is used again only after ReadyForQuery, *and* the end of the cancel
//! request's connection, *and* a round trip of our own: until then a late cancel could hit the next client's query.

use super::Engine;
use crate::client::ClientState;
use crate::close_cause::CloseCause;
use crate::connection::{ClientId, ServerId};
use crate::events::EventKind;
use crate::markers::{Markers, markers};
use crate::seam::{CancelQuery, Transport};
use crate::server::{CleaningStep, ServerState};
use crate::texts;
use overload::Moment;
use pgwire::message::{TransactionStatus, frontend};
use pgwire::replies::{Origin, Owes, ReplyQueue};
use settings::pooler::{ClientDisconnect, PoolMode};
use std::time::Duration;
use tracing::{info, warn};

/// Round trips of our own that a late cancel may hit before the server is given up.
const MAX_CLEANING_RETRIES: u8 = 3;

/// How long the end of a server that we have left is awaited; so long it counts against the pool's size.
const CLOSING_LIMIT: Duration = Duration::from_secs(60);

/// Executing it fails and so rolls back the batch of a client that left before its Sync; the server's log shows it.
const NO_PORTAL: &str = "(the client left before the end of its batch)";

impl Engine {
    /// The client has left by itself.
    pub(super) fn client_gone(&mut self, transport: &mut impl Transport, id: ClientId, reason: &str) {
        self.drop_client(transport, id, None, reason);
    }

    /// The client has to go, and is told why.
    pub(super) fn dismiss_client(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        farewell: &[u8],
        reason: &str,
    ) {
        self.drop_client(transport, id, Some(farewell), reason);
    }

    /// The one way out for a client: out of every list, its server on the way back to use.
    pub(super) fn drop_client(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        farewell: Option<&[u8]>,
        reason: &str,
    ) {
        if farewell.is_none() {
            self.learn_from_departure(id);
        }
        if self.clients.find(id).is_some_and(|client| matches!(client.state, ClientState::Waiting(_))) {
            self.note_lost_request(id);
        }
        let Some(client) = self.clients.remove(id) else { return };
        if let Some(farewell) = farewell.filter(|_| !self.is_inside_message(&client.state)) {
            transport.send(id.into(), &[farewell]);
            if self.config.general.log_pooler_errors {
                warn!(address = ?client.address, "pooler error: {reason}");
            }
        }
        self.log_client_end(&client, reason);
        transport.close(id.into());
        if self.keys.get(&client.key) == Some(&id) {
            self.keys.remove(&client.key);
        }
        match client.state {
            ClientState::Login(_) => {
                self.in_login -= 1;
                if farewell.is_none() && client.held.is_empty() {
                    self.totals.probes += 1;
                }
            }
            ClientState::Waiting(ticket) | ClientState::AwaitingWelcome(ticket) => {
                if let Some(pool) = client.pool {
                    let pool = &mut self.pools[pool.0 as usize];
                    if matches!(client.state, ClientState::Waiting(_)) {
                        pool.line.remove(ticket);
                    } else {
                        pool.welcomes.remove(ticket);
                    }
                    if farewell.is_none() {
                        pool.counters.dead_waiters += 1;
                    }
                }
            }
            ClientState::Active { server, streaming } => {
                if let Some(pool) = client.pool
                    && self.servers.find(server).is_some_and(|server| {
                        server.from_line && server.assigned_at == self.now && farewell.is_none()
                    })
                {
                    self.pool_mut(pool).counters.dead_handoffs += 1;
                }
                self.abandon_server(transport, server, streaming > 0);
            }
            ClientState::Preparing { server } => self.abandon_server(transport, server, false),
            ClientState::Cancelling | ClientState::Idle | ClientState::Skipping { .. } => {}
        }
        self.uncount_client(&client);
        if self.shutdown == Some(super::Shutdown::WaitForClients) && self.clients.is_empty() {
            // The last one has left: the servers hear goodbye.
            self.shut_down(transport, super::Shutdown::Now);
        }
    }

    /// The client has part of a message from its server: anything else would be read as the rest of that.
    fn is_inside_message(&self, state: &ClientState) -> bool {
        let ClientState::Active { server, .. } = state else { return false };
        self.servers.find(*server).is_some_and(|server| server.rest > 0 && server.rest_forwarded)
    }

    /// A server has lost its client: what is done depends on what is owed.
    fn abandon_server(&mut self, transport: &mut impl Transport, id: ServerId, mid_message: bool) {
        transport.set_reading(id.into(), true);
        let Some(server) = self.servers.find_mut(id) else { return };
        server.again.forget();
        let pool = &self.pools[server.pool.0 as usize];
        let policy = pool.settings.client_disconnect;
        if mid_message {
            if !server.replies.is_empty() && policy == ClientDisconnect::Cancel {
                // It cannot be used again, but what it works on is nobody's any more, and its place is wanted.
                self.start_cancel(transport, id);
            }
            return self.close_server(transport, id, CloseCause::ClientLeftMidMessage);
        }
        let limit = self.config.general.cancel_wait_timeout;
        let mut deadline = Some(self.now + limit);
        let owes = server.replies.owes();
        // In a batch without Sync the server may be at work already; with nothing owed or in COPY IN it is not.
        let at_work = matches!(owes, Owes::Query | Owes::CopyOut)
            || (owes == Owes::Batch && !server.replies.is_empty());
        let mut farewell = Vec::new();
        match owes {
            Owes::Replication => return self.close_server(transport, id, CloseCause::ClientLeftPolicy),
            Owes::Nothing(_) => {}
            Owes::CopyIn { extended } => {
                farewell = end_copy(&mut server.replies, extended);
            }
            Owes::Batch => {
                // Sync alone would commit the half of the batch that has come, which the client never asked for.
                frontend::execute(&mut farewell, NO_PORTAL);
                frontend::sync(&mut farewell);
                let _ = server.replies.sent(b'E', Origin::Pooler);
                let _ = server.replies.sent(b'S', Origin::Pooler);
            }
            Owes::CopyOut | Owes::Query => {}
        }
        if !farewell.is_empty() {
            transport.send(id.into(), &[&farewell]);
        }
        if at_work {
            match policy {
                ClientDisconnect::Close => {
                    return self.close_server(transport, id, CloseCause::ClientLeftPolicy);
                }
                ClientDisconnect::Cancel => {
                    self.start_cancel(transport, id);
                    let Some(server) = self.servers.find(id) else { return };
                    self.pool_mut(server.pool).counters.departure_cancels += 1;
                }
                ClientDisconnect::Finish => deadline = None,
            }
        }
        self.start_cleaning(transport, id, true, deadline);
    }

    /// Sends a cancel request for what a server runs; marked before it is dialled.
    pub(super) fn start_cancel(&mut self, transport: &mut impl Transport, id: ServerId) {
        let limit = self.config.general.cancel_wait_timeout;
        let Some(server) = self.servers.find_mut(id) else { return };
        server.cancels += 1;
        server.tainted = true;
        let pool = &self.pools[server.pool.0 as usize];
        transport.cancel_query(CancelQuery {
            server: id,
            address: pool.target.address.clone(),
            peer: server.peer,
            process_id: server.process_id,
            secret_key: server.secret_key.clone(),
            limit,
        });
    }

    /// Takes a server that is being cleaned one step on, if what it waits for has come.
    pub(super) fn advance_cleaning(&mut self, transport: &mut impl Transport, id: ServerId) {
        let drain_limit = self.config.general.drain_limit;
        let limit = self.config.general.cancel_wait_timeout;
        let check_query = &self.config.general.server_check_query;
        let Some(server) = self.servers.find_mut(id) else { return };
        let ServerState::Cleaning(cleaning) = &mut server.state else { return };
        if server.replies.is_doubtful() {
            return self.close_server(transport, id, CloseCause::Desync);
        }
        if drain_limit > 0 && cleaning.drained > drain_limit {
            return self.close_server(transport, id, CloseCause::DrainLimit);
        }
        if let Owes::CopyIn { extended } = server.replies.owes() {
            // It began after its client had left. A cancel request does not reach a server that waits for data.
            let farewell = end_copy(&mut server.replies, extended);
            transport.send(id.into(), &[&farewell]);
            return;
        }
        if !server.replies.is_empty() || server.replies.has_open_batch() || server.cancels > 0 {
            return;
        }
        if cleaning.step == CleaningStep::RoundTrip {
            match server.own_error.take() {
                None if server.replies.status() == TransactionStatus::Idle => {
                    server.tainted = false;
                    if cleaning.resets_all {
                        self.parameters.forget_further(&mut server.parameters);
                    }
                    return self.release_server(transport, id);
                }
                Some(error)
                    if error.code == texts::QUERY_CANCELED && cleaning.retries < MAX_CLEANING_RETRIES =>
                {
                    cleaning.retries += 1;
                }
                failed => {
                    let text = failed.map_or_else(String::new, |error| error.message);
                    warn!("a server connection could not be reset: {text}");
                    return self.close_server(transport, id, CloseCause::ResetFailed);
                }
            }
        }
        cleaning.step = CleaningStep::RoundTrip;
        // A query that may finish takes as long as it takes, the round trip behind it does not.
        let deadline = *cleaning.deadline.get_or_insert(self.now + limit);
        let mut queries = Vec::new();
        let mut count = 0;
        if server.replies.status() != TransactionStatus::Idle {
            frontend::query(&mut queries, "ROLLBACK");
            count += 1;
        }
        let pool = &self.pools[server.pool.0 as usize];
        let reset = match pool.settings.pool_mode {
            _ if !cleaning.thorough => check_query,
            // The operator's choice; without one, a round trip is due all the same.
            PoolMode::Session => &self.config.general.server_reset_query,
            _ if cleaning.after_transaction => &self.config.general.server_reset_query,
            PoolMode::Transaction | PoolMode::Statement => "DISCARD ALL",
        };
        let does = markers(reset.as_bytes());
        cleaning.resets_all = does.has(Markers::RESET_ALL);
        frontend::query(&mut queries, reset);
        count += 1;
        if cleaning.after_transaction && (does.has(Markers::DISCARD) || does.has(Markers::DEALLOCATE)) {
            // The operator's own words may drop only some: that is known for certain of all.
            if !reset.trim().trim_end_matches(';').eq_ignore_ascii_case("DISCARD ALL") {
                frontend::query(&mut queries, "DEALLOCATE ALL");
                count += 1;
            }
        }
        // What each new connection gets has been reset as well.
        if let Some(connect_query) = pool.target.connect_query.as_ref().filter(|_| cleaning.thorough) {
            frontend::query(&mut queries, connect_query);
            count += 1;
        }
        for _ in 0..count {
            // Nothing is owed, so there is room.
            server.note_own_query();
        }
        server.own_error = None;
        transport.send(id.into(), &[&queries]);
        self.arm_server(id, deadline);
    }

    /// We leave a server: it hears Terminate, and counts until its end has been seen.
    pub(super) fn close_server(&mut self, transport: &mut impl Transport, id: ServerId, cause: CloseCause) {
        let Some(server) = self.servers.find(id) else { return };
        if matches!(server.state, ServerState::Closing { .. }) {
            return;
        }
        let pool_id = server.pool;
        let pid = server.process_id;
        // With part of a message under way, Terminate would be read as its rest.
        let speaks = cause != CloseCause::ClientLeftMidMessage;
        self.count_close(pool_id, pid, cause);
        let until = self.now + CLOSING_LIMIT;
        self.move_server(id, ServerState::Closing { until });
        if speaks {
            let mut terminate = Vec::new();
            frontend::terminate(&mut terminate);
            transport.send(id.into(), &[&terminate]);
        }
        transport.set_reading(id.into(), true);
        transport.shut_down_write(id.into());
        self.arm_server(id, until);
        if self.pool(pool_id).has_waiters() {
            // Whoever counted on this server may need another.
            self.arm_pool_at(pool_id, self.now);
        }
    }

    fn count_close(&mut self, pool_id: crate::connection::PoolId, process_id: i32, cause: CloseCause) {
        let pool = self.pool_mut(pool_id);
        pool.counters.server_closes[cause as usize] += 1;
        info!(database = %pool.database, user = %pool.user, process_id, "closing because: {}", cause.log_text());
        if !cause.is_routine() {
            self.record(Some(pool_id), EventKind::ServerClosed { cause });
        }
    }

    /// A server's connection has ended.
    pub(super) fn server_gone(&mut self, transport: &mut impl Transport, id: ServerId) {
        let Some(server) = self.servers.find(id) else { return };
        let pool_id = server.pool;
        let pid = server.process_id;
        // What the server itself has said need not be said again; inside a message nothing can be said.
        let speechless = server.said_fatal || (server.rest > 0 && server.rest_forwarded);
        let is_gone = server.said_fatal || matches!(server.state, ServerState::Closing { .. });
        let client = match server.state {
            ServerState::Active(client) => Some(client),
            _ => None,
        };
        if !matches!(server.state, ServerState::Closing { .. }) {
            self.count_close(pool_id, pid, CloseCause::ServerClosed);
        }
        // An end that we have not asked for may be that of the way alone.
        self.forget_server(transport, id, is_gone);
        if let Some(client) = client {
            let farewell = texts::fatal_with_detail(
                texts::CONNECTION_FAILURE,
                "server conn crashed?",
                "The connection to the database ended while this session was using it.",
            );
            let farewell = (!speechless).then_some(&farewell[..]);
            self.drop_client(transport, client, farewell, "server conn crashed?");
        }
        self.serve_from_idle(transport, pool_id);
        let address = self.pool(pool_id).address;
        self.fill_freed_place(transport, pool_id);
        self.feed_hungry(transport, address);
    }

    /// Takes a server out of every list. `is_gone`: its process has ended, as far as anybody can tell from here.
    pub(super) fn forget_server(&mut self, transport: &mut impl Transport, id: ServerId, is_gone: bool) {
        // Through the one place that keeps the counts: closing is the last state.
        self.move_server(id, ServerState::Closing { until: self.now });
        let Some(server) = self.servers.remove(id) else { return };
        self.pool_mut(server.pool).closing -= 1;
        self.leave_caps(server.pool);
        self.budget_ended(&server.origin, server.process_id, is_gone);
        self.release_address(server.origin.address);
        transport.close(id.into());
    }

    /// The limits of a server that is being cleaned or closed have been reached, perhaps.
    pub(super) fn check_server_limits(
        &mut self,
        transport: &mut impl Transport,
        id: ServerId,
    ) -> Option<Moment> {
        let now = self.now;
        let server = self.servers.find(id)?;
        match &server.state {
            ServerState::Cleaning(cleaning) => match cleaning.deadline {
                Some(deadline) if deadline <= now => {
                    self.close_server(transport, id, CloseCause::DrainLimit);
                    None
                }
                deadline => deadline,
            },
            ServerState::Closing { until } if *until > now => Some(*until),
            ServerState::Closing { .. } => {
                // It was told to go; its backend is given up as a straggler.
                let pool_id = server.pool;
                self.forget_server(transport, id, false);
                self.fill_freed_place(transport, pool_id);
                None
            }
            ServerState::Active(_) | ServerState::Idle => None,
        }
    }
}

/// Ends a COPY that has no client any more. What is owed is noted, but for a queue at its limit: such a server is closed
/// when it answers.
fn end_copy(replies: &mut ReplyQueue, extended: bool) -> Vec<u8> {
    let mut farewell = Vec::new();
    frontend::copy_fail(&mut farewell, "client left during COPY");
    let _ = replies.sent(b'f', Origin::Pooler);
    if extended {
        frontend::sync(&mut farewell);
        let _ = replies.sent(b'S', Origin::Pooler);
    }
    farewell
}
