//! Why a pool stands still: its clients wait, and nobody gets an answer.

use overload::Moment;

/// The cause. The set is closed: metric label, and part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallCause {
    /// Every server that works waits for a lock behind somebody (`SHOW LOCKS`).
    AllLocked,
    /// Every server works on a query, while the database answers other pools.
    AllRunning,
    /// Every server is being drained, reset or tested.
    Cleaning,
    /// Clients hold every server and do not use it.
    HeldByClients,
    /// No server can be opened: attempts fail.
    LoginsFailing,
    /// The first server is logging in, and does not get there.
    LoginsPending,
    /// There is no server, and none is being opened yet.
    NoServer,
    /// Other pools have all that the database or the user may have (`max_db_connections`, `max_user_connections`).
    SharedLimit,
    /// Every server owes an answer, and the database has answered no pool: it has stopped, or the way to it has.
    ServerSilent,
}

impl StallCause {
    /// Its name.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::AllLocked => "all_locked",
            Self::AllRunning => "all_running",
            Self::Cleaning => "cleaning",
            Self::HeldByClients => "held_by_clients",
            Self::LoginsFailing => "logins_failing",
            Self::LoginsPending => "logins_pending",
            Self::NoServer => "no_server",
            Self::SharedLimit => "shared_limit",
            Self::ServerSilent => "server_silent",
        }
    }
}

/// How a stall has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallEnd {
    /// A server answered.
    Answered,
    /// Everybody has given up, and nobody has come since.
    NobodyWaits,
    /// The pool is no longer in the configuration.
    Removed,
}

impl StallEnd {
    /// Its name.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NobodyWaits => "nobody_waits",
            Self::Removed => "removed",
        }
    }
}

/// What was found out about a pool that stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub(crate) cause: StallCause,
    /// In full, for people.
    pub(crate) detail: String,
}

/// A pool stands still.
#[derive(Debug)]
pub(crate) struct Stall {
    /// From when on somebody waited and nobody got an answer.
    pub(crate) began: Moment,
    pub(crate) explanation: Explanation,
}

/// When a pool's clients have asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The first who waited after the last answer.
    pub(crate) first: Moment,
    /// The last who began to wait.
    pub(crate) last: Moment,
}
