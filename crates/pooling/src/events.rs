//! The flight recorder: what has happened lately, for whoever has to explain it afterwards (SHOW EVENTS).
//!
//! A ring with a bound. What happens again within [`SAME_EVENT_WITHIN`] takes no further place but counts up the one it
//! has, so that a storm leaves room for what began it. Nothing that a healthy request does is an event. A new kind is a
//! variant of [`EventKind`], and one call of `Engine::record` where it happens.

use crate::close_cause::CloseCause;
use crate::snapshot::EventRow;
use crate::stall::{StallCause, StallEnd};
use overload::Moment;
use overload::cause::Cause;
use overload::shedding::ShedCause;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Most events that are remembered; the oldest is forgotten first.
pub const MAX_EVENTS: usize = 1_024;

/// The same thing counts as one event for so long after it last happened.
pub const SAME_EVENT_WITHIN: Duration = Duration::from_secs(60);

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An attempt to connect was not looked at (`connection_attempts`).
    AttemptRefused {
        /// `too_many` or `refused_before`.
        cause: &'static str,
    },
    /// A client was turned away because of a limit on clients, of the process, a database or a user.
    ClientRefused,
    /// A client that held a server without using it was closed, since others waited.
    HolderClosed {
        /// The limit that it reached.
        limit: &'static str,
    },
    /// A login to a server failed.
    LoginFailed {
        /// Why.
        cause: Cause,
    },
    /// A client's own login was refused: password, user or database.
    LoginRefused,
    /// The line of the pool stands.
    Overloaded,
    /// Nobody waits any more in a pool whose line stood.
    OverloadEnded {
        /// For how long it had.
        after: Duration,
    },
    /// A reload has put a configuration in force.
    Reloaded,
    /// Clients that waited were refused, since no server can be opened.
    RequestRefused,
    /// A server connection was closed, or ended, out of turn.
    ServerClosed {
        /// Why.
        cause: CloseCause,
    },
    /// The pool has a server again after its logins had failed.
    ServerBack {
        /// For how long they had.
        after: Duration,
    },
    /// Requests were not started, since their callers would not have waited long enough.
    Shed {
        /// Why.
        cause: ShedCause,
    },

    /// One source does far more than it used to.
    StormBegan {
        /// `attempts` or `lost_requests`.
        what: &'static str,
    },
    /// Clients of the pool wait, and nobody gets an answer; or the cause of that has become another one.
    Stalled {
        /// Why.
        cause: StallCause,
        /// In full.
        detail: String,
    },
    /// The pool does not stand still any more.
    StallOver {
        /// Why.
        how: StallEnd,
        /// How long it did.
        lasted: Duration,
    },
    /// The process has begun to stop.
    Stopping {
        /// `wait_for_clients`, `wait_for_servers` or `now`.
        how: &'static str,
    },
    /// A client was dismissed after `query_wait_timeout`.
    WaitTimedOut,
}

impl EventKind {
    /// Its name in SHOW EVENTS. The set is closed.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::AttemptRefused { .. } => "attempt_refused",
            Self::ClientRefused => "client_refused",
            Self::HolderClosed { .. } => "holder_closed",
            Self::LoginFailed { .. } => "login_failed",
            Self::LoginRefused => "login_refused",
            Self::Overloaded => "overloaded",
            Self::OverloadEnded { .. } => "overload_ended",
            Self::Reloaded => "reloaded",
            Self::RequestRefused => "request_refused",
            Self::ServerClosed { .. } => "server_closed",
            Self::ServerBack { .. } => "server_back",
            Self::Shed { .. } => "shed",
            Self::StormBegan { .. } => "storm_began",
            Self::Stalled { .. } => "stalled",
            Self::StallOver { .. } => "stall_over",
            Self::Stopping { .. } => "stopping",
            Self::WaitTimedOut => "wait_timed_out",
        }
    }

    /// What tells it from others of the same name; empty if nothing does. The set is closed.
    #[must_use]
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::AttemptRefused { cause } => cause,
            Self::HolderClosed { limit } => limit,
            Self::StormBegan { what } => what,
            Self::LoginFailed { cause } => cause.label(),
            Self::ServerClosed { cause } => cause.label(),
            Self::Shed { cause } => cause.label(),
            Self::Stalled { cause, .. } => cause.label(),
            Self::StallOver { how, .. } => how.label(),
            Self::Stopping { how } => how,
            Self::ClientRefused
            | Self::LoginRefused
            | Self::Overloaded
            | Self::OverloadEnded { .. }
            | Self::Reloaded
            | Self::RequestRefused
            | Self::ServerBack { .. }
            | Self::WaitTimedOut => "",
        }
    }

    /// What else is worth knowing of the last time; empty if nothing is.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::ServerBack { after } => format!("after {:.1} s without", after.as_secs_f64()),
            Self::OverloadEnded { after } => format!("after {:.1} s", after.as_secs_f64()),
            Self::Stalled { detail, .. } => detail.clone(),
            Self::StallOver { lasted, .. } => format!("after {:.1} s", lasted.as_secs_f64()),
            _ => String::new(),
        }
    }
}

/// What makes two events the same one.
type Identity = (&'static str, &'static str, Arc<str>, Arc<str>);

#[derive(Debug)]
struct Event {
    kind: EventKind,
    database: Arc<str>,
    user: Arc<str>,
    first: Moment,
    last: Moment,
    count: u64,
}

impl Event {
    fn identity(&self) -> Identity {
        (self.kind.label(), self.kind.cause(), self.database.clone(), self.user.clone())
    }
}

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    ring: VecDeque<Event>,
    /// Events that the ring has forgotten: the number of its first one.
    forgotten: u64,
    /// The number of the latest event of each identity in the ring.
    latest: HashMap<Identity, u64>,
}

impl Recorder {
    /// Something has happened in a pool; both names are empty for what concerns no pool.
    pub(crate) fn record(&mut self, now: Moment, kind: EventKind, database: &Arc<str>, user: &Arc<str>) {
        let event =
            Event { kind, database: database.clone(), user: user.clone(), first: now, last: now, count: 1 };
        let identity = event.identity();
        if let Some(&number) = self.latest.get(&identity)
            && let Some(index) = number.checked_sub(self.forgotten).and_then(|at| usize::try_from(at).ok())
            && let Some(before) = self.ring.get_mut(index)
            && now.since(before.last) <= SAME_EVENT_WITHIN
        {
            before.kind = event.kind;
            before.last = now;
            before.count += 1;
            return;
        }
        if self.ring.len() >= MAX_EVENTS {
            self.forget_oldest();
        }
        self.latest.insert(identity, self.forgotten + self.ring.len() as u64);
        self.ring.push_back(event);
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.ring.pop_front() else { return };
        let identity = oldest.identity();
        if self.latest.get(&identity) == Some(&self.forgotten) {
            self.latest.remove(&identity);
        }
        self.forgotten += 1;
    }

    /// All that is remembered, in the order in which it began.
    pub(crate) fn rows(&self, now: Moment) -> Vec<EventRow> {
        let row = |event: &Event| EventRow {
            event: event.kind.label(),
            cause: event.kind.cause(),
            database: event.database.clone(),
            user: event.user.clone(),
            count: event.count,
            first_ago: now.since(event.first),
            last_ago: now.since(event.last),
            detail: event.kind.detail(),
        };
        self.ring.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests;
