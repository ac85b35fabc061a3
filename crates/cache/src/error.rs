//! Why the cache gave no answer.

/// Why a call gave no answer. None of them is a reason to stop: the caller goes on without the cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// The server is not reachable, and is tried again by itself. Whether a call that was under way has taken effect is unknown.
    #[error("the cache is not reachable; the next attempt is in {retry_after_ms} ms")]
    Unavailable {
        /// When it is tried again.
        retry_after_ms: u64,
    },
    /// No answer in time. Whether the call has taken effect is unknown.
    #[error("the cache gave no answer within {limit_ms} ms")]
    Deadline {
        /// The deadline of a call.
        limit_ms: u64,
    },
    /// As many calls as may be are under way. Nothing was sent.
    #[error("{limit} calls of the cache are under way already")]
    Busy {
        /// How many may be.
        limit: usize,
    },
    /// There is no room, and nothing in it may be thrown out.
    #[error("the cache is full")]
    Full,
    /// A value beyond the bound.
    #[error("a value of more than {limit} bytes does not go into the cache")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// The server refused: its configuration or rights are at fault, and trying again does not help.
    #[error("the cache's server refused: {code}")]
    Refused {
        /// The first word of its error.
        code: String,
    },
    /// The server answered in a shape that the command does not have.
    #[error("the cache's server gave an answer that cannot be read")]
    Unexpected,
}

impl CacheError {
    /// The time that a refused call names where nobody knows better, ms.
    pub(crate) const SOON_MS: u64 = 100;

    /// A word of a bounded set, for metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "unavailable",
            Self::Deadline { .. } => "deadline",
            Self::Busy { .. } => "busy",
            Self::Full => "full",
            Self::TooLarge { .. } => "too_large",
            Self::Refused { .. } => "refused",
            Self::Unexpected => "unexpected",
        }
    }

    /// When another try may help, ms; none if it does not.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Unavailable { retry_after_ms } => Some(*retry_after_ms),
            Self::Deadline { .. } | Self::Busy { .. } | Self::Full => Some(Self::SOON_MS),
            Self::TooLarge { .. } | Self::Refused { .. } | Self::Unexpected => None,
        }
    }
}
