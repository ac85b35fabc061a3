//! Answering a server's authentication requests.

use super::{ServerLoginError, ServerSecret};
use crate::md5::Md5Secret;
use crate::message::frontend;
use crate::message::parse::{Authentication, sasl_mechanisms};
use crate::scram::{AwaitServerFinal, AwaitServerFirst, ClientSecret, MECHANISM};

/// How far we are.
#[derive(Debug)]
pub(super) enum Authenticating {
    /// Nothing was asked yet.
    Start(Option<ServerSecret>),
    /// The password or its MD5 answer is sent.
    PasswordSent,
    /// The first SCRAM message is sent.
    ScramFirst(AwaitServerFirst),
    /// The proof is sent; the server must prove itself too.
    ScramFinal(AwaitServerFinal),
    /// The server has proven itself.
    ScramDone,
}

impl Authenticating {
    pub(super) fn new(secret: Option<ServerSecret>) -> Self {
        Self::Start(secret)
    }

    /// Answers a request other than AuthenticationOk.
    pub(super) fn on_request(
        self,
        request: Authentication<'_>,
        user: &str,
        random: &[u8; 32],
    ) -> Result<(Self, Vec<u8>), ServerLoginError> {
        let mut send = Vec::new();
        let state = match (self, request) {
            (Self::Start(secret), Authentication::CleartextPassword) => {
                match secret {
                    Some(ServerSecret::Plain(password)) if !password.as_bytes().contains(&0) => {
                        frontend::password(&mut send, password.as_bytes());
                    }
                    secret => return Err(missing(user, "password", "the plain password", secret.as_ref())),
                }
                Self::PasswordSent
            }
            (Self::Start(secret), Authentication::Md5Password { salt }) => {
                let secret = match secret {
                    Some(ServerSecret::Plain(password)) => Md5Secret::derive(password.as_bytes(), user),
                    Some(ServerSecret::Md5(secret)) => secret,
                    secret => {
                        let needed = "the plain password or its MD5 secret";
                        return Err(missing(user, "md5", needed, secret.as_ref()));
                    }
                };
                frontend::password(&mut send, &secret.answer(salt));
                Self::PasswordSent
            }
            (Self::Start(secret), Authentication::Sasl { mechanisms }) => {
                if !sasl_mechanisms(mechanisms).any(|name| name == MECHANISM.as_bytes()) {
                    let offered = String::from_utf8_lossy(mechanisms).replace('\0', " ").trim().to_owned();
                    return Err(ServerLoginError::Mechanism { offered });
                }
                let secret = match secret {
                    Some(ServerSecret::Plain(password)) => ClientSecret::Password(password),
                    Some(ServerSecret::ScramKeys(keys)) => ClientSecret::Keys(keys),
                    secret => {
                        let needed = "the plain password or the SCRAM keys of the client's own login";
                        return Err(missing(user, "scram-sha-256", needed, secret.as_ref()));
                    }
                };
                let (exchange, first) = AwaitServerFirst::new(secret, random);
                frontend::sasl_initial_response(&mut send, MECHANISM, &first);
                Self::ScramFirst(exchange)
            }
            (Self::ScramFirst(exchange), Authentication::SaslContinue { data }) => {
                let (exchange, client_final) = exchange.answer(data)?;
                frontend::sasl_response(&mut send, &client_final);
                Self::ScramFinal(exchange)
            }
            (Self::ScramFinal(exchange), Authentication::SaslFinal { data }) => {
                exchange.verify(data)?;
                Self::ScramDone
            }
            (_, Authentication::Other { kind }) => return Err(ServerLoginError::Unsupported { kind }),
            _ => return Err(ServerLoginError::OutOfOrder),
        };
        Ok((state, send))
    }

    /// AuthenticationOk has come. In the middle of SCRAM it is a lie: the server has not proven itself.
    pub(super) fn finish(self) -> Result<(), ServerLoginError> {
        match self {
            Self::Start(_) | Self::PasswordSent | Self::ScramDone => Ok(()),
            Self::ScramFirst(_) | Self::ScramFinal(_) => Err(ServerLoginError::Unproven),
        }
    }
}

fn missing(
    user: &str,
    method: &'static str,
    needed: &'static str,
    secret: Option<&ServerSecret>,
) -> ServerLoginError {
    let have = match secret {
        None => "nothing",
        Some(ServerSecret::Plain(_)) => "a password with a zero byte",
        Some(ServerSecret::Md5(_)) => "an MD5 secret",
        Some(ServerSecret::ScramKeys(_)) => "SCRAM keys",
    };
    ServerLoginError::Secret { user: user.to_owned(), method, needed, have }
}
