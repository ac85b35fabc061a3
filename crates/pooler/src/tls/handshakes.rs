//! The dear steps of clients' handshakes, on threads of their own: a storm of them must not stop running clients.

use crate::control::inbox::{Inbox, Letter};
use pooling::connection::ConnectionId;
use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::{fmt, io, thread};
use tls::{TlsError, TlsSession};

/// Steps that wait at once; above what the bounds of clients let through, each of whom has at most one.
pub(crate) const MAX_WAITING: usize = 65_536;
/// Threads, at most; one for each two cores.
const MAX_THREADS: usize = 4;

/// One step of one client's handshake.
pub(crate) struct Step {
    pub id: ConnectionId,
    pub session: TlsSession,
    /// All ciphertext that is there.
    pub incoming: Vec<u8>,
    /// Nobody waits for it any more if this is gone.
    pub alive: Weak<()>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Stepped {
    pub id: ConnectionId,
    pub session: TlsSession,
    pub plain: Vec<u8>,
    pub out: Vec<u8>,
    pub result: Result<(), TlsError>,
}

/// The reactor's end. Dropping it ends the threads.
#[derive(Debug)]
pub(crate) struct Handshakes {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    came: Condvar,
}

#[derive(Default)]
struct Waiting {
    steps: VecDeque<Step>,
    is_over: bool,
}

impl Handshakes {
    /// Starts the threads; what comes of each step goes to the inbox.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(inbox: &Arc<Inbox>) -> io::Result<Self> {
        let handshakes = Self { queue: Arc::default() };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 0..(cores / 2).clamp(1, MAX_THREADS) {
            let (queue, inbox) = (Arc::clone(&handshakes.queue), Arc::clone(inbox));
            let work = move || {
                while let Some(step) = queue.next() {
                    inbox.answer(Letter::Handshake(Box::new(run(step))));
                }
            };
            thread::Builder::new().name("handshake".to_owned()).spawn(work)?;
        }
        Ok(handshakes)
    }

    /// Takes a step; never waits. False if too many wait already.
    pub(crate) fn take(&self, step: Step) -> bool {
        let mut waiting = self.queue.lock();
        let has_room = waiting.steps.len() < MAX_WAITING;
        if has_room {
            waiting.steps.push_back(step);
            drop(waiting);
            self.queue.came.notify_one();
        }
        has_room
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        self.queue.lock().is_over = true;
        self.queue.came.notify_all();
    }
}

impl Queue {
    /// The next step that somebody waits for; none once the reactor is gone.
    fn next(&self) -> Option<Step> {
        let mut waiting = self.lock();
        loop {
            if waiting.is_over {
                return None;
            }
            match waiting.steps.pop_front() {
                Some(step) if step.alive.strong_count() > 0 => return Some(step),
                Some(_) => {}
                None => waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Queue")
    }
}

fn run(step: Step) -> Stepped {
    let Step { id, mut session, mut incoming, .. } = step;
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let process = || session.process(&mut incoming, &mut plain, &mut out);
    // Its client alone is to suffer from a bug.
    let result = catch_unwind(AssertUnwindSafe(process)).unwrap_or_else(|_| {
        session.give_up();
        Err(TlsError::OutOfOrder("panicked"))
    });
    Stepped { id, session, plain, out, result }
}

#[cfg(test)]
mod tests;
