//! The login plane: what may block or takes milliseconds, on one tokio runtime beside the reactor.
//!
//! Every request of the engine is answered exactly once through the reactor's inbox. Tasks are counted and bounded;
//! one that panics ends the process, since its answer would be missing for ever.

mod budget;
mod cancel;
mod connect_query;
mod dial;
mod failure;
mod hashing;
mod inbound;
mod locks;
mod login;
mod own_query;
pub(crate) mod request;
mod stream;
mod verifier;

use crate::console::{ConsoleContext, ConsoleSession, ConsoleStream, serve as serve_console};
use crate::control::inbox::{Inbox, Letter};
use budget::Controls;
use dial::Resolver;
use locks::Lookers;
use pooling::seam::ClientAddress;
use request::{HandOver, Request};
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::Receiver;
use tokio::task::{JoinError, JoinSet};

/// Logins, cancel requests and derivations at once; above what the engine's own bounds let through, so that the bound
/// holds even if those are wrong.
const MAX_TASKS: usize = 16_384;
/// Console sessions at once, with those that are being refused.
const MAX_SESSIONS: usize = 128;
/// Longest time to send a console client the rest of its greeting.
const GREETING_LIMIT: Duration = Duration::from_secs(5);

/// Serves requests until the reactor is gone.
pub(crate) struct LoginPlane {
    inbox: Arc<Inbox>,
    console: Arc<ConsoleContext>,
    resolver: Resolver,
    lookers: Lookers,
    /// Control connections of servers' budgets.
    controls: Controls,
    /// Each owes the reactor an answer.
    tasks: JoinSet<()>,
    sessions: JoinSet<()>,
}

/// A task of the login plane has panicked. The process must end: an answer is missing.
#[derive(Debug, thiserror::Error)]
#[error("a task of the login plane failed: {0}")]
pub struct LoginPlaneError(#[from] JoinError);

impl LoginPlane {
    pub(crate) fn new(inbox: Arc<Inbox>, console: Arc<ConsoleContext>) -> Self {
        Self {
            inbox,
            console,
            resolver: Resolver::default(),
            lookers: Lookers::default(),
            controls: Controls::default(),
            tasks: JoinSet::new(),
            sessions: JoinSet::new(),
        }
    }

    /// Runs until the reactor has dropped its sender.
    ///
    /// # Errors
    /// [`LoginPlaneError`].
    pub(crate) async fn run(mut self, mut requests: Receiver<Request>) -> Result<(), LoginPlaneError> {
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.start(request),
                    None => return Ok(()),
                },
                Some(ended) = self.tasks.join_next() => ended?,
                Some(ended) = self.sessions.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a console session failed");
                    }
                }
            }
        }
    }

    fn start(&mut self, request: Request) {
        let inbox = Arc::clone(&self.inbox);
        match request {
            Request::Console(hand_over) => self.start_session(hand_over),
            _ if self.tasks.len() >= MAX_TASKS => {
                if let Some(answer) = request.refuse() {
                    inbox.answer(answer);
                }
            }
            Request::Open(request, way) => {
                let resolver = self.resolver.clone();
                self.tasks.spawn(async move {
                    let attempt = request.attempt;
                    inbox.answer(match login::open(request, &way, &resolver).await {
                        Ok(opened) => Letter::ServerOpened(Box::new(opened)),
                        Err(failure) => Letter::ServerFailed(attempt, failure),
                    });
                });
            }
            Request::Budget(order, way) => {
                let (resolver, controls) = (self.resolver.clone(), self.controls.clone());
                self.tasks.spawn(async move {
                    let look = controls.carry_out(&order, &way, &resolver).await;
                    inbox.answer(order.answer(look));
                });
            }
            Request::LeaveBudget(address) => self.controls.leave(&address),
            Request::Cancel(request, tls) => {
                let resolver = self.resolver.clone();
                self.tasks.spawn(async move {
                    cancel::send(&request, tls.as_deref(), &resolver).await;
                    inbox.answer(Letter::CancelEnded(request.server));
                });
            }
            Request::Look(request, way) => {
                if let Some(looker) = self.lookers.send(request, way) {
                    self.tasks.spawn(looker.run(self.resolver.clone(), inbox));
                }
            }
            Request::Derive(request) => {
                self.tasks.spawn(async move {
                    inbox.answer(Letter::Verifier(verifier::derive(request).await));
                });
            }
        }
    }

    fn start_session(&mut self, hand_over: HandOver) {
        if self.sessions.len() >= MAX_SESSIONS {
            tracing::warn!(most = MAX_SESSIONS, "console session refused, too many at once");
            return;
        }
        let console = Arc::clone(&self.console);
        self.sessions.spawn(async move {
            match receive(hand_over).await {
                Ok(session) => serve_console(session, console).await,
                Err(error) => tracing::warn!(%error, "cannot take over a console session"),
            }
        });
    }
}

/// Makes a session of a socket that the reactor has given up, and sends what it still owed.
async fn receive(hand_over: HandOver) -> io::Result<ConsoleSession> {
    let HandOver { descriptor, unsent, tls, login } = hand_over;
    let mut stream = match login.address {
        ClientAddress::Tcp { .. } => {
            ConsoleStream::Tcp(tokio::net::TcpStream::from_std(TcpStream::from(descriptor))?)
        }
        ClientAddress::Unix { .. } => {
            ConsoleStream::Unix(tokio::net::UnixStream::from_std(UnixStream::from(descriptor))?)
        }
    };
    let rest = async {
        match &mut stream {
            ConsoleStream::Tcp(stream) => stream.write_all(&unsent).await,
            ConsoleStream::Unix(stream) => stream.write_all(&unsent).await,
            // Encrypted already, so it goes out before TLS is put on.
            ConsoleStream::Tls(_) => Ok(()),
        }
    };
    tokio::time::timeout(GREETING_LIMIT, rest).await??;
    let stream = match tls {
        Some(session) => stream.secured(session),
        None => stream,
    };
    Ok(ConsoleSession { stream, login })
}
