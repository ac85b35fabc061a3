//! Why a client was not logged in.

use super::MAX_LOGIN_BODY_BYTES;
use crate::message::parse::MalformedMessage;
use crate::message::{Severity, error_response};
use crate::scram::ScramError;

/// A login that failed. `Display` is for the log; the client reads [`LoginError::client_text`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The password is wrong, or there is no such user; a client cannot tell which. Trying again with the
    /// same password does not help.
    #[error("password authentication failed for user {user:?}")]
    WrongPassword {
        /// As the client named it.
        user: String,
    },
    /// The user's stored secret is MD5 and the method is SCRAM. The configuration's fault.
    #[error(
        "user {user:?} has an MD5 secret, which the method scram-sha-256 cannot use: wrong password type"
    )]
    WrongPasswordType {
        /// As the client named it.
        user: String,
    },
    /// The caller gave a plain password where a verifier is needed (see [`super::needs_verifier`]).
    #[error("no SCRAM verifier was made of the password of user {user:?}")]
    VerifierMissing {
        /// As the client named it.
        user: String,
    },
    /// Another message than the login is at. The client's fault.
    #[error(
        "expected message '{}' during login, got '{}'", expected.escape_ascii(), got.escape_ascii()
    )]
    UnexpectedMessage {
        /// The tag wanted.
        expected: u8,
        /// The tag that came.
        got: u8,
    },
    /// The message is longer than any password accepted. The client's fault.
    #[error("login message of {length} bytes is longer than {MAX_LOGIN_BODY_BYTES}")]
    TooLong {
        /// Of the body, in bytes.
        length: usize,
    },
    /// The client chose a mechanism that was not offered.
    #[error("client selected an invalid SASL authentication mechanism")]
    Mechanism,
    /// The message is not what its tag promises. The client's fault.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// The SCRAM exchange broke the rules. The client's fault, save for a verifier of too many iterations.
    #[error(transparent)]
    Scram(#[from] ScramError),
}

impl LoginError {
    /// The SQLSTATE for the client.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::WrongPassword { .. } | Self::WrongPasswordType { .. } => "28P01",
            Self::VerifierMissing { .. } | Self::Scram(ScramError::Iterations { .. }) => "XX000",
            // As PostgreSQL.
            Self::Scram(ScramError::ChannelBindingStripped | ScramError::ChannelBindingMismatch) => "28000",
            Self::TooLong { .. }
            | Self::UnexpectedMessage { .. }
            | Self::Mechanism
            | Self::Malformed(_)
            | Self::Scram(_) => "08P01",
        }
    }

    /// What the client is told. It never says more than the client may know.
    #[must_use]
    pub fn client_text(&self) -> String {
        match self {
            // Written out, since `{:?}` would escape what is not ASCII.
            Self::WrongPassword { user } => format!("password authentication failed for user \"{user}\""),
            // The words of PgBouncer, which operators search for.
            Self::WrongPasswordType { .. } => "wrong password type".to_owned(),
            Self::VerifierMissing { .. } | Self::Scram(ScramError::Iterations { .. }) => {
                "bouncer config error".to_owned()
            }
            other => other.to_string(),
        }
    }

    /// The ErrorResponse for the client; the connection is to be closed after it.
    #[must_use]
    pub fn response(&self) -> Vec<u8> {
        error_response(Severity::Fatal, self.sqlstate(), &self.client_text(), None, None)
    }
}
