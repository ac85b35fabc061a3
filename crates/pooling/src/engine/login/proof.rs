//! How a client proves who it is.

use super::{CONSOLE_DATABASE, MAX_ENCRYPTION_REQUESTS};
use crate::client::{Client, ClientState, Login};
use crate::connection::ClientId;
use crate::engine::Engine;
use crate::events::EventKind;
use crate::seam::{DeriveVerifier, DerivedVerifier, Transport};
use crate::texts;
use pgwire::accept::{
    ClientLogin, LoginError, LoginSecret, MAX_LOGIN_BODY_BYTES, Method, Step, needs_verifier,
};
use pgwire::frame;
use pgwire::startup::Startup;
use settings::pooler::{AuthType, Secret};

impl Engine {
    /// Starts the exchange that proves the user. A user who is not known fails like one with a wrong password.
    pub(super) fn ask_for_proof(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        startup: Startup,
    ) -> bool {
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

    pub(super) fn derive_verifier(
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

    pub(super) fn on_password(&mut self, transport: &mut impl Transport, id: ClientId) -> bool {
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

    pub(super) fn take_step(
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
                self.note_proof(id, &startup.user);
                let is_console = startup.database == CONSOLE_DATABASE;
                let admits = !is_console || self.is_console_user(&startup.user);
                if !admits {
                    return self.refuse_login(transport, id, texts::NOT_AUTHORIZED, "not allowed");
                }
                self.on_accepted(transport, id, &startup, send, keys, false)
            }
            Step::Refused(error) => {
                if matches!(error, LoginError::WrongPassword { .. }) {
                    self.note_refused_proof(transport, id, &startup.user);
                }
                self.totals.logins_refused += 1;
                self.record(None, EventKind::LoginRefused);
                self.dismiss_client(transport, id, &error.response(), &error.to_string());
                false
            }
        }
    }
}

/// A stored secret, as the login wants it.
fn login_secret(secret: &Secret) -> LoginSecret {
    match secret {
        Secret::Plain(text) | Secret::Md5(text) | Secret::ScramVerifier(text) => LoginSecret::parse(text),
    }
}
