//! Logging a client in: we are the server.
//!
//! A login is a value that is eaten by each message and gives the next [`Step`]. It decides only whether the
//! client knows the secret; whether the user may come at all is the caller's matter.

mod error;
mod sasl;
mod secret;
#[cfg(test)]
mod tests;

pub use error::LoginError;
pub use secret::{LoginSecret, needs_verifier};

use std::sync::Arc;

use crate::md5::Md5Secret;
use crate::message::{backend, parse, tag};
use crate::scram::{ChannelBinding, MECHANISM, MECHANISM_PLUS, MockSecret, ScramKeys, Verifier};
use sasl::Sasl;

/// Longest body of a client's message during login, in bytes: a password of 65,535 and its closing zero
/// (`PG_MAX_AUTH_TOKEN_LENGTH` of PostgreSQL). Check it on the header, before the body is buffered.
pub const MAX_LOGIN_BODY_BYTES: usize = 65_536;

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    Trust,
    /// By the password itself, readable on the wire.
    Plain,
    /// By a salted MD5 answer, or by SCRAM where a SCRAM verifier is stored.
    Md5,
    /// By SCRAM-SHA-256.
    Scram,
}

/// A login that waits for the client's next message.
#[derive(Debug)]
pub struct ClientLogin {
    user: Box<str>,
    state: State,
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Send these bytes and give the next message to `login`.
    Continue {
        /// What waits for it.
        login: ClientLogin,
        /// One message.
        send: Vec<u8>,
    },
    /// The client is who it says. Parameters, key and ReadyForQuery are the caller's to send.
    Accepted {
        /// The end of the exchange, AuthenticationOk included.
        send: Vec<u8>,
        /// Known after SCRAM: they log in at a server that stores the same verifier.
        keys: Option<ScramKeys>,
    },
    /// The login failed: send [`LoginError::response`] and close.
    Refused(LoginError),
}

#[derive(Debug)]
enum State {
    /// `None`: no password is right.
    Plain(Option<LoginSecret>),
    Md5 {
        secret: Option<Md5Secret>,
        salt: [u8; 4],
    },
    Sasl(Sasl),
}

impl ClientLogin {
    /// Begins a login. `secret` is `None` for a user that is not known, who then fails like one with a wrong
    /// password (`mock` makes the challenge). `random` must be fresh; it gives the salt or the nonce.
    ///
    /// With a `binding`, SCRAM is offered with channel binding too; it must be that of the client's TLS connection.
    /// With [`Method::Trust`] the answer is `Accepted` whatever the secret: the caller has looked the user up.
    /// Cheap for every method. Where [`needs_verifier`] says so, the caller derives one first.
    #[must_use]
    pub fn start(
        method: Method,
        user: &str,
        secret: Option<LoginSecret>,
        mock: &MockSecret,
        binding: Option<ChannelBinding>,
        random: &[u8; 32],
    ) -> Step {
        let secret = secret.filter(|secret| !secret.is_empty_password());
        let mut send = Vec::new();
        let state = match (method, secret) {
            (Method::Trust, _) => return accepted(send, None),
            (Method::Plain, secret) => {
                backend::authentication_cleartext_password(&mut send);
                State::Plain(secret)
            }
            (Method::Md5, Some(LoginSecret::Plain(password))) => {
                let secret = Md5Secret::derive(password.as_bytes(), user);
                ask_md5(Some(secret), random, &mut send)
            }
            (Method::Md5, Some(LoginSecret::Md5(secret))) => ask_md5(Some(secret), random, &mut send),
            (Method::Md5, None) => ask_md5(None, random, &mut send),
            (Method::Md5 | Method::Scram, Some(LoginSecret::Scram(verifier))) => {
                ask_scram(verifier, binding, random, &mut send)
            }
            (Method::Scram, None) => ask_scram(Arc::new(mock.verifier(user)), binding, random, &mut send),
            (Method::Scram, Some(LoginSecret::Md5(_))) => {
                return Step::Refused(LoginError::WrongPasswordType { user: user.to_owned() });
            }
            (Method::Scram, Some(LoginSecret::Plain(_))) => {
                return Step::Refused(LoginError::VerifierMissing { user: user.to_owned() });
            }
        };
        Step::Continue { login: Self { user: user.into(), state }, send }
    }

    /// Takes the client's next message. Costly only for [`Method::Plain`] with a SCRAM verifier stored.
    #[must_use]
    pub fn on_message(self, tag: u8, body: &[u8]) -> Step {
        let Self { user, state } = self;
        if tag != tag::PASSWORD {
            return Step::Refused(LoginError::UnexpectedMessage { expected: tag::PASSWORD, got: tag });
        }
        if body.len() > MAX_LOGIN_BODY_BYTES {
            return Step::Refused(LoginError::TooLong { length: body.len() });
        }
        let outcome = match state {
            State::Plain(secret) => check_plain(secret, &user, body),
            State::Md5 { secret, salt } => check_md5(secret, salt, &user, body),
            State::Sasl(sasl) => sasl.on_message(&user, body),
        };
        match outcome {
            Ok(Outcome::More(sasl, send)) => {
                Step::Continue { login: Self { user, state: State::Sasl(sasl) }, send }
            }
            Ok(Outcome::Accepted(send, keys)) => accepted(send, keys),
            Err(error) => Step::Refused(error),
        }
    }

    /// The user who logs in.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }
}

/// How a message was taken.
enum Outcome {
    More(Sasl, Vec<u8>),
    Accepted(Vec<u8>, Option<ScramKeys>),
}

fn accepted(mut send: Vec<u8>, keys: Option<ScramKeys>) -> Step {
    backend::authentication_ok(&mut send);
    Step::Accepted { send, keys }
}

fn ask_md5(secret: Option<Md5Secret>, random: &[u8; 32], send: &mut Vec<u8>) -> State {
    let [a, b, c, d, ..] = *random;
    let salt = [a, b, c, d];
    backend::authentication_md5_password(send, salt);
    State::Md5 { secret, salt }
}

fn ask_scram(
    verifier: Arc<Verifier>,
    binding: Option<ChannelBinding>,
    random: &[u8; 32],
    send: &mut Vec<u8>,
) -> State {
    let offered: &[&str] = if binding.is_some() { &[MECHANISM_PLUS, MECHANISM] } else { &[MECHANISM] };
    backend::authentication_sasl(send, offered);
    State::Sasl(Sasl::new(verifier, binding, random))
}

fn check_plain(secret: Option<LoginSecret>, user: &str, body: &[u8]) -> Result<Outcome, LoginError> {
    let password = parse::password(body)?;
    let wrong = || LoginError::WrongPassword { user: user.to_owned() };
    let secret = secret.filter(|_| !password.is_empty()).ok_or_else(wrong)?;
    let keys = secret.check_plain(user, password)?.ok_or_else(wrong)?;
    Ok(Outcome::Accepted(Vec::new(), keys.keys))
}

fn check_md5(
    secret: Option<Md5Secret>,
    salt: [u8; 4],
    user: &str,
    body: &[u8],
) -> Result<Outcome, LoginError> {
    let answer = parse::password(body)?;
    if secret.is_some_and(|secret| secret.accepts(answer, salt)) {
        Ok(Outcome::Accepted(Vec::new(), None))
    } else {
        Err(LoginError::WrongPassword { user: user.to_owned() })
    }
}
