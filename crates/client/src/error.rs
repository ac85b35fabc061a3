//! Why something did not work.

use link::Code;
use std::borrow::Cow;
use std::io;
use std::time::Duration;

/// Why a link ended, or could not be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LinkError {
    /// The relay could not be reached, or broke off.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// What the system says.
        error: std::sync::Arc<io::Error>,
    },
    /// It is not a relay of this network, or speaks TLS otherwise.
    #[error("TLS: {0}")]
    Tls(String),
    /// The relay said, before TLS, that it has no room.
    #[error("the relay is full; it asks to wait {} ms", .0.as_millis())]
    Wait(Duration),
    /// The relay refused, or ended the connection.
    #[error("the relay says {code}: {cause}")]
    Refused {
        /// Why.
        code: Code,
        /// Why, for people.
        cause: String,
        /// When to come back, if it said so.
        retry_after: Option<Duration>,
    },
    /// The relay breaks the protocol.
    #[error("the relay breaks the protocol: {0}")]
    Protocol(Cow<'static, str>),
    /// Nothing came in time.
    #[error("the relay did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The HTTP proxy on the way does not connect.
    #[error("the HTTP proxy on the way: {0}")]
    Proxy(String),
    /// What was reached does not grant a WebSocket.
    #[error("the WebSocket: {0}")]
    WebSocket(Cow<'static, str>),
    /// Ended here.
    #[error("closed")]
    Closed,
}

impl LinkError {
    /// What is being done before there is a connection.
    pub(crate) const CONNECTING: &str = "connecting";

    pub(crate) fn io(what: &'static str, error: io::Error) -> Self {
        Self::Io { what, error: std::sync::Arc::new(error) }
    }

    /// When the relay wants to see this client again, if it said so.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Wait(wait) => Some(*wait),
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Coming back would change nothing: the owner is to be told.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code.is_final())
    }

    /// There was no connection at all.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Io { what, .. } if *what == Self::CONNECTING)
    }

    /// A bounded name for metrics and status.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Tls(_) => "tls",
            Self::Wait(_) => "busy",
            Self::Refused { code, .. } => code.label(),
            Self::Protocol(_) => "protocol_error",
            Self::Silent(_) => "idle",
            Self::Proxy(_) => "http_proxy",
            Self::WebSocket(_) => "websocket",
            Self::Closed => "closed",
        }
    }
}

/// Why a stream was not opened. Nothing has been sent to the target.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// Refused by the relay or the provider.
    #[error("{code}: {cause}")]
    Refused {
        /// Why.
        code: Code,
        /// Why, for people.
        cause: String,
        /// When to try again, if known.
        retry_after: Option<Duration>,
    },
    /// The provider has another relay.
    #[error("the provider is at {address}")]
    Moved {
        /// Where, `host:port`.
        address: String,
        /// The number of its start there.
        epoch: u64,
    },
    /// The link to the relay is gone.
    #[error("the link is gone: {0}")]
    Link(#[from] LinkError),
}

impl OpenError {
    pub(crate) fn refused(code: Code, cause: impl Into<String>) -> Self {
        Self::Refused { code, cause: cause.into(), retry_after: None }
    }

    /// The code, if one was given.
    #[must_use]
    pub const fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}
