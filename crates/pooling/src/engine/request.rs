//! Bytes from clients: what they mean depends on where the client stands.

use super::Engine;
use crate::client::{Client, ClientState, Until};
use crate::connection::ClientId;
use crate::held::join;
use crate::seam::Transport;
use crate::texts;
use pgwire::frame;
use tracing::debug;

/// The end of a session.
const TERMINATE: u8 = b'X';
const QUERY: u8 = b'Q';
const SYNC: u8 = b'S';
const FLUSH: u8 = b'H';
const COPY_DATA: u8 = b'd';
const COPY_DONE: u8 = b'c';
const COPY_FAIL: u8 = b'f';
const READY_IDLE: [u8; 6] = *b"Z\0\0\0\x05I";

impl Engine {
    pub(super) fn on_client_bytes(&mut self, transport: &mut impl Transport, id: ClientId, bytes: &[u8]) {
        let Some(client) = self.clients.find_mut(id) else { return };
        if let Some(pool) = client.pool {
            self.pools[pool.0 as usize].counters.received += bytes.len() as u64;
        }
        match client.state {
            ClientState::Active { server, .. } => self.forward_request(transport, id, server, bytes, None),
            ClientState::Idle => self.begin_request(transport, id, bytes),
            ClientState::Waiting(_) | ClientState::AwaitingWelcome(_) | ClientState::Preparing { .. } => {
                self.watch(transport, id, bytes);
            }
            ClientState::Login(_) => self.on_login_bytes(transport, id, bytes),
            ClientState::Skipping { .. } => self.skip(transport, id, bytes),
            // Nothing that follows a cancel request means anything.
            ClientState::Cancelling => {}
        }
    }

    /// An idle client has sent something: a server is asked for as soon as one whole message is there, or as much of
    /// it as may be held.
    pub(super) fn begin_request(&mut self, transport: &mut impl Transport, id: ClientId, chunk: &[u8]) {
        let Some(client) = self.clients.find_mut(id) else { return };
        let mut held = std::mem::take(&mut client.held);
        let mut bytes = join(&mut held, chunk);
        let limit = self.config.general.max_packet_size;
        let enough = self.config.general.waiter_buffer;
        let stray = loop {
            let head = match frame::head(bytes, limit) {
                Err(error) => return self.break_protocol(transport, id, &error.to_string()),
                Ok(None) => break None,
                Ok(Some(head)) => head,
            };
            let whole = head.total <= bytes.len();
            match head.tag {
                TERMINATE => return self.client_gone(transport, id, "client close request"),
                QUERY if self.config.general.disable_pqexec => {
                    return self.refuse_simple_query(transport, id);
                }
                // Outside a batch and a COPY the server would ignore them, so no server is spent on them.
                FLUSH | COPY_DATA | COPY_DONE | COPY_FAIL if whole => bytes = &bytes[head.total..],
                COPY_DATA if bytes.len() >= enough => break Some(head.total),
                _ if whole || bytes.len() >= enough => return self.ask_for_server(transport, id, bytes),
                _ => break None,
            }
        };
        if let Some(total) = stray {
            let discard = u32::try_from(total).unwrap_or(u32::MAX);
            client.state = ClientState::Skipping { discard, until: Until::Stray };
            let rest = bytes.to_vec();
            self.skip(transport, id, &rest);
        } else if !bytes.is_empty() {
            client.held = bytes.to_vec();
            self.arm_client_idle(id);
        }
    }

    /// A client that waits is read up to the limit and watched: Terminate takes it out of the line at once.
    fn watch(&mut self, transport: &mut impl Transport, id: ClientId, chunk: &[u8]) {
        let limit = self.config.general.waiter_buffer;
        let Some(client) = self.clients.find_mut(id) else { return };
        client.held.extend_from_slice(chunk);
        if says_goodbye(&client.held) {
            self.client_gone(transport, id, "client close request");
        } else if client.held.len() >= limit {
            transport.set_reading(id.into(), false);
        }
    }

    /// Throws away the rest of a refused request: the message, or the batch up to its Sync.
    pub(super) fn skip(&mut self, transport: &mut impl Transport, id: ClientId, chunk: &[u8]) {
        let limit = self.config.general.max_packet_size;
        let Some(client) = self.clients.find_mut(id) else { return };
        let ClientState::Skipping { mut discard, until } = client.state else { return };
        let mut held = std::mem::take(&mut client.held);
        let mut bytes = join(&mut held, chunk);
        let mut found_end = until != Until::Sync;
        loop {
            let step = bytes.len().min(discard as usize);
            bytes = &bytes[step..];
            // At most `discard`, which is 32 bits wide.
            discard -= u32::try_from(step).unwrap_or(discard);
            if discard > 0 || found_end {
                break;
            }
            match frame::head(bytes, limit) {
                Err(error) => return self.break_protocol(transport, id, &error.to_string()),
                Ok(None) => break,
                Ok(Some(head)) if head.tag == TERMINATE => {
                    return self.client_gone(transport, id, "client close request");
                }
                Ok(Some(head)) => {
                    found_end = head.tag == SYNC;
                    discard = u32::try_from(head.total).unwrap_or(u32::MAX);
                }
            }
        }
        if discard > 0 || !found_end {
            let until = if found_end && until == Until::Sync { Until::Answer } else { until };
            client.state = ClientState::Skipping { discard, until };
            client.held = bytes.to_vec();
            return;
        }
        client.state = ClientState::Idle;
        let rest = bytes.to_vec();
        if until != Until::Stray {
            self.send_to_client(transport, id, &READY_IDLE, None);
        }
        self.begin_request(transport, id, &rest);
    }

    /// Answers the request of a client that has no server with an error. The session stays: what is left of the
    /// request is skipped, and one ReadyForQuery follows.
    pub(super) fn refuse_request(&mut self, transport: &mut impl Transport, id: ClientId, error: &[u8]) {
        self.note_lost_request(id);
        let Some(client) = self.clients.find_mut(id) else { return };
        let held = std::mem::take(&mut client.held);
        // Only a request that has begun is refused, so there is a header.
        let simple = matches!(held.first(), Some(b'Q' | b'F'));
        let total = frame::head(&held, u32::MAX).ok().flatten().map_or(0, |head| head.total);
        let discard = if simple { u32::try_from(total).unwrap_or(u32::MAX) } else { 0 };
        let until = if simple { Until::Answer } else { Until::Sync };
        client.state = ClientState::Skipping { discard, until };
        // From here on it owes us the end of its request, or is idle.
        client.request_at = self.now;
        self.arm_client_idle(id);
        transport.set_reading(id.into(), true);
        self.send_to_client(transport, id, error, None);
        if self.dismiss_if_stopping(transport, id) {
            return;
        }
        self.skip(transport, id, &held);
    }

    /// The client has sent a simple query where `disable_pqexec` forbids it.
    pub(super) fn refuse_simple_query(&mut self, transport: &mut impl Transport, id: ClientId) {
        let farewell = texts::fatal(texts::NOT_SUPPORTED, texts::NO_SIMPLE_QUERIES);
        self.dismiss_client(transport, id, &farewell, texts::NO_SIMPLE_QUERIES);
    }

    /// The client's bytes are not the protocol.
    pub(super) fn break_protocol(&mut self, transport: &mut impl Transport, id: ClientId, what: &str) {
        self.totals.protocol_errors += 1;
        let farewell = texts::fatal(texts::PROTOCOL_VIOLATION, what);
        self.dismiss_client(transport, id, &farewell, what);
    }

    /// Logs the end of a client, if that is wanted.
    pub(super) fn log_client_end(&self, client: &Client, reason: &str) {
        if !self.config.general.log_disconnections {
            return;
        }
        match client.pool {
            Some(pool) => {
                let pool = self.pool(pool);
                tracing::info!(database = %pool.database, user = %pool.user, address = ?client.address, "closing because: {reason}");
            }
            None => debug!(address = ?client.address, "closing because: {reason}"),
        }
    }
}

/// True if a Terminate stands at a message boundary of what a waiter has sent.
pub(super) fn says_goodbye(held: &[u8]) -> bool {
    let mut rest = held;
    while let Ok(Some(head)) = frame::head(rest, u32::MAX) {
        if head.tag == TERMINATE {
            return true;
        }
        match rest.get(head.total..) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    false
}
