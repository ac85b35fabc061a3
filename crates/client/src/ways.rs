//! By which way a relay is dialled: straight, or inside a WebSocket where only HTTP passes.

mod proxy;

pub use proxy::{HttpProxy, ProxyError};

use crate::error::LinkError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A WebSocket that was needed may not be needed any more: after so long, the straight way is tried again first.
const RECHECKED_AFTER: Duration = Duration::from_secs(3_600);

/// What stands between TLS and the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Nothing.
    #[default]
    Direct,
    /// A WebSocket (protocol §1).
    WebSocket,
}

impl Transport {
    /// For status and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "TLS",
            Self::WebSocket => "WebSocket",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Direct => Self::WebSocket,
            Self::WebSocket => Self::Direct,
        }
    }
}

/// Which way to take, and which worked last. One for as long as a program runs: each attempt to connect takes one way, and one
/// that fails because of the way makes the next attempt take the other. So a relay that is overrun is not dialled twice as often.
#[derive(Debug, Default)]
pub struct Ways {
    only: Option<Transport>,
    proxy: Option<HttpProxy>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Transport,
    worked_at: Option<Instant>,
    /// Since the last that worked.
    failures: u32,
}

impl Ways {
    /// The straight one first, then a WebSocket; that through the HTTP proxy which the environment names, if it does
    /// (`HTTPS_PROXY`, `NO_PROXY`).
    ///
    /// # Errors
    /// The environment names a proxy that cannot be used.
    pub fn from_environment() -> Result<Self, ProxyError> {
        Ok(Self { proxy: HttpProxy::from_environment()?, ..Self::default() })
    }

    /// One way, whatever comes.
    #[must_use]
    pub fn only(transport: Transport) -> Self {
        Self::default().always(transport)
    }

    /// The same, with the proxy that there is.
    #[must_use]
    pub fn always(self, transport: Transport) -> Self {
        Self { only: Some(transport), ..self }
    }

    /// Through `proxy`, when it is a WebSocket.
    #[must_use]
    pub fn through(self, proxy: HttpProxy) -> Self {
        Self { proxy: Some(proxy), ..self }
    }

    /// The way of the next attempt, with any number for `jitter`.
    pub(crate) fn next(&self, jitter: u64) -> Transport {
        if let Some(only) = self.only {
            return only;
        }
        let state = self.lock();
        match state.failures {
            0 if state.worked_at.is_some_and(|at| at.elapsed() < RECHECKED_AFTER) => state.last,
            0 => Transport::Direct,
            1 => state.last.other(),
            // By lot: a client that takes its relays in turns must not try each of them by one way only.
            _ if jitter.is_multiple_of(2) => Transport::Direct,
            _ => Transport::WebSocket,
        }
    }

    /// The proxy for a WebSocket to `host`.
    pub(crate) fn proxy(&self, host: &str) -> Option<&HttpProxy> {
        self.proxy.as_ref().filter(|proxy| proxy.is_for(host))
    }

    /// What came of an attempt. A relay that refuses has been reached; one that does not even take a connection cannot be reached
    /// by another way on the same port, unless there is a proxy.
    pub(crate) fn tried(&self, transport: Transport, error: Option<&LinkError>) {
        let mut state = self.lock();
        match error {
            // Said before TLS, it tells nothing of what comes behind.
            Some(LinkError::Wait(_)) => {}
            None | Some(LinkError::Refused { .. }) => {
                *state = State { last: transport, worked_at: Some(Instant::now()), failures: 0 };
            }
            Some(error) if error.is_unreachable() && self.proxy.is_none() => {}
            Some(_) => {
                state.last = transport;
                state.failures = state.failures.saturating_add(1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
