//! Why a server connection could not be opened, and what client, log and pacing hear of it.

use overload::cause::Cause;
use pgwire::connect::ServerLoginError;
use pgwire::frame::FrameError;
use pgwire::message::parse::MalformedMessage;
use pgwire::scram::ScramError;
use pooling::seam::{OpenFailure, Target};
use rustix::io::Errno;
use settings::pooler::ServerAddress;
use std::io;
use std::time::Duration;

/// A connect or login that failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The name of the host leads nowhere. Holds the host, so it is only for the log.
    #[error("{0}")]
    NoAddress(String),
    #[error("connect failed: {0}")]
    Connect(io::Error),
    #[error("connect failed: timeout")]
    ConnectTimeout,
    #[error("no login within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("{0}")]
    OurSide(io::Error),
    /// The connection failed during the login.
    #[error("server connection lost during login: {0}")]
    Lost(io::Error),
    #[error("server closed the connection during login")]
    Ended,
    /// `server_tls_sslmode` demands TLS.
    #[error("server refused SSL, which server_tls_sslmode demands")]
    TlsRefused,
    #[error("server answered the request for SSL with an error")]
    TlsError,
    #[error("server answered the request for SSL with '{}'", .0.escape_ascii())]
    TlsNonsense(u8),
    /// The handshake failed.
    #[error("TLS handshake error: {0}")]
    Tls(String),
    #[error(transparent)]
    Login(#[from] ServerLoginError),
    #[error("server sent nonsense during login: {0}")]
    Frame(#[from] FrameError),
    #[error("server sent a {0}")]
    Malformed(#[from] MalformedMessage),
    /// The control connection of a server's budget.
    #[error("the control connection failed: {0}")]
    Control(String),
    #[error("connect_query failed: {0}")]
    ConnectQuery(String),
    #[error("the configured MD5 password is not md5 and 32 hexadecimal digits")]
    BadMd5,
}

impl Failure {
    /// The answer to the engine.
    pub(super) fn into_answer(self, target: &Target) -> OpenFailure {
        let place = match &target.address {
            ServerAddress::Tcp { host, port } => format!("{host}:{port}"),
            ServerAddress::Unix { directory, port } => format!("{}/.s.PGSQL.{port}", directory.display()),
        };
        OpenFailure {
            cause: self.cause(),
            sqlstate: self.sqlstate(),
            client_text: self.client_text(),
            log_text: format!("{place}: {self}"),
        }
    }

    fn cause(&self) -> Cause {
        match self {
            Self::NoAddress(_) => Cause::NoAddress,
            Self::Connect(error) => cause_of_connect(error),
            Self::ConnectTimeout | Self::TimedOut(_) => Cause::TimedOut,
            Self::OurSide(_) => Cause::OurSide,
            Self::Lost(_) | Self::Ended => Cause::Crashed,
            Self::Login(error) => cause_of_login(error),
            // A person has to act: on a certificate, or on one of the two configurations.
            Self::TlsRefused | Self::Tls(_) => Cause::NotAllowed,
            Self::TlsError => Cause::Other,
            Self::Frame(_) | Self::Malformed(_) | Self::TlsNonsense(_) => Cause::Protocol,
            Self::ConnectQuery(_) | Self::Control(_) => Cause::Other,
            Self::BadMd5 => Cause::NotAllowed,
        }
    }

    fn sqlstate(&self) -> Option<String> {
        match self {
            Self::Login(ServerLoginError::Refused(fields)) => Some(fields.code.clone()),
            _ => None,
        }
    }

    /// The server's own words, or ours without address and names.
    fn client_text(&self) -> String {
        let words = match self {
            Self::Login(ServerLoginError::Refused(fields)) => return fields.message.clone(),
            Self::Connect(error) => return format!("connect failed: {}", reason(error)),
            Self::NoAddress(_) => "connect failed: the server's name cannot be resolved",
            Self::ConnectTimeout | Self::TimedOut(_) => "connect failed: timeout",
            Self::OurSide(_) => "connect failed: no resources left in the pooler",
            Self::Lost(_) | Self::Ended => "server closed the connection during login",
            Self::Login(
                ServerLoginError::Secret { .. }
                | ServerLoginError::Unsupported { .. }
                | ServerLoginError::Mechanism { .. },
            ) => "server login failed: the pooler has no secret that the server accepts",
            Self::Login(ServerLoginError::Startup(_)) => "server login failed: too many start-up parameters",
            Self::Login(_) | Self::Frame(_) | Self::Malformed(_) | Self::TlsNonsense(_) => {
                "server login failed: the server does not follow the protocol"
            }
            Self::TlsRefused => "server login failed: server refused SSL",
            Self::TlsError => "server login failed: the server cannot start a session",
            Self::Tls(_) => "server login failed: TLS handshake error",
            Self::ConnectQuery(_) => "connect_query failed",
            Self::Control(_) => "the control connection failed",
            Self::BadMd5 => "server login failed: the configured password is malformed",
        };
        words.to_owned()
    }
}

fn cause_of_connect(error: &io::Error) -> Cause {
    match Errno::from_io_error(error) {
        // A Unix socket's name is gone while its server is down; a full backlog says "again".
        Some(Errno::CONNREFUSED | Errno::CONNRESET | Errno::NOENT | Errno::AGAIN) => Cause::Refused,
        Some(Errno::TIMEDOUT) => Cause::TimedOut,
        Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN) => Cause::Unreachable,
        _ => Cause::OurSide,
    }
}

fn cause_of_login(error: &ServerLoginError) -> Cause {
    match error {
        ServerLoginError::Refused(fields) => Cause::from_sqlstate(&fields.code, &fields.message),
        ServerLoginError::Secret { .. }
        | ServerLoginError::Unsupported { .. }
        | ServerLoginError::Mechanism { .. }
        | ServerLoginError::Startup(_) => Cause::NotAllowed,
        // Some servers refuse a password inside the exchange.
        ServerLoginError::Scram(ScramError::Server(_)) => Cause::WrongPassword,
        _ => Cause::Protocol,
    }
}

/// The system's words without its numbers.
fn reason(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::CONNREFUSED) => "connection refused",
        Some(Errno::NOENT) => "no such file or directory",
        Some(Errno::AGAIN) => "the server's queue of connections is full",
        Some(Errno::TIMEDOUT) => "timeout",
        Some(Errno::NETUNREACH | Errno::NETDOWN) => "network is unreachable",
        Some(Errno::HOSTUNREACH | Errno::HOSTDOWN) => "no route to host",
        Some(Errno::CONNRESET) => "connection reset by peer",
        Some(Errno::ACCESS | Errno::PERM) => "permission denied",
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL) => {
            "no resources left in the pooler"
        }
        _ => "the system refused it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgwire::message::{ErrorFields, Severity};
    use pooling::seam::ServerSecret;
    use std::path::PathBuf;

    fn target() -> Target {
        Target {
            address: ServerAddress::Tcp { host: "db.internal".to_owned(), port: 5432 },
            database: "app".to_owned(),
            user: "alice".to_owned(),
            secret: ServerSecret::None,
            parameters: Vec::new(),
            connect_query: None,
        }
    }

    fn connect(errno: Errno) -> Failure {
        Failure::Connect(io::Error::from(errno))
    }

    #[test]
    fn a_refused_port_is_told_without_the_address_and_logged_with_it() {
        let answer = connect(Errno::CONNREFUSED).into_answer(&target());
        assert_eq!(answer.cause, Cause::Refused);
        assert_eq!(answer.client_text, "connect failed: connection refused");
        assert!(answer.log_text.contains("db.internal:5432"), "{}", answer.log_text);
    }

    #[test]
    fn the_server_speaks_for_itself() {
        let fields = ErrorFields::new(Severity::Fatal, "53300", "sorry, too many clients already");
        let answer = Failure::from(ServerLoginError::Refused(fields)).into_answer(&target());
        assert_eq!(answer.cause, Cause::TooManyConnections { scope: overload::cause::Scope::Server });
        assert_eq!(answer.sqlstate.as_deref(), Some("53300"));
        assert_eq!(answer.client_text, "sorry, too many clients already");
    }

    #[test]
    fn no_text_for_clients_holds_an_address_or_a_name() {
        let target = Target {
            address: ServerAddress::Unix { directory: PathBuf::from("/run/db.internal"), port: 5432 },
            ..target()
        };
        let failures = [
            Failure::NoAddress("db.internal has no address".to_owned()),
            connect(Errno::NOENT),
            connect(Errno::HOSTUNREACH),
            Failure::ConnectTimeout,
            Failure::TimedOut(Duration::from_secs(15)),
            Failure::Lost(io::Error::other("db.internal")),
            Failure::Ended,
            Failure::ConnectQuery("alice".to_owned()),
        ];
        for failure in failures {
            let answer = failure.into_answer(&target);
            for word in ["db.internal", "alice", "5432", "os error"] {
                assert!(!answer.client_text.contains(word), "{}", answer.client_text);
            }
        }
    }

    #[test]
    fn out_of_descriptors_is_our_side_and_a_missing_unix_socket_is_not() {
        assert_eq!(connect(Errno::MFILE).cause(), Cause::OurSide);
        assert_eq!(connect(Errno::NOENT).cause(), Cause::Refused);
        assert_eq!(connect(Errno::NETUNREACH).cause(), Cause::Unreachable);
    }
}
