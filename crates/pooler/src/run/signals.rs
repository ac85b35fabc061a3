//! Signals, and the time that a stop may take.

use crate::console::ReloadRequest;
use crate::control::EngineHandle;
use pooling::Shutdown;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// Longest time for the last messages after everything has been cut off.
const CUT_LIMIT: Duration = Duration::from_secs(10);

/// The signals that are obeyed.
pub(super) struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    user1: Signal,
    user2: Signal,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Reload,
    Stop(Shutdown),
    /// PgBouncer's PAUSE and RESUME by signal.
    NotBuilt,
}

/// Obeys signals.
pub(super) struct Orders {
    handle: EngineHandle,
    reload: mpsc::Sender<ReloadRequest>,
    drain_timeout: Duration,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// Until then; none without a limit.
    Draining(Option<Instant>),
    Cutting(Instant),
}

impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    async fn next(&mut self) -> Order {
        tokio::select! {
            _ = self.hangup.recv() => Order::Reload,
            _ = self.terminate.recv() => Order::Stop(Shutdown::WaitForClients),
            _ = self.interrupt.recv() => Order::Stop(Shutdown::WaitForServers),
            _ = self.quit.recv() => Order::Stop(Shutdown::Now),
            _ = self.user1.recv() => Order::NotBuilt,
            _ = self.user2.recv() => Order::NotBuilt,
        }
    }
}

impl Orders {
    pub(super) const fn new(
        handle: EngineHandle,
        reload: mpsc::Sender<ReloadRequest>,
        drain_timeout: Duration,
    ) -> Self {
        Self { handle, reload, drain_timeout, state: State::Running }
    }

    /// Returns only if a stop was ordered and the reactor does not come to its end.
    pub(super) async fn obey(mut self, mut signals: Signals) {
        loop {
            let deadline = match self.state {
                State::Running | State::Draining(None) => None,
                State::Draining(Some(deadline)) | State::Cutting(deadline) => Some(deadline),
            };
            tokio::select! {
                order = signals.next() => match order {
                    Order::Reload => self.reload(),
                    Order::Stop(how) => self.stop(how),
                    Order::NotBuilt => tracing::warn!("PAUSE and RESUME by USR1 and USR2 are not supported"),
                },
                () = at(deadline) => {
                    if matches!(self.state, State::Cutting(_)) {
                        return;
                    }
                    tracing::warn!("drain_timeout is over, remaining connections are closed");
                    self.cut();
                }
            }
        }
    }

    /// The file is read on a task of its own; what is wrong with it goes to the log there.
    fn reload(&self) {
        tracing::info!("got HUP, reading the configuration again");
        let (answer, _) = oneshot::channel();
        if self.reload.try_send(ReloadRequest { answer }).is_err() {
            tracing::warn!("reloads are already waiting, this one is covered by them");
        }
    }

    fn stop(&mut self, how: Shutdown) {
        if how == Shutdown::Now || self.state != State::Running {
            tracing::info!("stopping at once");
            return self.cut();
        }
        tracing::info!(?how, drain_timeout_s = self.drain_timeout.as_secs_f64(), "stopping after a drain");
        self.handle.shut_down(how);
        self.state =
            State::Draining((!self.drain_timeout.is_zero()).then(|| Instant::now() + self.drain_timeout));
    }

    fn cut(&mut self) {
        self.handle.shut_down(Shutdown::Now);
        if !matches!(self.state, State::Cutting(_)) {
            self.state = State::Cutting(Instant::now() + CUT_LIMIT);
        }
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
