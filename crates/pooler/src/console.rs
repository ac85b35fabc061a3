//! The admin console: the database `pgbouncer`, spoken in the simple query protocol.
//!
//! Columns, their order and their types are those of PgBouncer, so that what reads its console reads this one; columns
//! of our own stand behind them. What PgBouncer's console can do and this one cannot yet is refused by name.

mod averages;
mod command;
#[cfg(test)]
pub(crate) mod fixtures;
mod session;
mod sessions;
mod show;
pub mod source;
mod table;
#[cfg(test)]
mod tests;

use crate::control::EngineHandle;
use crate::tls::suites;
use crate::truth::{ConfigTruth, TruthReport};
use averages::StatsHistory;
use overload::Moment;
use pooling::seam::ConsoleLogin;
use pooling::snapshot::PoolRow;
use sessions::Sessions;
use source::Source;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tls::TlsSession;
use tls::TlsStream;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub use session::{MAX_MESSAGE_BYTES, MAX_STATEMENTS};

/// Most console sessions at once; one more is refused. They count against no pool.
pub const MAX_CONSOLE_SESSIONS: usize = 64;

/// Longest wait for a RELOAD.
const RELOAD_LIMIT: Duration = Duration::from_secs(30);

/// The socket of a console session.
#[derive(Debug)]
pub enum ConsoleStream {
    /// TCP.
    Tcp(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsConsole>),
    /// Unix socket.
    Unix(UnixStream),
}

/// The socket of a console session over TLS.
#[derive(Debug)]
pub struct TlsConsole {
    stream: TlsStream<TcpStream>,
    /// As SHOW CLIENTS prints it.
    described: String,
}

impl ConsoleStream {
    /// With the TLS that the data plane has begun. Over a Unix socket there is none.
    pub(crate) fn secured(self, session: TlsSession) -> Self {
        match self {
            Self::Tcp(stream) => {
                let described = suites::describe(&session);
                Self::Tls(Box::new(TlsConsole { stream: TlsStream::new(stream, session), described }))
            }
            other => other,
        }
    }
}

/// A login that the data plane has handed over. The client has been sent AuthenticationOk, nothing after it.
#[derive(Debug)]
pub struct ConsoleSession {
    /// The socket.
    pub stream: ConsoleStream,
    /// Who it is.
    pub login: ConsoleLogin,
}

/// Asks the owner of the configuration file to read it again and put it in force, as SIGHUP does.
#[derive(Debug)]
pub struct ReloadRequest {
    /// What came of it; the error is for the log and says what is wrong with the file.
    pub answer: oneshot::Sender<Result<ReloadReport, String>>,
}

/// What a RELOAD found worth saying.
#[derive(Clone, Debug, Default)]
pub struct ReloadReport {
    /// Shown as notices, such as "listen_port needs a restart".
    pub notes: Vec<String>,
}

/// What all console sessions share.
#[derive(Debug)]
pub struct ConsoleContext<S = EngineHandle> {
    source: S,
    reload: mpsc::Sender<ReloadRequest>,
    version: &'static str,
    born: Instant,
    sessions: Sessions,
    history: Mutex<StatsHistory>,
    truth: Option<Arc<ConfigTruth>>,
}

impl<S: Source> ConsoleContext<S> {
    /// `reload` leads to whoever owns the configuration file; `version` is holdfast's, as `0.1.0`.
    #[must_use]
    pub fn new(source: S, reload: mpsc::Sender<ReloadRequest>, version: &'static str) -> Self {
        Self {
            source,
            reload,
            version,
            born: Instant::now(),
            sessions: Sessions::default(),
            history: Mutex::new(StatsHistory::new(Moment::ORIGIN)),
            truth: None,
        }
    }

    /// With a file behind it, which may change.
    #[must_use]
    pub fn with_truth(self, truth: Arc<ConfigTruth>) -> Self {
        Self { truth: Some(truth), ..self }
    }

    /// Whether what runs is what the file says; none without a file.
    pub(crate) async fn truth(&self) -> Option<TruthReport> {
        self.truth.as_ref()?.report().await
    }

    /// Keeps the counters for the averages of `SHOW STATS` if the last that were kept are `stats_period` old.
    /// Whoever has fresh rows calls it, so that no timer has to: an idle process does not tick.
    pub fn observe(&self, pools: &[PoolRow], stats_period: Duration) {
        let totals = averages::per_database(pools, self.sessions.totals());
        self.history.lock().unwrap_or_else(PoisonError::into_inner).observe(
            self.now(),
            stats_period,
            &totals,
        );
    }

    fn now(&self) -> Moment {
        Moment::ORIGIN + self.born.elapsed()
    }
}

/// Speaks with one client until it leaves. Never fails: what goes wrong ends the session.
pub async fn serve<S: Source>(session: ConsoleSession, context: Arc<ConsoleContext<S>>) {
    let ended = match session.stream {
        ConsoleStream::Tcp(stream) => session::run(stream, session.login, String::new(), &context).await,
        ConsoleStream::Tls(tls) => session::run(tls.stream, session.login, tls.described, &context).await,
        ConsoleStream::Unix(stream) => session::run(stream, session.login, String::new(), &context).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "console session ended");
    }
}

/// The wall clock, for times that people read.
#[expect(clippy::disallowed_methods, reason = "no rule depends on it; it is only shown")]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}
