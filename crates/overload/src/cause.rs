//! What a failed connect or login to a server means, and how long to rest after it.
//!
//! The codes are those of the PostgreSQL manual, appendix A; the texts those of its postmaster and `postinit.c`.

use std::time::Duration;

/// Why a server connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The host answers, but nobody listens on the port: stopped, or between stop and start.
    Refused,
    /// No route to the host or network.
    Unreachable,
    /// The name of the host could not be resolved.
    NoAddress,
    /// No answer within the limit of the connect or of the login.
    TimedOut,
    /// The server runs but does not take logins yet (57P03).
    StartingUp,
    /// The server is going down (57P01, 57P02, and 57P03 with that text).
    ShuttingDown,
    /// All connection slots of that scope are taken (53300).
    TooManyConnections {
        /// Whose slots are used up.
        scope: Scope,
    },
    /// The database does not exist, or no longer (3D000, 57P04).
    NoSuchDatabase,
    /// The password was not accepted (28P01).
    WrongPassword,
    /// No such role, no line in `pg_hba.conf`, or no CONNECT privilege (the rest of class 28, 42501).
    NotAllowed,
    /// The server closed the connection in the middle of the login, without saying why.
    Crashed,
    /// The server's bytes are not the protocol, or it does not speak our version of it (0A000).
    Protocol,
    /// It failed before a byte was sent, on our side: no descriptor, no port, no memory.
    OurSide,
    /// The server refused with a code that is none of the above.
    Other,
}

/// Whose connection slots are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `max_connections` of the server, or what is left of it is reserved.
    Server,
    /// `CONNECTION LIMIT` of the role.
    Role,
    /// `CONNECTION LIMIT` of the database.
    Database,
}

impl Cause {
    /// Every cause, for tables and metrics that have one entry for each.
    pub const ALL: [Self; 16] = [
        Self::Refused,
        Self::Unreachable,
        Self::NoAddress,
        Self::TimedOut,
        Self::StartingUp,
        Self::ShuttingDown,
        Self::TooManyConnections { scope: Scope::Server },
        Self::TooManyConnections { scope: Scope::Role },
        Self::TooManyConnections { scope: Scope::Database },
        Self::NoSuchDatabase,
        Self::WrongPassword,
        Self::NotAllowed,
        Self::Crashed,
        Self::Protocol,
        Self::OurSide,
        Self::Other,
    ];

    /// What an ErrorResponse during login means. The code decides; the text only refines it, because a server may
    /// speak another language.
    #[must_use]
    pub fn from_sqlstate(code: &str, message: &str) -> Self {
        match code {
            "57P03" if message.contains("shutting down") => Self::ShuttingDown,
            "57P03" => Self::StartingUp,
            "57P01" | "57P02" => Self::ShuttingDown,
            "53300" => Self::TooManyConnections { scope: Scope::from_message(message) },
            "3D000" | "57P04" => Self::NoSuchDatabase,
            "28P01" => Self::WrongPassword,
            "42501" => Self::NotAllowed,
            "0A000" => Self::Protocol,
            _ if code.starts_with("28") => Self::NotAllowed,
            _ => Self::Other,
        }
    }

    /// Waiting does not help and a person has to act: the clients that wait hear the server's error at once.
    #[must_use]
    pub const fn is_permanent(self) -> bool {
        matches!(self, Self::NoSuchDatabase | Self::WrongPassword | Self::NotAllowed)
    }

    /// The next login to that server would meet the same, whatever its user and database. If not, the server has
    /// answered and only the pool that asked must rest: one wrong password must not slow down the neighbours.
    #[must_use]
    pub const fn concerns_whole_server(self) -> bool {
        match self {
            Self::Refused
            | Self::Unreachable
            | Self::NoAddress
            | Self::TimedOut
            | Self::StartingUp
            | Self::ShuttingDown
            | Self::TooManyConnections { scope: Scope::Server }
            | Self::Crashed
            | Self::Protocol
            | Self::OurSide => true,
            Self::TooManyConnections { scope: Scope::Role | Scope::Database }
            | Self::NoSuchDatabase
            | Self::WrongPassword
            | Self::NotAllowed
            | Self::Other => false,
        }
    }

    /// The name in metrics and logs. The set is closed.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::NoAddress => "no_address",
            Self::TimedOut => "timed_out",
            Self::StartingUp => "starting_up",
            Self::ShuttingDown => "shutting_down",
            Self::TooManyConnections { scope: Scope::Server } => "too_many_connections",
            Self::TooManyConnections { scope: Scope::Role } => "too_many_connections_for_role",
            Self::TooManyConnections { scope: Scope::Database } => "too_many_connections_for_database",
            Self::NoSuchDatabase => "no_such_database",
            Self::WrongPassword => "wrong_password",
            Self::NotAllowed => "not_allowed",
            Self::Crashed => "crashed",
            Self::Protocol => "protocol",
            Self::OurSide => "our_side",
            Self::Other => "other",
        }
    }

    /// How long to rest after the first such failure.
    #[must_use]
    pub const fn first_wait(self) -> Duration {
        self.waits().0
    }

    /// The longest rest, however often it fails.
    #[must_use]
    pub const fn greatest_wait(self) -> Duration {
        self.waits().1
    }

    /// The first and the greatest wait.
    const fn waits(self) -> (Duration, Duration) {
        let (first_ms, greatest_ms) = match self {
            // A restart takes about a second, and a refused connect costs the server nothing.
            Self::Refused | Self::Unreachable => (50, 1_000),
            // Resolvers are shared by many and cache a failure for seconds.
            Self::NoAddress => (200, 5_000),
            // The attempt itself has already waited for its whole limit.
            Self::TimedOut => (100, 2_000),
            // Ends at a moment nobody tells us; an attempt is answered by the postmaster alone.
            Self::StartingUp => (50, 250),
            // It comes back as "refused" or as a restart; a smart shutdown may take long.
            Self::ShuttingDown => (100, 1_000),
            // Each attempt forks a process on a server that is full. Slots come free when others leave.
            Self::TooManyConnections { .. } => (200, 5_000),
            // A person has to act. What is left is only to notice that he has.
            Self::NoSuchDatabase | Self::WrongPassword | Self::NotAllowed => (1_000, 15_000),
            // A crash of one backend restarts the whole server, mostly within a second.
            Self::Crashed => (50, 1_000),
            // Something else listens there, or TLS and plain are mixed up: a person has to act, or a deploy is under way.
            Self::Protocol => (500, 10_000),
            // A descriptor comes free as soon as some client leaves.
            Self::OurSide => (100, 1_000),
            // Not known, so neither fast nor for good.
            Self::Other => (200, 5_000),
        };
        (Duration::from_millis(first_ms), Duration::from_millis(greatest_ms))
    }
}

impl Scope {
    /// Whose slots the text of a 53300 speaks of. By its beginning: the rest holds a name that somebody else chose.
    fn from_message(message: &str) -> Self {
        if message.starts_with("too many connections for role") {
            Self::Role
        } else if message.starts_with("too many connections for database") {
            Self::Database
        } else {
            Self::Server
        }
    }
}

#[cfg(test)]
mod tests;
