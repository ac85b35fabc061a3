//! One server: a connection that is kept up by a task of its own, and a circuit. Callers wait for a connection only while the
//! first attempt is under way; once an attempt has failed, they fail at once until one succeeds. The attempts go on whether
//! anybody calls or not, at a pace that does not depend on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use overload::Backoff;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value, cmd};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::PING_EVERY;
use super::connect::{Connector, first_word};
use crate::CacheError;

/// The first and the greatest wait after a failed attempt.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const GREATEST_WAIT: Duration = Duration::from_secs(2);

/// Calls without an answer, one after the other, after which the connection is given up.
const MISSES: u32 = 3;

/// A ping is unanswered after this.
const PING_LIMIT: Duration = Duration::from_secs(1);

/// What came back, if it was not simply an answer.
#[derive(Debug)]
pub(super) enum Reply {
    Value(Value),
    /// The slot belongs to this address, from now on.
    Moved(String),
    /// This one command belongs there, after ASKING.
    Ask(String),
}

/// A server. Dropping the last one ends its task.
#[derive(Debug)]
pub(super) struct Node {
    address: String,
    state: watch::Receiver<State>,
    keeper: AbortHandle,
}

#[derive(Clone, Debug)]
enum State {
    Opening,
    Up(Arc<Line>),
    Down { until: Instant },
}

/// One connection and how it does; the next one begins anew.
#[derive(Debug)]
struct Line {
    connection: MultiplexedConnection,
    /// Calls without an answer since the last answer.
    misses: AtomicU32,
    answered: AtomicBool,
    given_up: Notify,
}

impl Node {
    pub(super) fn start(address: String, connector: Arc<Connector>) -> Self {
        let (sender, state) = watch::channel(State::Opening);
        let keeper = Keeper { address: address.clone(), connector, state: sender };
        Self { address, state, keeper: tokio::spawn(keeper.run()).abort_handle() }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Whether the last attempt to reach it has failed.
    pub(super) fn is_down(&self) -> bool {
        matches!(*self.state.borrow(), State::Down { .. })
    }

    pub(super) async fn call(
        &self,
        command: &Cmd,
        asking: bool,
        until: Instant,
    ) -> Result<Reply, CacheError> {
        let line = self.line(until).await?;
        let mut connection = line.connection.clone();
        let answer = if asking {
            let mut both = Pipeline::with_capacity(2);
            both.cmd("ASKING").add_command(command.clone());
            let answers = timeout_at(until, connection.send_packed_commands(&both, 1, 1)).await;
            answers.map(|answers| answers.map(|mut answers| answers.pop().unwrap_or_default()))
        } else {
            timeout_at(until, connection.send_packed_command(command)).await
        };
        let Ok(answer) = answer else {
            line.missed();
            return Err(CacheError::Deadline { limit_ms: 0 });
        };
        match answer.and_then(Value::extract_error) {
            Ok(value) => {
                line.answered();
                Ok(Reply::Value(value))
            }
            Err(error) => line.failed(&error),
        }
    }

    async fn line(&self, until: Instant) -> Result<Arc<Line>, CacheError> {
        let mut state = self.state.clone();
        loop {
            match &*state.borrow_and_update() {
                State::Up(line) => return Ok(Arc::clone(line)),
                State::Down { until } => {
                    let wait = until.saturating_duration_since(Instant::now());
                    let retry_after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
                    return Err(CacheError::Unavailable { retry_after_ms });
                }
                State::Opening => {}
            }
            match timeout_at(until, state.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(unavailable()),
                Err(_) => return Err(CacheError::Deadline { limit_ms: 0 }),
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Line {
    fn answered(&self) {
        self.misses.store(0, Ordering::Relaxed);
        self.answered.store(true, Ordering::Relaxed);
    }

    fn missed(&self) {
        if self.misses.fetch_add(1, Ordering::Relaxed) + 1 >= MISSES {
            self.given_up.notify_one();
        }
    }

    fn failed(&self, error: &RedisError) -> Result<Reply, CacheError> {
        if error.is_unrecoverable_error() {
            // The keeper sees the end of the connection by itself.
            return Err(unavailable());
        }
        self.answered();
        match (error.kind(), error.redirect_node()) {
            (ErrorKind::Server(ServerErrorKind::Moved), Some((to, _))) => Ok(Reply::Moved(to.to_owned())),
            (ErrorKind::Server(ServerErrorKind::Ask), Some((to, _))) => Ok(Reply::Ask(to.to_owned())),
            (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => {
                // No longer a primary: its name may lead elsewhere by now.
                self.given_up.notify_one();
                Err(unavailable())
            }
            (
                ErrorKind::Server(
                    ServerErrorKind::BusyLoading
                    | ServerErrorKind::ClusterDown
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::TryAgain,
                ),
                _,
            ) => Err(unavailable()),
            _ => Err(CacheError::Refused { code: first_word(error) }),
        }
    }
}

struct Keeper {
    address: String,
    connector: Arc<Connector>,
    state: watch::Sender<State>,
}

impl Keeper {
    async fn run(self) {
        let mut backoff = Backoff::new();
        let mut last_cause = String::new();
        loop {
            let cause = match self.connector.connection(&self.address).await {
                Ok((connection, driver)) => {
                    if !last_cause.is_empty() {
                        tracing::info!(node = self.address, "the cache's server answers again");
                        last_cause.clear();
                    }
                    let line = Arc::new(Line {
                        connection,
                        misses: AtomicU32::new(0),
                        answered: AtomicBool::new(false),
                        given_up: Notify::new(),
                    });
                    self.state.send_replace(State::Up(Arc::clone(&line)));
                    let abort = driver.abort_handle();
                    let broken = until_broken(&line, driver).await;
                    abort.abort();
                    if line.answered.load(Ordering::Relaxed) {
                        backoff.reset();
                        if matches!(broken, Broken::Closed) {
                            // It may be there again at once; callers wait for that as they do at the start.
                            self.state.send_replace(State::Opening);
                            continue;
                        }
                    }
                    broken.to_string()
                }
                Err(error) => error.to_string(),
            };
            let wait = backoff.failed(FIRST_WAIT, GREATEST_WAIT, fastrand::u64(..));
            self.state.send_replace(State::Down { until: Instant::now() + wait });
            if cause != last_cause {
                tracing::warn!(node = self.address, "the cache's server is not reachable: {cause}");
                last_cause = cause;
            }
            sleep(wait).await;
        }
    }
}

/// Until the connection ends, does not answer, or was given up by its callers.
async fn until_broken(line: &Line, mut driver: JoinHandle<()>) -> Broken {
    loop {
        tokio::select! {
            _ = &mut driver => return Broken::Closed,
            () = line.given_up.notified() => return Broken::Silent,
            () = sleep(PING_EVERY) => {}
        }
        let mut connection = line.connection.clone();
        match timeout(PING_LIMIT, connection.send_packed_command(&cmd("PING"))).await {
            Err(_) => return Broken::Silent,
            Ok(Err(error)) if error.is_unrecoverable_error() => return Broken::Closed,
            Ok(_) => line.answered(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the connection was closed")]
    Closed,
    #[error("it does not answer")]
    Silent,
}

pub(super) const fn unavailable() -> CacheError {
    CacheError::Unavailable { retry_after_ms: CacheError::SOON_MS }
}
