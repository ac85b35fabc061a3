//! Why a server connection was closed.

/// A bounded set, used as metric label and in the log (`closing because: …`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum CloseCause {
    /// The client left in the middle of a message.
    ClientLeftMidMessage,
    /// `client_disconnect = close`, or replication.
    ClientLeftPolicy,
    /// The abandoned answer exceeded its limit of bytes or time.
    DrainLimit,
    /// A reply that nothing explains.
    Desync,
    /// The database's definition changed.
    ConfigurationChanged,
    /// Closed to make room under a shared limit.
    Evicted,
    /// `server_idle_timeout`.
    IdleTimeout,
    /// `server_lifetime`.
    Lifetime,
    /// The server closed the connection, or it failed.
    ServerClosed,
    /// The reset or the test before use failed.
    ResetFailed,
    /// The pool is to be smaller.
    PoolShrunk,
    /// The pooler is stopping.
    Shutdown,
}

impl CloseCause {
    /// How many there are.
    pub const COUNT: usize = 12;

    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::ClientLeftMidMessage,
        Self::ClientLeftPolicy,
        Self::DrainLimit,
        Self::Desync,
        Self::ConfigurationChanged,
        Self::Evicted,
        Self::IdleTimeout,
        Self::Lifetime,
        Self::ServerClosed,
        Self::ResetFailed,
        Self::PoolShrunk,
        Self::Shutdown,
    ];

    /// It happens to connections as they age, and tells of no trouble.
    #[must_use]
    pub const fn is_routine(self) -> bool {
        matches!(self, Self::IdleTimeout | Self::Lifetime)
    }

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ClientLeftMidMessage => "client_left_mid_message",
            Self::ClientLeftPolicy => "client_left_policy",
            Self::DrainLimit => "drain_limit",
            Self::Desync => "desync",
            Self::ConfigurationChanged => "configuration_changed",
            Self::Evicted => "evicted",
            Self::IdleTimeout => "idle_timeout",
            Self::Lifetime => "lifetime",
            Self::ServerClosed => "server_closed",
            Self::ResetFailed => "reset_failed",
            Self::PoolShrunk => "pool_shrunk",
            Self::Shutdown => "shutdown",
        }
    }

    /// The log text; PgBouncer's where it has one.
    #[must_use]
    pub const fn log_text(self) -> &'static str {
        match self {
            Self::ClientLeftMidMessage => "client disconnect in the middle of a message",
            Self::ClientLeftPolicy => "client disconnect while server was not ready",
            Self::DrainLimit => "cancel_wait_timeout",
            Self::Desync => "server sent an unexpected message",
            Self::ConfigurationChanged => "database configuration changed",
            Self::Evicted => "evicted",
            Self::IdleTimeout => "server idle timeout",
            Self::Lifetime => "server lifetime over",
            Self::ServerClosed => "server conn crashed?",
            Self::ResetFailed => "reset query failed",
            Self::PoolShrunk => "pool size reduced",
            Self::Shutdown => "server shutting down",
        }
    }
}
