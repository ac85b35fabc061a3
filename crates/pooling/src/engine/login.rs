//! A client's login: start-up packets, proof of who it is, greeting.
//!
//! Every step here is cheap: a SCRAM verifier that has to be derived from a plain password is derived elsewhere, and kept.

use super::Engine;
use crate::client::{CancelKeyBytes, Client, ClientState, LONG_KEY_TAIL_BYTES, Login};
use crate::connection::{ClientId, PoolId, Slab};
use crate::seam::{ClientAddress, ConsoleLogin, DeriveVerifier, DerivedVerifier, Transport};
use crate::texts;
use pgwire::accept::{ClientLogin, LoginSecret, MAX_LOGIN_BODY_BYTES, Method, Step, needs_verifier};
use pgwire::frame;
use pgwire::message::{TransactionStatus, backend};
use pgwire::scram::ScramKeys;
use pgwire::startup::{FirstPacket, Replication, Startup, first_packet, is_tls_handshake};
use settings::pooler::{AuthType, Secret};
use std::time::Duration;
use tracing::info;

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
                client.state = ClientState::Login(Box::new(Login::FirstPacket { declined: declined + 1 }));
                transport.send(id.into(), &[b"N"]);
                true
            }
            FirstPacket::Cancel(key) => {
                self.on_cancel_request(transport, id, &key);
                false
            }
            FirstPacket::Startup(startup) => self.on_startup(transport, id, startup),
        }
    }

    fn on_startup(&mut self, transport: &mut impl Transport, id: ClientId, startup: Startup) -> bool {
        if self.refuse_plain(transport, id) {
            return false;
        }
        let is_console = startup.database == CONSOLE_DATABASE;
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
        if let Err(text) = self.wishes(&startup) {
            self.dismiss_client(transport, id, &texts::fatal(texts::PROTOCOL_VIOLATION, &text), &text);
            return false;
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
            let text = "no more connections allowed (max_client_conn)";
            let farewell = texts::fatal(texts::TOO_MANY_CONNECTIONS, text);
            self.dismiss_client(transport, id, &farewell, text);
        }
        is_full
    }

    /// Starts the exchange that proves the user. A user who is not known fails like one with a wrong password.
    fn ask_for_proof(&mut self, transport: &mut impl Transport, id: ClientId, startup: Startup) -> bool {
        let method = match self.config.general.auth_type {
            AuthType::Any | AuthType::Trust => Method::Trust,
            AuthType::Md5 => Method::Md5,
            AuthType::Plain => Method::Plain,
            AuthType::ScramSha256 => Method::Scram,
        };
        if self.config.general.auth_type == AuthType::Any
            && startup.database != CONSOLE_DATABASE
            && self.config.find_database(&startup.database).is_some_and(|database| database.user.is_none())
        {
            let text = "auth_type=any requires a user in the [databases] line";
            return self.refuse_login(transport, id, texts::NOT_AUTHORIZED, text);
        }
        let stored = self.config.secrets.get(&startup.user);
        if self.config.general.auth_type == AuthType::Trust && stored.is_none() {
            let text = format!("\"trust\" authentication failed: no such user \"{}\"", startup.user);
            return self.refuse_login(transport, id, texts::NOT_AUTHORIZED, &text);
        }
        let mut secret = stored.map(login_secret);
        // Checking a readable password against a verifier costs milliseconds; SCRAM proves it for a few hashes, and keeps
        // the password off the wire. PgBouncer does the same for `md5`.
        let method = match (method, &secret) {
            (Method::Plain, Some(LoginSecret::Scram(_))) => Method::Scram,
            (method, _) => method,
        };
        if let (Some(wanting), Some(stored)) = (&secret, stored)
            && needs_verifier(method, wanting)
        {
            if let Some(verifier) = self.verifiers.get(&startup.user) {
                secret = Some(LoginSecret::Scram(verifier.clone()));
            } else {
                return self.derive_verifier(transport, id, startup, stored.clone());
            }
        }
        let (binding, random) = (transport.channel_binding(id), transport.random());
        let step = ClientLogin::start(method, &startup.user, secret, &self.mock, binding, &random);
        self.take_step(transport, id, startup, step)
    }

    fn derive_verifier(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        startup: Startup,
        secret: Secret,
    ) -> bool {
        let [salt @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = transport.random();
        let salt = *self.deriving.entry(startup.user.clone()).or_insert(salt);
        let iterations = self.config.general.scram_iterations;
        transport.derive_verifier(DeriveVerifier {
            client: id,
            user: startup.user.clone(),
            secret,
            iterations,
            salt,
        });
        if let Some(client) = self.clients.find_mut(id) {
            client.state = ClientState::Login(Box::new(Login::Deriving(startup)));
        }
        false
    }

    /// A verifier has been derived: the login that waits for it goes on.
    pub fn on_verifier(&mut self, transport: &mut impl Transport, derived: DerivedVerifier) {
        let Some(verifier) = derived.verifier else {
            self.deriving.remove(&derived.user);
            let waits = |client: &Client| matches!(&client.state, ClientState::Login(login) if matches!(**login, Login::Deriving(_)));
            if self.clients.find(derived.client).is_some_and(waits) {
                let text = "the pooler cannot check passwords at present";
                self.refuse_login(transport, derived.client, texts::TOO_MANY_CONNECTIONS, text);
            }
            return;
        };
        // Otherwise the secret has changed since it was asked for: who waits asks again.
        if self.deriving.get(&derived.user).is_some_and(|salt| verifier.salt() == salt) {
            self.verifiers.insert(derived.user, verifier);
        }
        let Some(client) = self.clients.find_mut(derived.client) else { return };
        match std::mem::replace(&mut client.state, ClientState::Idle) {
            ClientState::Login(login) => match *login {
                Login::Deriving(startup) => {
                    client.state = ClientState::Login(Box::new(Login::Deriving(startup.clone())));
                    transport.set_reading(derived.client.into(), true);
                    if self.ask_for_proof(transport, derived.client, startup) {
                        self.on_login_bytes(transport, derived.client, &[]);
                    }
                }
                other => client.state = ClientState::Login(Box::new(other)),
            },
            other => client.state = other,
        }
    }

    fn on_password(&mut self, transport: &mut impl Transport, id: ClientId) -> bool {
        let Some(client) = self.clients.find_mut(id) else { return false };
        // The length counts itself.
        let limit = u32::try_from(MAX_LOGIN_BODY_BYTES + 4).unwrap_or(u32::MAX);
        let head = match frame::head(&client.held, limit) {
            Ok(Some(head)) if head.total <= client.held.len() => head,
            Ok(_) => return false,
            Err(error) => {
                self.break_protocol(transport, id, &error.to_string());
                return false;
            }
        };
        if head.tag == b'X' {
            self.client_gone(transport, id, "client close request");
            return false;
        }
        let ClientState::Login(login) = std::mem::replace(&mut client.state, ClientState::Idle) else {
            return false;
        };
        let Login::Password { startup, machine } = *login else { return false };
        let message: Vec<u8> = client.held.drain(..head.total).collect();
        if client.held.is_empty() {
            client.held = Vec::new();
        }
        client.state = ClientState::Login(Box::new(Login::FirstPacket { declined: MAX_ENCRYPTION_REQUESTS }));
        let step = machine.on_message(head.tag, &message[frame::HEADER_BYTES..]);
        self.take_step(transport, id, startup, step)
    }

    fn take_step(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        startup: Startup,
        step: Step,
    ) -> bool {
        match step {
            Step::Continue { login, send } => {
                transport.send(id.into(), &[&send]);
                if let Some(client) = self.clients.find_mut(id) {
                    client.state = ClientState::Login(Box::new(Login::Password { startup, machine: login }));
                }
                true
            }
            Step::Accepted { send, keys } => {
                let is_console = startup.database == CONSOLE_DATABASE;
                let admits = !is_console || self.is_console_user(&startup.user);
                if !admits {
                    return self.refuse_login(transport, id, texts::NOT_AUTHORIZED, "not allowed");
                }
                self.on_accepted(transport, id, &startup, send, keys, false)
            }
            Step::Refused(error) => {
                self.totals.logins_refused += 1;
                self.dismiss_client(transport, id, &error.response(), &error.to_string());
                false
            }
        }
    }

    fn refuse_login(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        sqlstate: &str,
        text: &str,
    ) -> bool {
        self.totals.logins_refused += 1;
        self.dismiss_client(transport, id, &texts::fatal(sqlstate, text), text);
        false
    }

    fn is_console_user(&self, user: &str) -> bool {
        let general = &self.config.general;
        general.admin_users.iter().chain(&general.stats_users).any(|known| known == user)
            || general.auth_type == AuthType::Any
    }

    /// The same user id over the Unix socket is the pooler's own operator, with no entry in any list.
    fn is_own_user(&self, id: ClientId) -> bool {
        matches!(
            self.clients.find(id).map(|client| client.address),
            Some(ClientAddress::Unix { uid, .. }) if Some(uid) == self.own_uid
        )
    }

    /// The client is who it says.
    fn on_accepted(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        startup: &Startup,
        mut send: Vec<u8>,
        keys: Option<ScramKeys>,
        own_user: bool,
    ) -> bool {
        if send.is_empty() {
            backend::authentication_ok(&mut send);
        }
        if startup.database == CONSOLE_DATABASE {
            transport.send(id.into(), &[&send]);
            let admin = own_user || self.config.general.admin_users.contains(&startup.user);
            let Some(client) = self.clients.remove(id) else { return false };
            self.in_login -= 1;
            transport.hand_to_console(
                id,
                ConsoleLogin {
                    user: startup.user.clone(),
                    admin,
                    address: client.address,
                    pending: client.held,
                },
            );
            return false;
        }
        // Many may have been in login when the last place was taken.
        if self.refuse_if_full(transport, id) || self.refuse_if_crowded(transport, id, startup) {
            return false;
        }
        let pool_id = match self.find_or_make_pool(&startup.database, &startup.user) {
            Ok(pool_id) => pool_id,
            Err(text) => return self.refuse_login(transport, id, texts::NO_SUCH_DATABASE, &text),
        };
        if let Some(keys) = keys {
            self.learn_keys(pool_id, keys);
        }
        let own = self.own_parameters(id, startup);
        let long_key = startup.negotiated_minor() >= FIRST_MINOR_WITH_LONG_KEYS;
        let key_tail = long_key.then(|| key_tail(transport.random()));
        self.in_login -= 1;
        let now = self.now;
        let log_connections = self.config.general.log_connections;
        self.count_client(id, pool_id, &startup.user);
        let pool = &mut self.pools[pool_id.0 as usize];
        pool.counters.client_login_count += 1;
        let Some(client) = self.clients.find_mut(id) else { return false };
        if log_connections {
            let tls = client.has_tls.then(|| transport.describe_tls(id));
            info!(database = %pool.database, user = %pool.user, tls, address = ?client.address, "login attempt: accepted");
        }
        client.pool = Some(pool_id);
        client.request_at = now;
        client.parameters = own;
        client.key_tail = key_tail;
        transport.send(id.into(), &[&send]);
        if self.pool(pool_id).greeting.is_some() {
            self.greet(transport, id, pool_id);
            return true;
        }
        let pool = &mut self.pools[pool_id.0 as usize];
        let Ok(ticket) = pool.welcomes.push_back(id, now) else {
            let farewell = texts::fatal(texts::TOO_MANY_CONNECTIONS, "too many clients wait for a server");
            self.dismiss_client(transport, id, &farewell, "too many clients wait for a server");
            return false;
        };
        if let Some(client) = self.clients.find_mut(id) {
            client.state = ClientState::AwaitingWelcome(ticket);
        }
        self.refill(transport, pool_id);
        self.refuse_if_hopeless(transport, pool_id);
        self.arm_pool(pool_id);
        true
    }

    /// The pool's parameters are known: everybody who waits for them is let in.
    pub(super) fn welcome_all(&mut self, transport: &mut impl Transport, pool_id: PoolId) {
        let now = self.now;
        while let Some((client, since)) = self.pool_mut(pool_id).welcomes.pop_front() {
            let waited = now.since(since);
            let pool = self.pool_mut(pool_id);
            pool.counters.wait_time_us += u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
            if waited > Duration::ZERO {
                pool.counters.wait.record(waited);
            }
            self.greet(transport, client, pool_id);
            transport.set_reading(client.into(), true);
            let held = self.clients.find_mut(client).map(|client| std::mem::take(&mut client.held));
            if let Some(held) = held.filter(|held| !held.is_empty()) {
                self.on_client_bytes(transport, client, &held);
            }
        }
    }

    /// Parameters, cancel key, ReadyForQuery. The client's own start-up values stand in place of the server's.
    fn greet(&mut self, transport: &mut impl Transport, id: ClientId, pool_id: PoolId) {
        let mut key: CancelKeyBytes = [0; 8];
        loop {
            key.copy_from_slice(&transport.random()[..8]);
            // A process id is positive to most tools.
            key[0] &= 0x7f;
            if !self.keys.contains_key(&key) {
                break;
            }
        }
        let Some(greeting) = &self.pools[pool_id.0 as usize].greeting else { return };
        let Some(client) = self.clients.find_mut(id) else { return };
        let mut message = Vec::with_capacity(512);
        client.parameters = self.parameters.start(&greeting.tracked, &client.parameters);
        if let Some(notice) = &self.config.general.login_notify_message {
            message.extend(texts::notice(notice));
        }
        for (name, value) in &greeting.parameters {
            let own = self.parameters.index_of(name).and_then(|index| client.parameters.value(index));
            backend::parameter_status(&mut message, name, own.map_or(value.as_str(), |own| own.as_ref()));
        }
        client.start = client.parameters.clone();
        client.key = key;
        client.state = ClientState::Idle;
        self.keys.insert(key, id);
        backend::backend_key_data(&mut message, &client.cancel_key());
        backend::ready_for_query(&mut message, TransactionStatus::Idle);
        self.send_to_client(transport, id, &message, None);
        self.arm_client_idle(id);
    }
}

fn is_in_login(clients: &Slab<ClientId, Client>, id: ClientId) -> bool {
    clients.find(id).is_some_and(|client| matches!(client.state, ClientState::Login(_)))
}

/// A stored secret, as the login wants it.
fn login_secret(secret: &Secret) -> LoginSecret {
    match secret {
        Secret::Plain(text) | Secret::Md5(text) | Secret::ScramVerifier(text) => LoginSecret::parse(text),
    }
}

/// What a key of protocol 3.2 has behind the bytes that one of 3.0 has.
fn key_tail(random: [u8; 32]) -> Box<[u8; LONG_KEY_TAIL_BYTES]> {
    let [tail @ .., _, _, _, _] = random;
    Box::new(tail)
}
