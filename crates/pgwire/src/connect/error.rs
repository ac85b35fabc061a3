//! Why we were not logged in.

use super::{MAX_LOGIN_BODY_BYTES, MAX_LOGIN_MESSAGES, MAX_SERVER_PARAMETER_BYTES, MAX_SERVER_PARAMETERS};
use crate::message::ErrorFields;
use crate::message::parse::MalformedMessage;
use crate::scram::ScramError;
use crate::startup::StartupError;

/// A login at a server that failed. None of the texts holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerLoginError {
    /// The server said no; its SQLSTATE tells whether a retry can help.
    #[error("server refused the login: {0}")]
    Refused(ErrorFields),
    /// The server asks for a proof that we have no secret for. The configuration's fault; a retry cannot help.
    #[error("server asks user {user:?} for {method}, which needs {needed}; given was {have}")]
    Secret {
        /// Who logs in.
        user: String,
        /// As `pg_hba.conf` names it.
        method: &'static str,
        /// What would do.
        needed: &'static str,
        /// What was given.
        have: &'static str,
    },
    /// A method not spoken here. A retry cannot help.
    #[error(
        "server asks for authentication of kind {kind}, which is not supported: only trust, password, md5 and \
         scram-sha-256 are"
    )]
    Unsupported {
        /// The number on the wire.
        kind: u32,
    },
    /// No SASL mechanism in common. A retry cannot help.
    #[error("server offers the SASL mechanisms {offered:?}, only SCRAM-SHA-256 is supported")]
    Mechanism {
        /// Parted by spaces.
        offered: String,
    },
    /// The server did not prove that it knows the password's verifier, yet declared success: perhaps an
    /// impostor. A retry is safe and rarely helps.
    #[error(
        "server declared success before it proved itself by SCRAM, it may not be the server it claims to be"
    )]
    Unproven,
    /// An authentication request that does not belong there. The server's fault.
    #[error("server sent an authentication request out of order")]
    OutOfOrder,
    /// A message that does not belong into a login. The server's fault.
    #[error("expected {expected} from the server during login, got message '{}'", got.escape_ascii())]
    UnexpectedMessage {
        /// What would have been right.
        expected: &'static str,
        /// The tag that came.
        got: u8,
    },
    /// The message is not what its tag promises. The server's fault.
    #[error("server sent a {0}")]
    Malformed(#[from] MalformedMessage),
    /// The SCRAM exchange broke the rules. The server's fault.
    #[error(transparent)]
    Scram(#[from] ScramError),
    /// A message longer than any that belongs into a login. The server's fault.
    #[error("server sent a login message of {length} bytes, more than {MAX_LOGIN_BODY_BYTES}")]
    TooLong {
        /// Of the body, in bytes.
        length: usize,
    },
    /// The login does not come to an end. The server's fault.
    #[error("server sent more than {MAX_LOGIN_MESSAGES} messages without finishing the login")]
    TooManyMessages,
    /// More parameters than are kept. The server's fault.
    #[error(
        "server reported more than {MAX_SERVER_PARAMETERS} parameters or {MAX_SERVER_PARAMETER_BYTES} bytes of them"
    )]
    TooManyParameters,
    /// What was asked for does not fit into a start-up message. The caller's or the configuration's fault.
    #[error("cannot ask the server for a session: {0}")]
    Startup(#[from] StartupError),
}
