//! What can go wrong on the way to the database and in it.

use tokio_postgres::error::SqlState;

/// How long to stay away after an error that says no time of its own, ms.
const RETRY_AFTER_MS: u64 = 1_000;

/// An error of this room. Its text is for the operator's log; a peer gets a text of the role's own.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// As many callers wait for a connection as may: nothing was begun.
    #[error("{waiting} callers wait for a connection to the database already")]
    QueueFull {
        /// The bound.
        waiting: usize,
    },
    /// No connection was free in time: nothing was begun.
    #[error("no connection to the database was free within {limit_ms} ms")]
    AcquireDeadline {
        /// The limit.
        limit_ms: u64,
    },
    /// No connection can be made: nothing was begun.
    #[error("the database cannot be reached: {reason}")]
    Unreachable {
        /// What the attempt ran into.
        reason: String,
        /// When the next attempt is made.
        retry_after_ms: u64,
    },
    /// The work took too long and was taken back, unless it was being committed at that moment.
    #[error("{work} took longer than {limit_ms} ms and was cancelled")]
    StatementDeadline {
        /// What was done.
        work: &'static str,
        /// The limit.
        limit_ms: u64,
    },
    /// The pool was closed: the process is about to end.
    #[error("the pool of database connections is closed")]
    PoolClosed,
    /// The connection broke in the middle of the work; whether it was committed is not known.
    #[error("the connection to the database broke during {work}: {reason}")]
    Broken {
        /// What was done.
        work: &'static str,
        /// What the driver says.
        reason: String,
    },
    /// The server refused a statement; nothing of it stands.
    #[error("the database refused {work}: {code}: {message}")]
    Refused {
        /// What was done.
        work: &'static str,
        /// SQLSTATE.
        code: String,
        /// The server's text.
        message: String,
        /// Whether the same again may succeed (locks, deadlocks, shutdown, a full server).
        passing: bool,
    },
    /// What the database holds is not what was written: a fault of this room or of someone who changed it by hand.
    #[error("the database holds something that cannot be: {what}")]
    Corrupt {
        /// What was read.
        what: &'static str,
    },
    /// What the caller asks for breaks a bound.
    #[error("{what}")]
    Invalid {
        /// Which.
        what: &'static str,
    },
}

/// The kind of an error: a metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// See [`StoreError::QueueFull`].
    QueueFull,
    /// See [`StoreError::AcquireDeadline`].
    AcquireDeadline,
    /// See [`StoreError::Unreachable`].
    Unreachable,
    /// See [`StoreError::StatementDeadline`].
    StatementDeadline,
    /// See [`StoreError::PoolClosed`].
    PoolClosed,
    /// See [`StoreError::Broken`].
    Broken,
    /// See [`StoreError::Refused`].
    Refused,
    /// See [`StoreError::Corrupt`].
    Corrupt,
    /// See [`StoreError::Invalid`].
    Invalid,
}

impl ErrorKind {
    /// The label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::AcquireDeadline => "acquire_deadline",
            Self::Unreachable => "unreachable",
            Self::StatementDeadline => "statement_deadline",
            Self::PoolClosed => "pool_closed",
            Self::Broken => "broken",
            Self::Refused => "refused",
            Self::Corrupt => "corrupt",
            Self::Invalid => "invalid",
        }
    }
}

impl StoreError {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::QueueFull { .. } => ErrorKind::QueueFull,
            Self::AcquireDeadline { .. } => ErrorKind::AcquireDeadline,
            Self::Unreachable { .. } => ErrorKind::Unreachable,
            Self::StatementDeadline { .. } => ErrorKind::StatementDeadline,
            Self::PoolClosed => ErrorKind::PoolClosed,
            Self::Broken { .. } => ErrorKind::Broken,
            Self::Refused { .. } => ErrorKind::Refused,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Invalid { .. } => ErrorKind::Invalid,
        }
    }

    /// When trying again may help; `None`: the same again fails again.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Unreachable { retry_after_ms, .. } => Some(*retry_after_ms),
            Self::QueueFull { .. }
            | Self::AcquireDeadline { .. }
            | Self::StatementDeadline { .. }
            | Self::Broken { .. }
            | Self::Refused { passing: true, .. } => Some(RETRY_AFTER_MS),
            Self::PoolClosed | Self::Refused { .. } | Self::Corrupt { .. } | Self::Invalid { .. } => None,
        }
    }

    /// Whether it is certain that nothing was done.
    #[must_use]
    pub fn nothing_was_done(&self) -> bool {
        !matches!(self, Self::Broken { .. } | Self::StatementDeadline { .. })
    }

    /// The database, or the way to it, gives no answer: what it would say is not known. Neither a refusal nor a fault of ours.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        match self {
            Self::QueueFull { .. }
            | Self::AcquireDeadline { .. }
            | Self::Unreachable { .. }
            | Self::StatementDeadline { .. }
            | Self::PoolClosed
            | Self::Broken { .. } => true,
            Self::Refused { passing, .. } => *passing,
            Self::Corrupt { .. } | Self::Invalid { .. } => false,
        }
    }

    pub(crate) fn from_driver(work: &'static str, error: &tokio_postgres::Error) -> Self {
        let Some(refusal) = error.as_db_error() else {
            return Self::Broken { work, reason: reason(error) };
        };
        Self::Refused {
            work,
            code: refusal.code().code().to_owned(),
            message: refusal.message().to_owned(),
            passing: is_passing(refusal.code()),
        }
    }
}

/// The driver's text with what it stands on; it holds no values.
pub(crate) fn reason(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn is_passing(code: &SqlState) -> bool {
    // Classes 08 connection, 40 rollback, 53 resources, 57 operator, 58 system; and a lock that was not free in time.
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "40" | "53" | "57" | "58") || *code == SqlState::LOCK_NOT_AVAILABLE
}
