//! A client's login: start-up packets, proof of who it is, greeting.
//!
//! Every step here is cheap: a SCRAM verifier that has to be derived from a plain password is derived elsewhere, and kept.

mod proof;
mod welcome;

use super::Engine;
use crate::client::{Client, ClientState, Login};
use crate::connection::{ClientId, Slab};
use crate::events::EventKind;
use crate::seam::Transport;
use crate::texts;
use pgwire::accept::MAX_LOGIN_BODY_BYTES;
use pgwire::message::backend;
use pgwire::startup::{FirstPacket, Replication, Startup, first_packet, is_tls_handshake};

/// The database name of the console.
pub const CONSOLE_DATABASE: &str = "pgbouncer";

/// Requests for encryption that one connection may make: one of each kind.
const MAX_ENCRYPTION_REQUESTS: u8 = 2;

/// Since this minor version of the protocol a cancel key may be longer than eight bytes.
const FIRST_MINOR_WITH_LONG_KEYS: u16 = 2;

/// Ended logins that the list of logins may hold beside as many as are under way.
const ENDED_LOGINS_KEPT: usize = 64;

impl Engine {
    /// A connection is in login from now on.
    pub(super) fn note_login(&mut self, id: ClientId) {
        if self.logins.len() >= 2 * self.in_login + ENDED_LOGINS_KEPT {
            let clients = &self.clients;
            self.logins.retain(|&login| is_in_login(clients, login));
        }
        self.logins.push_back(id);
    }

    /// Descriptors are out. Connections that say nothing must not shut the door to others, least of all to the
    /// operator: whoever has been in login for longest goes. False if nobody is in login.
    pub(super) fn dismiss_oldest_login(&mut self, transport: &mut impl Transport) -> bool {
        while let Some(id) = self.logins.pop_front() {
            if is_in_login(&self.clients, id) {
                self.totals.clients_refused += 1;
                self.record(None, EventKind::ClientRefused);
                let text = "too many connections in login";
                let farewell = texts::fatal(texts::TOO_MANY_CONNECTIONS, text);
                self.dismiss_client(transport, id, &farewell, text);
                return true;
            }
        }
        false
    }

    pub(super) fn on_login_bytes(&mut self, transport: &mut impl Transport, id: ClientId, chunk: &[u8]) {
        let Some(client) = self.clients.find_mut(id) else { return };
        client.held.extend_from_slice(chunk);
        loop {
            let Some(client) = self.clients.find_mut(id) else { return };
            let ClientState::Login(login) = &client.state else {
                // Logged in: what came behind the last message of the login is the first request.
                let rest = std::mem::take(&mut client.held);
                if !rest.is_empty() {
                    self.on_client_bytes(transport, id, &rest);
                }
                return;
            };
            let went_on = match **login {
                Login::FirstPacket { declined } => self.on_first_packet(transport, id, declined),
                Login::Password { .. } => self.on_password(transport, id),
                Login::Deriving(_) => {
                    if client.held.len() > MAX_LOGIN_BODY_BYTES {
                        transport.set_reading(id.into(), false);
                    }
                    false
                }
            };
            if !went_on {
                return;
            }
        }
    }

    /// True if a packet was taken and more may follow.
    fn on_first_packet(&mut self, transport: &mut impl Transport, id: ClientId, declined: u8) -> bool {
        let Some(client) = self.clients.find(id) else { return false };
        if declined == 0
            && !client.has_tls
            && is_tls_handshake(&client.held)
            && !self.on_direct_tls(transport, id)
        {
            return false;
        }
        let Some(client) = self.clients.find_mut(id) else { return false };
        let (packet, consumed) = match first_packet(&client.held) {
            Ok(Some(found)) => found,
            Ok(None) => return false,
            Err(error) => {
                self.totals.protocol_errors += 1;
                self.dismiss_client(transport, id, &error.response(), &error.to_string());
                return false;
            }
        };
        client.held.drain(..consumed);
        if client.held.is_empty() {
            client.held = Vec::new();
        }
        match packet {
            FirstPacket::SslRequest | FirstPacket::GssEncryptionRequest => {
                if declined >= MAX_ENCRYPTION_REQUESTS {
                    self.break_protocol(transport, id, "too many requests for encryption");
                    return false;
                }
                if packet == FirstPacket::SslRequest {
                    return self.on_ssl_request(transport, id, declined);
                }
                self.decline_encryption(transport, id, declined)
            }
            FirstPacket::Cancel(key) => {
                self.on_cancel_request(transport, id, &key);
                false
            }
            FirstPacket::Startup(startup) => self.on_startup(transport, id, startup),
        }
    }

    fn on_startup(&mut self, transport: &mut impl Transport, id: ClientId, mut startup: Startup) -> bool {
        if self.refuse_plain(transport, id) {
            return false;
        }
        let is_console = startup.database == CONSOLE_DATABASE;
        if !is_console {
            self.note_attempt(id, &startup.user, &startup.parameters);
        }
        if !(is_console && self.is_own_user(id)) && self.refuse_attempt(transport, id, &startup.user) {
            return false;
        }
        if !is_console
            && (self.refuse_if_full(transport, id) || self.refuse_if_crowded(transport, id, &startup))
        {
            return false;
        }
        if startup.replication != Replication::No {
            let text = "replication connections are not supported yet";
            self.dismiss_client(transport, id, &texts::fatal(texts::NOT_SUPPORTED, text), text);
            return false;
        }
        match self.wishes(&startup) {
            Ok(wishes) => startup.parameters = wishes,
            Err(text) => {
                self.dismiss_client(transport, id, &texts::fatal(texts::PROTOCOL_VIOLATION, &text), &text);
                return false;
            }
        }
        match Self::take_patience(&mut startup.parameters) {
            Ok(declared_ms) => {
                if let Some(client) = self.clients.find_mut(id) {
                    client.patience.declared_ms = declared_ms;
                }
            }
            Err(text) => {
                let farewell = texts::fatal(texts::INVALID_PARAMETER_VALUE, &text);
                self.dismiss_client(transport, id, &farewell, &text);
                return false;
            }
        }
        if startup.must_negotiate() {
            let mut negotiation = Vec::new();
            backend::negotiate_protocol_version(
                &mut negotiation,
                startup.negotiated_minor(),
                &startup.unknown_options,
            );
            transport.send(id.into(), &[&negotiation]);
        }
        if is_console && self.is_own_user(id) {
            return self.on_accepted(transport, id, &startup, Vec::new(), None, true);
        }
        self.ask_for_proof(transport, id, startup)
    }

    /// True if there is no room for one more client.
    fn refuse_if_full(&mut self, transport: &mut impl Transport, id: ClientId) -> bool {
        let is_full = self.clients_logged_in() >= self.client_limit();
        if is_full {
            self.totals.clients_refused += 1;
            self.record(None, EventKind::ClientRefused);
            let text = "no more connections allowed (max_client_conn)";
            let farewell = texts::fatal(texts::TOO_MANY_CONNECTIONS, text);
            self.dismiss_client(transport, id, &farewell, text);
        }
        is_full
    }

    fn refuse_login(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        sqlstate: &str,
        text: &str,
    ) -> bool {
        self.totals.logins_refused += 1;
        self.record(None, EventKind::LoginRefused);
        self.dismiss_client(transport, id, &texts::fatal(sqlstate, text), text);
        false
    }
}

fn is_in_login(clients: &Slab<ClientId, Client>, id: ClientId) -> bool {
    clients.find(id).is_some_and(|client| matches!(client.state, ClientState::Login(_)))
}
