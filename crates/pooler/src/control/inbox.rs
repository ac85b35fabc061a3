//! The reactor's inbox: the only way from other threads into the data plane.

use super::{Ask, ReactorSilent};
use crate::reactor::Opened;
use crate::tls::handshakes::Stepped;
use mio::Waker;
use pooling::Shutdown;
use pooling::connection::ServerId;
use pooling::seam::{AttemptId, BudgetAnswer, DerivedVerifier, LocksSeen, OpenFailure};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Questions that wait at once; one more is refused.
pub(crate) const MAX_QUESTIONS: usize = 64;

/// What another thread tells the reactor.
#[derive(Debug)]
pub(crate) enum Letter {
    /// A question or an order from the console, the metrics page or a signal.
    Ask(Ask),
    /// A server connection has logged in.
    ServerOpened(Box<Opened>),
    /// An attempt to open one failed.
    ServerFailed(AttemptId, OpenFailure),
    /// An order of a server's budget has been carried out, or its session is gone.
    Budget(Box<BudgetAnswer>),
    /// A cancel request has run its course.
    CancelEnded(ServerId),
    /// A step of a TLS handshake is done.
    Handshake(Box<Stepped>),
    /// A look at a server's locks has ended.
    LocksSeen(Box<LocksSeen>),
    /// A verifier has been derived.
    Verifier(DerivedVerifier),
}

/// Letters in order of arrival. Questions are bounded by [`MAX_QUESTIONS`]; answers of the login plane by the
/// requests that it accepts, since each gives exactly one.
pub(crate) struct Inbox {
    pile: Mutex<Pile>,
    waker: Waker,
}

#[derive(Default)]
struct Pile {
    letters: VecDeque<Letter>,
    questions: usize,
    shutdown: Option<Shutdown>,
}

impl Inbox {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { pile: Mutex::default(), waker }
    }

    /// Adds a question.
    pub(crate) fn ask(&self, ask: Ask) -> Result<(), ReactorSilent> {
        let mut pile = self.lock();
        if pile.questions >= MAX_QUESTIONS {
            return Err(ReactorSilent);
        }
        pile.questions += 1;
        self.add(pile, Letter::Ask(ask));
        Ok(())
    }

    /// Adds an answer of the login plane.
    pub(crate) fn answer(&self, letter: Letter) {
        self.add(self.lock(), letter);
    }

    /// Orders a stop. Of several that have not been read yet the last counts, so that they need no room.
    pub(crate) fn order_shutdown(&self, how: Shutdown) {
        let mut pile = self.lock();
        let was_empty = pile.is_empty();
        pile.shutdown = Some(how);
        drop(pile);
        if was_empty {
            self.wake();
        }
    }

    /// Moves up to `most` letters to the end of `taken`, which is the reactor's own and stays allocated.
    /// True if some are left: the reactor is not woken for those.
    pub(crate) fn take(&self, taken: &mut VecDeque<Letter>, most: usize) -> bool {
        let mut pile = self.lock();
        if let Some(how) = pile.shutdown.take() {
            taken.push_back(Letter::Ask(Ask::ShutDown(how)));
        }
        let count = pile.letters.len().min(most);
        taken.extend(pile.letters.drain(..count));
        let questions =
            taken.iter().filter(|letter| matches!(letter, Letter::Ask(ask) if ask.is_question())).count();
        pile.questions = pile.questions.saturating_sub(questions);
        !pile.letters.is_empty()
    }

    fn add(&self, mut pile: MutexGuard<'_, Pile>, letter: Letter) {
        let was_empty = pile.is_empty();
        pile.letters.push_back(letter);
        drop(pile);
        if was_empty {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake the reactor");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pile> {
        self.pile.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pile {
    fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.shutdown.is_none()
    }
}

impl Ask {
    const fn is_question(&self) -> bool {
        !matches!(self, Self::ShutDown(_))
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inbox").finish_non_exhaustive()
    }
}
