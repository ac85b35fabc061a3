//! What a client gets that is who it says: a place, the parameters of its pool, and a key for cancel requests.

use super::{CONSOLE_DATABASE, FIRST_MINOR_WITH_LONG_KEYS};
use crate::client::{CancelKeyBytes, ClientState, LONG_KEY_TAIL_BYTES};
use crate::connection::{ClientId, PoolId};
use crate::engine::Engine;
use crate::seam::{ClientAddress, ConsoleLogin, Transport};
use crate::texts;
use pgwire::message::{TransactionStatus, backend};
use pgwire::scram::ScramKeys;
use pgwire::startup::Startup;
use settings::pooler::AuthType;
use std::time::Duration;
use tracing::info;

impl Engine {
    pub(super) fn is_console_user(&self, user: &str) -> bool {
        let general = &self.config.general;
        general.admin_users.iter().chain(&general.stats_users).any(|known| known == user)
            || general.auth_type == AuthType::Any
    }

    /// The same user id over the Unix socket is the pooler's own operator, with no entry in any list.
    pub(super) fn is_own_user(&self, id: ClientId) -> bool {
        matches!(
            self.clients.find(id).map(|client| client.address),
            Some(ClientAddress::Unix { uid, .. }) if Some(uid) == self.own_uid
        )
    }

    /// The client is who it says.
    pub(super) fn on_accepted(
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
        let own = self.own_parameters(id, &startup.parameters);
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
        self.note_asked(pool_id);
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
    pub(in crate::engine) fn welcome_all(&mut self, transport: &mut impl Transport, pool_id: PoolId) {
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
    pub(super) fn greet(&mut self, transport: &mut impl Transport, id: ClientId, pool_id: PoolId) {
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

/// What a key of protocol 3.2 has behind the bytes that one of 3.0 has.
fn key_tail(random: [u8; 32]) -> Box<[u8; LONG_KEY_TAIL_BYTES]> {
    let [tail @ .., _, _, _, _] = random;
    Box::new(tail)
}
