//! The services' own pool: a caller that stops costs no connection.
//!
//! Work runs in a task of its own that owns the connection. A caller that stops (its future is dropped, at BEGIN or in the
//! middle of a statement) only closes a channel: the task sees that, takes back what is under way (waits a moment,
//! then cancels, then makes sure by a round trip), and gives the connection back. It is closed only if the server does not
//! even answer to that. A caller that stops while it waits in the line leaves the line, and costs nothing at all.
//!
//! Every wait has a limit: a place in the line ([`PoolOptions::most_waiting`]), a connection ([`PoolOptions::acquire_ms`]),
//! the work ([`PoolOptions::work_ms`]).

mod gate;
mod job;
mod options;
mod status;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

pub use crate::session::Session;
pub use options::{InvalidPool, PoolOptions};
pub use status::PoolStatus;

use crate::session::Work;
use crate::{PooledPath, StoreError};
use gate::Gate;
use status::Counters;

/// A bounded set of connections. Clones share it.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    path: PooledPath,
    options: PoolOptions,
    /// A permit is the right to one connection; it is given back when the connection is at rest or really gone.
    permits: Arc<Semaphore>,
    /// Last in, first out: those that are not needed stay cold at the bottom.
    idle: Mutex<Vec<Session>>,
    waiting: AtomicUsize,
    gate: Gate,
    counters: Counters,
    closed: AtomicBool,
}

impl Pool {
    /// A pool that opens its first connection when the first caller needs it.
    ///
    /// # Errors
    /// [`InvalidPool`]: options that contradict each other or the pooler's.
    pub fn new(path: PooledPath, options: PoolOptions) -> Result<Self, InvalidPool> {
        options.check()?;
        let shared = Shared {
            path,
            permits: Arc::new(Semaphore::new(options.connections)),
            idle: Mutex::new(Vec::with_capacity(options.connections)),
            waiting: AtomicUsize::new(0),
            gate: Gate::default(),
            counters: Counters::default(),
            closed: AtomicBool::new(false),
            options,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Runs work on a connection, and returns what it returned. `name` says what it is, for errors. Work that fails, takes
    /// too long or whose caller stops is rolled back.
    ///
    /// # Errors
    /// The work's own; [`StoreError::QueueFull`], [`StoreError::AcquireDeadline`] and [`StoreError::Unreachable`] before it
    /// began; [`StoreError::StatementDeadline`].
    pub(crate) async fn run<T, F>(&self, name: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'s> FnOnce(&'s mut Session) -> Work<'s, T> + Send + 'static,
    {
        let shared = &self.shared;
        let acquire_until = Instant::now() + Duration::from_millis(shared.options.acquire_ms);
        let permit = shared.permit(acquire_until).await?;
        let (reply, answer) = oneshot::channel();
        tokio::spawn(job::serve(Arc::clone(shared), permit, name, work, acquire_until, reply));
        answer.await.unwrap_or(Err(StoreError::PoolClosed))
    }

    /// Refuses new work and closes idle connections; work that is under way ends by itself.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.permits.close();
        self.shared.idle().clear();
    }

    /// What it does right now, and what it has done.
    #[must_use]
    pub fn status(&self) -> PoolStatus {
        self.shared.status()
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("path", &self.shared.path).field("status", &self.status()).finish()
    }
}

impl Shared {
    /// A place in the line, and then the right to a connection. Dropping this leaves the line.
    async fn permit(&self, until: Instant) -> Result<OwnedSemaphorePermit, StoreError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _place = Place::take(self)?;
        match timeout_at(until, Arc::clone(&self.permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(StoreError::PoolClosed),
            Err(_) => {
                self.counters.acquire_deadlines.add();
                Err(StoreError::AcquireDeadline { limit_ms: self.options.acquire_ms })
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection at rest that still stands.
    fn take_idle(&self) -> Option<Session> {
        loop {
            let session = self.idle().pop()?;
            if !session.is_closed() {
                return Some(session);
            }
            self.counters.broken.add();
        }
    }

    /// Puts a connection at rest, and only then gives its permit back.
    fn give_back(&self, session: Session, permit: OwnedSemaphorePermit) {
        if session.is_closed() {
            self.counters.broken.add();
        } else if !self.closed.load(Ordering::Relaxed) {
            self.idle().push(session);
        }
        drop(permit);
    }

    fn status(&self) -> PoolStatus {
        let idle = self.idle().len();
        let busy = self.options.connections.saturating_sub(self.permits.available_permits());
        self.counters.status(idle, busy, self.waiting.load(Ordering::Relaxed))
    }
}

/// A place in the line, left when dropped.
struct Place<'p>(&'p Shared);

impl<'p> Place<'p> {
    fn take(shared: &'p Shared) -> Result<Self, StoreError> {
        let most = shared.options.most_waiting;
        let before = shared.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(shared);
        if before >= most {
            shared.counters.queue_full.add();
            return Err(StoreError::QueueFull { waiting: most });
        }
        Ok(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
