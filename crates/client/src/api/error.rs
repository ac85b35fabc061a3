//! Why a call of the api gave no answer.

use std::io;
use trust::api::ErrorAnswer;

/// A call that failed. Every call may be made again, unless [`ApiError::is_final`] says that it is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No connection: nobody there, or the network between. Try again by back-off.
    #[error("the api at {address} cannot be reached: {source}")]
    Unreachable {
        /// Whom we dialled.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody else answers there, or the certificate has expired: not the network that was meant. The server's side must be
    /// mended.
    #[error("{address} is not the api of this network: {cause}")]
    NotPinned {
        /// Whom we dialled.
        address: String,
        /// What TLS says.
        cause: String,
    },
    /// No answer in time. Try again by back-off.
    #[error("the api at {0} gave no answer in time")]
    Timeout(String),
    /// The connection broke. Try again by back-off.
    #[error("the connection to the api broke: {0}")]
    Broken(String),
    /// It answered, and refused.
    #[error("the api refused: {} ({})", .0.cause, label(.0))]
    Refused(ErrorAnswer),
    /// Its answer is none, or longer than is read. The server's fault.
    #[error("the api's answer makes no sense: {0}")]
    Malformed(String),
    /// What was to be asked cannot be. The caller's fault.
    #[error("this cannot be asked: {0}")]
    Unsendable(String),
}

impl ApiError {
    /// Whether asking the same again is of no use until somebody does something.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Refused(answer) => answer.code.is_final(),
            Self::Unsendable(_) => true,
            _ => false,
        }
    }

    /// When to come back, if the api said so, in ms.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Refused(answer) => answer.retry_after_ms,
            _ => None,
        }
    }

    /// The bounded kind, as a metric label.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::NotPinned { .. } => "not_pinned",
            Self::Timeout(_) => "timeout",
            Self::Broken(_) => "broken",
            Self::Refused(_) => "refused",
            Self::Malformed(_) => "malformed",
            Self::Unsendable(_) => "unsendable",
        }
    }
}

/// How the code stands in the JSON.
fn label(answer: &ErrorAnswer) -> String {
    serde_json::to_string(&answer.code).unwrap_or_default().trim_matches('"').to_owned()
}
