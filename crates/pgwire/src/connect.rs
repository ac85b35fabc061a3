//! Logging in at a server: we are the client.
//!
//! Protocol 3.0 is asked for, so the server's cancel key has four bytes of secret; longer ones are taken too.

mod authenticate;
mod error;
mod session;
#[cfg(test)]
mod tests;

pub use error::ServerLoginError;

use crate::md5::Md5Secret;
use crate::message::parse::{self, Authentication};
use crate::message::{ErrorFields, TransactionStatus, tag};
use crate::scram::ScramKeys;
use crate::secret::{CancelKey, Password};
use crate::startup::startup_message;
use authenticate::Authenticating;
use session::Session;

/// Longest body of a server's message during login, in bytes. Check it on the header, before the body is
/// buffered.
pub const MAX_LOGIN_BODY_BYTES: usize = 65_536;
/// Most messages of one login, notices included.
pub const MAX_LOGIN_MESSAGES: u32 = 1_000;
/// Most parameters that a server may report during login.
pub const MAX_SERVER_PARAMETERS: usize = 256;
/// Most bytes of their names and values together.
pub const MAX_SERVER_PARAMETER_BYTES: usize = 65_536;

/// The session that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupRequest {
    /// The role to log in as.
    pub user: String,
    /// The database.
    pub database: String,
    /// Further parameters, as `application_name` or `options`.
    pub parameters: Vec<(String, String)>,
}

/// What we can prove ourselves with. `Debug` hides it; cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSecret {
    /// The password: good for every method. With SCRAM each login costs the server's iterations.
    Plain(Password),
    /// Its MD5: good for md5.
    Md5(Md5Secret),
    /// Keys of a client's own SCRAM login: good for SCRAM where the same verifier is stored.
    ScramKeys(ScramKeys),
}

/// A login that waits for the server's next message.
#[derive(Debug)]
pub struct ServerLogin {
    user: Box<str>,
    messages: u32,
    state: State,
}

/// What to do next.
#[derive(Debug)]
pub enum ServerStep {
    /// Send these bytes, if any, and give the next message to `login`.
    Continue {
        /// What waits for it.
        login: ServerLogin,
        /// One message, or nothing.
        send: Vec<u8>,
    },
    /// The session is open and idle.
    Ready(ServerReady),
}

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReady {
    /// For cancel requests; some servers give none, and then nothing can be cancelled there.
    pub cancel_key: Option<CancelKey>,
    /// What the server reported, in its order, of a repeated name the last value.
    pub parameters: Vec<(String, String)>,
    /// `Idle` from any honest server.
    pub transaction_status: TransactionStatus,
}

#[derive(Debug)]
enum State {
    /// Before AuthenticationOk.
    Authenticating(Authenticating),
    /// Between it and ReadyForQuery.
    Settling(Session),
}

impl ServerLogin {
    /// Begins a login: gives the start-up message to send.
    ///
    /// # Errors
    /// [`ServerLoginError::Startup`]: what was asked for does not fit into a start-up message.
    pub fn start(
        request: &StartupRequest,
        secret: Option<ServerSecret>,
    ) -> Result<(Self, Vec<u8>), ServerLoginError> {
        let user = ("user", request.user.as_str());
        let database = ("database", request.database.as_str());
        let others = request.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let send = startup_message([user, database].into_iter().chain(others))?;
        let state = State::Authenticating(Authenticating::new(secret));
        Ok((Self { user: request.user.as_str().into(), messages: 0, state }, send))
    }

    /// Takes the server's next message. `random` must be fresh; SCRAM makes its nonce of it.
    ///
    /// **Costly** once per login where the server asks for SCRAM and the secret is a plain password: the
    /// server's iterations, at most [`crate::scram::MAX_ITERATIONS`].
    ///
    /// # Errors
    /// The login failed; the connection is to be closed. See [`ServerLoginError`] for whose fault it is.
    pub fn on_message(self, tag: u8, body: &[u8], random: &[u8; 32]) -> Result<ServerStep, ServerLoginError> {
        let Self { user, messages, state } = self;
        if body.len() > MAX_LOGIN_BODY_BYTES {
            return Err(ServerLoginError::TooLong { length: body.len() });
        }
        if messages >= MAX_LOGIN_MESSAGES {
            return Err(ServerLoginError::TooManyMessages);
        }
        match advance(state, &user, tag, body, random)? {
            Next::More(state, send) => {
                Ok(ServerStep::Continue { login: Self { user, messages: messages + 1, state }, send })
            }
            Next::Ready(ready) => Ok(ServerStep::Ready(ready)),
        }
    }
}

/// How a message was taken.
enum Next {
    More(State, Vec<u8>),
    Ready(ServerReady),
}

fn advance(
    state: State,
    user: &str,
    tag: u8,
    body: &[u8],
    random: &[u8; 32],
) -> Result<Next, ServerLoginError> {
    let quietly = |state| Ok(Next::More(state, Vec::new()));
    match (state, tag) {
        (_, tag::ERROR_RESPONSE) => Err(ServerLoginError::Refused(ErrorFields::parse(body))),
        // Nobody is there yet to read it.
        (state, tag::NOTICE_RESPONSE) => quietly(state),
        (state @ State::Authenticating(_), tag::NEGOTIATE_PROTOCOL_VERSION) => {
            // 3.0 is the oldest minor version; which options the server does not know is no concern.
            parse::negotiate_protocol_version(body).map(drop)?;
            quietly(state)
        }
        (State::Authenticating(state), tag::AUTHENTICATION) => {
            let request = parse::authentication(body)?;
            if request == Authentication::Ok {
                state.finish()?;
                return quietly(State::Settling(Session::default()));
            }
            let (state, send) = state.on_request(request, user, random)?;
            Ok(Next::More(State::Authenticating(state), send))
        }
        (State::Settling(mut session), tag::PARAMETER_STATUS) => {
            session.add_parameter(body)?;
            quietly(State::Settling(session))
        }
        (State::Settling(mut session), tag::BACKEND_KEY_DATA) => {
            session.set_key(body)?;
            quietly(State::Settling(session))
        }
        (State::Settling(session), tag::READY_FOR_QUERY) => {
            Ok(Next::Ready(session.ready(parse::ready_for_query(body)?)))
        }
        (State::Authenticating(_), got) => {
            Err(ServerLoginError::UnexpectedMessage { expected: "an authentication request", got })
        }
        (State::Settling(_), got) => {
            Err(ServerLoginError::UnexpectedMessage { expected: "parameters, a key or ReadyForQuery", got })
        }
    }
}
