//! The loop: wait, then one bounded round over everything that happened.

use super::clock::{Clock, sleep_until};
use super::dispatch::Dispatch;
use super::listener::{Listeners, MAX_ACCEPTS_A_TURN};
use super::sockets::Sockets;
use crate::control::Ask;
use crate::control::inbox::{Inbox, Letter};
use crate::login_plane::request::PlaneSender;
use crate::tls::TlsContext;
use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use pooling::Engine;
use pooling::connection::ConnectionId;
use settings::pooler::PoolerConfig;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Events of one turn; further ones wait for the next.
const MAX_EVENTS: usize = 256;
/// Letters of one turn.
const MAX_LETTERS: usize = 64;
/// Below the two slots that no connection ever has.
const WAKER: Token = Token(0x7FFF_FFFE);
/// Listener `i` has this in its low half and `i` in its high half.
const LISTENER: u64 = 0x7FFF_FFFF;

/// What a reactor needs, made on the thread that binds and handed to the thread that runs.
#[derive(Debug)]
pub(crate) struct Seed {
    poll: Poll,
    listeners: Listeners,
    inbox: Arc<Inbox>,
}

/// The data plane's thread.
pub(crate) struct Reactor {
    poll: Poll,
    events: Events,
    clock: Clock,
    dispatch: Dispatch,
    listeners: Listeners,
    inbox: Arc<Inbox>,
    /// Taken from the inbox in this turn.
    letters: VecDeque<Letter>,
    letters_left: bool,
}

impl Seed {
    /// Watches the listeners.
    ///
    /// # Errors
    /// The system gives no poller, or takes no more watches.
    pub(crate) fn new(listeners: Listeners) -> io::Result<Self> {
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(Waker::new(poll.registry(), WAKER)?));
        listeners.register(poll.registry(), listener_token)?;
        Ok(Self { poll, listeners, inbox })
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }
}

impl Reactor {
    /// To be called on the reactor's own thread.
    ///
    /// # Errors
    /// The system gives no second handle of the poller.
    pub(crate) fn new(
        seed: Seed,
        config: Arc<PoolerConfig>,
        client_limit: usize,
        plane: PlaneSender,
        tls: TlsContext,
    ) -> io::Result<Self> {
        let Seed { poll, listeners, inbox } = seed;
        let clock = Clock::start();
        let keepalive = config.general.tcp_keepalive;
        let registry = poll.registry().try_clone()?;
        let sockets = Sockets::new(registry, plane, Arc::clone(&inbox), keepalive, tls);
        let mut engine = Engine::new(config, client_limit, clock.now());
        // Settled by now: privileges are given up before the planes start.
        engine.set_own_uid(rustix::process::geteuid().as_raw());
        Ok(Self {
            poll,
            events: Events::with_capacity(MAX_EVENTS),
            clock,
            dispatch: Dispatch::new(engine, sockets),
            listeners,
            inbox,
            letters: VecDeque::new(),
            letters_left: false,
        })
    }

    /// Runs until a stop has been ordered and nothing is left.
    ///
    /// # Errors
    /// The poller failed: nothing can go on.
    pub(crate) fn run(mut self) -> io::Result<()> {
        self.dispatch.begin_turn(self.clock.now());
        self.dispatch.engine.start(&mut self.dispatch.sockets);
        while !(self.dispatch.engine.is_finished() && self.dispatch.sockets.orphans.is_empty()) {
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        let timeout = self.timeout();
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        self.dispatch.begin_turn(self.clock.now());
        let mut letters_came = std::mem::take(&mut self.letters_left);
        // Clients first: a waiter that has left must be known to have left before a server is handed on.
        for event in &self.events {
            match what(event.token()) {
                What::Connection(id @ ConnectionId::Client(_)) => self.dispatch.on_event(id, event.into()),
                What::Connection(ConnectionId::Server(_)) => {}
                What::Listener(index) => self.listeners.on_event(index),
                What::Letters => letters_came = true,
            }
        }
        for event in &self.events {
            if let What::Connection(id @ ConnectionId::Server(_)) = what(event.token()) {
                self.dispatch.on_event(id, event.into());
            }
        }
        self.dispatch.visit_ready();
        if letters_came {
            self.read_letters();
        }
        self.accept();
        self.dispatch.on_deadlines();
        Ok(())
    }

    fn timeout(&self) -> Option<Duration> {
        let (dispatch, now) = (&self.dispatch, self.dispatch.sockets.now);
        if !dispatch.sockets.is_idle()
            || self.letters_left
            || self.listeners.is_ready(now, dispatch.sockets.closed)
        {
            return Some(Duration::ZERO);
        }
        let listeners = self.listeners.next_deadline();
        sleep_until(
            now,
            [dispatch.engine.next_deadline(), dispatch.sockets.orphans.next_deadline(), listeners],
        )
    }

    fn read_letters(&mut self) {
        self.letters_left = self.inbox.take(&mut self.letters, MAX_LETTERS);
        while let Some(letter) = self.letters.pop_front() {
            match &letter {
                Letter::Ask(Ask::ShutDown(_)) => self.listeners.close(),
                Letter::Ask(Ask::Reload(config, _, _)) => {
                    self.listeners.set_keepalive(config.general.tcp_keepalive);
                }
                _ => {}
            }
            self.dispatch.on_letter(letter);
        }
    }

    fn accept(&mut self) {
        for _ in 0..MAX_ACCEPTS_A_TURN {
            let sockets = &self.dispatch.sockets;
            let Some(accepted) = self.listeners.accept(sockets.now, sockets.closed) else { return };
            self.dispatch.on_accepted(accepted);
        }
    }
}

enum What {
    Connection(ConnectionId),
    Listener(usize),
    Letters,
}

fn what(token: Token) -> What {
    let number = token.0 as u64;
    if token == WAKER {
        What::Letters
    } else if number & u64::from(u32::MAX) == LISTENER {
        What::Listener(usize::try_from(number >> 32).unwrap_or(usize::MAX))
    } else {
        What::Connection(ConnectionId::from_token(number))
    }
}

fn listener_token(index: usize) -> Token {
    Token(usize::try_from((index as u64) << 32 | LISTENER).unwrap_or(usize::MAX))
}

/// What an event says, without the poller's type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Readiness {
    pub readable: bool,
    pub writable: bool,
    pub read_closed: bool,
    pub reset: bool,
}

impl From<&Event> for Readiness {
    #[inline]
    fn from(event: &Event) -> Self {
        let (read_closed, error) = (event.is_read_closed(), event.is_error());
        Self {
            readable: event.is_readable(),
            writable: event.is_writable(),
            read_closed: read_closed || error,
            // Both directions closed is HUP.
            reset: error || read_closed && event.is_write_closed(),
        }
    }
}

#[cfg(test)]
mod tests;
