//! How the link stands, for whoever wants to know.

use crate::state::Held;
use crate::status::LinkStatus;
use client::Link;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a relay may take to be told that this client leaves.
const FAREWELL_TIME: Duration = Duration::from_secs(2);

/// How the link stands.
#[derive(Clone, Debug, Default)]
pub(crate) enum Standing {
    /// Nothing has begun.
    #[default]
    Down,
    /// Dialling.
    Connecting { relay: String },
    /// Connected.
    Up { relay: String, link: Link, since_ms: u64 },
    /// The relay wants its clients elsewhere.
    Draining,
    /// Until the next attempt.
    Waiting { next_dial_at_ms: u64 },
    /// No streams are wanted.
    Resting,
    /// Refused for good.
    Held,
}

/// What is known about the link.
#[derive(Debug)]
pub(crate) struct Place {
    inner: Mutex<Inner>,
    held: watch::Sender<Option<Held>>,
}

#[derive(Debug, Default)]
struct Inner {
    standing: Standing,
    connections: u64,
    last_error: Option<(String, u64)>,
    clock_ahead_ms: Option<i64>,
}

impl Place {
    pub(crate) fn new(held: Option<Held>) -> Self {
        Self { inner: Mutex::default(), held: watch::Sender::new(held) }
    }

    pub(super) fn set(&self, standing: Standing) {
        let mut inner = self.lock();
        if let Standing::Up { link, since_ms, .. } = &standing {
            inner.connections += 1;
            let ahead = i128::from(*since_ms) - i128::from(link.welcome().time_ms);
            inner.clock_ahead_ms = i64::try_from(ahead).ok();
        }
        inner.standing = standing;
    }

    pub(super) fn failed(&self, error: &str, at_ms: u64) {
        self.lock().last_error = Some((error.to_owned(), at_ms));
    }

    pub(crate) fn held(&self) -> Option<Held> {
        self.held.borrow().clone()
    }

    pub(super) fn set_held(&self, held: Option<Held>) {
        self.held.send_replace(held);
    }

    /// Comes back once no refusal is held.
    pub(super) async fn released(&self) {
        let _ = self.held.subscribe().wait_for(Option::is_none).await;
    }

    /// Ends the link that stands, if one does.
    pub(super) fn close(&self) {
        if let Some(link) = self.link() {
            link.close();
        }
    }

    /// The same, and waits until the relay has been told, or cannot be.
    pub(crate) async fn leave(&self) {
        if let Some(link) = self.link() {
            link.close();
            // A relay that takes nothing learns it by the end of the connection.
            let _ = timeout(FAREWELL_TIME, link.ended()).await;
        }
    }

    fn link(&self) -> Option<Link> {
        match &self.lock().standing {
            Standing::Up { link, .. } => Some(link.clone()),
            _ => None,
        }
    }

    /// For `status`.
    pub(crate) fn status(&self, token_expires_at_ms: u64) -> LinkStatus {
        let inner = self.lock();
        let mut status = LinkStatus {
            connections: inner.connections,
            clock_ahead_ms: inner.clock_ahead_ms,
            token_expires_at_ms: Some(token_expires_at_ms),
            ..LinkStatus::default()
        };
        if let Some((error, at_ms)) = &inner.last_error {
            (status.last_error, status.last_error_at_ms) = (Some(error.clone()), Some(*at_ms));
        }
        status.state = match &inner.standing {
            Standing::Down => "down",
            Standing::Connecting { relay } => {
                status.relay = Some(relay.clone());
                "connecting"
            }
            Standing::Up { relay, link, since_ms } => {
                status.relay = Some(relay.clone());
                status.transport = Some(link.transport().name().to_owned());
                status.since_ms = Some(*since_ms);
                let us = |trip: Duration| u64::try_from(trip.as_micros()).unwrap_or(u64::MAX);
                status.round_trip_us = link.round_trip().map(us);
                "connected"
            }
            Standing::Draining => "draining",
            Standing::Waiting { next_dial_at_ms } => {
                status.next_dial_at_ms = Some(*next_dial_at_ms);
                "waiting"
            }
            Standing::Resting => "resting",
            Standing::Held => "held",
        }
        .to_owned();
        status
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
