//! Who of those who wait is told to go, while a pool has more to do than it can.
//!
//! Three rules, and none of them touches a caller whose patience is not known:
//!
//! - A caller whose predicted wait and time of service are longer than its patience is told so at once.
//! - A caller that would be gone before its answer is there need not be served.
//! - A line that stands (CoDel: Nichols and Jacobson, "Controlling Queue Delay", 2012) is an overload: from then on each may
//!   wait for its target and no longer, and the newest is served first, which is the one with the most patience left.
//!   That ends when nobody waits any more. Unlike CoDel, a line that is being worked off does not stand.

use crate::patience::Patience;
use crate::{Moment, Pace};
use std::time::Duration;

/// Bounds of what a refused caller is told to wait before it comes again.
pub const LEAST_RETRY: Duration = Duration::from_millis(50);
/// See [`LEAST_RETRY`].
pub const GREATEST_RETRY: Duration = Duration::from_secs(60);

/// Why somebody is told to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShedCause {
    /// The predicted wait is longer than the patience.
    Predicted,
    /// The patience is over, but for the time of service.
    Deadline,
    /// The line stands, and the target is over.
    Standing,
}

impl ShedCause {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Predicted, Self::Deadline, Self::Standing];

    /// Its name in metrics and on the console.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Predicted => "predicted",
            Self::Deadline => "deadline",
            Self::Standing => "standing",
        }
    }
}

/// What becomes of somebody who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// He waits on; with a moment to look again, unless he may wait for as long as he likes.
    Wait(Option<Moment>),
    /// He is told to go.
    Shed(ShedCause),
}

/// The state of one waiting line: a pool's, or one lane's of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shedding {
    pace: Pace,
    /// How long a server needs for one who waits. A line that shares its servers with others is slower than that.
    service: Option<Duration>,
    /// Every wait that was looked at lately was above its target.
    above: Option<Above>,
    overloaded_since: Option<Moment>,
}

/// Waits above their targets.
#[derive(Clone, Copy, Debug)]
struct Above {
    since: Moment,
    /// The longest of them.
    longest: Duration,
}

impl Shedding {
    /// Somebody begins to wait where nobody did.
    pub const fn began(&mut self, now: Moment) {
        self.pace.began(now);
    }

    /// One of `servers` has become free for somebody who waits; `service` is how long one needs for each, as far as that is
    /// known.
    pub fn freed(&mut self, servers: usize, service: Option<Duration>, now: Moment) {
        self.pace.freed(servers, now);
        self.service = service;
    }

    /// Nobody waits, and a server is free: there is no overload.
    pub const fn relaxed(&mut self) {
        self.above = None;
        self.overloaded_since = None;
    }

    /// How long somebody has waited who was due next, when he was queued. True if the line has come to stand with that.
    pub fn observe(&mut self, queued_at: Moment, patience: Option<Patience>, now: Moment) -> bool {
        let Some(patience) = patience.filter(|_| self.overloaded_since.is_none()) else { return false };
        let wait = now.since(queued_at);
        if wait <= self.target(patience) {
            self.above = None;
            return false;
        }
        let above = self.above.get_or_insert(Above { since: now, longest: wait });
        above.longest = above.longest.max(wait);
        if wait <= above.longest * 3 / 4 {
            // It is being worked off, such as after a stall: that is no line that stands.
            *above = Above { since: now, longest: wait };
        }
        let stands = now.since(above.since) >= patience.interval();
        if stands {
            self.overloaded_since = Some(now);
        }
        stands
    }

    /// The first look at somebody who has just joined the line behind `ahead` others.
    #[must_use]
    pub fn judge(&self, patience: Option<Patience>, ahead: usize, servers: usize, now: Moment) -> Verdict {
        let Some(patience) = patience else { return Verdict::Wait(None) };
        // While the newest is served first, it matters little who stands before him.
        if self.overloaded_since.is_none()
            && let Some(wait) = self.pace.predicted_wait(ahead, servers, now)
            && wait.saturating_add(self.service(patience)) > patience.limit()
        {
            return Verdict::Shed(ShedCause::Predicted);
        }
        self.look(Some(patience), now, now)
    }

    /// A later look at somebody who waits.
    #[must_use]
    pub fn look(&self, patience: Option<Patience>, queued_at: Moment, now: Moment) -> Verdict {
        let Some(patience) = patience else { return Verdict::Wait(None) };
        let end = queued_at + self.useful_wait(patience);
        let target = queued_at + self.target(patience);
        if self.overloaded_since.is_some() && now >= target {
            return Verdict::Shed(ShedCause::Standing);
        }
        let by_overload = self.overloaded_since.map(|_| target);
        let by_patience = patience.is_certain().then_some(end);
        if by_patience.is_some_and(|end| now >= end) {
            return Verdict::Shed(ShedCause::Deadline);
        }
        Verdict::Wait(by_overload.into_iter().chain(by_patience).min())
    }

    /// When somebody who is told to go may come again: `jitter` is any random number, so that not all of them come at once.
    #[must_use]
    pub fn retry_after(
        &self,
        patience: Patience,
        ahead: usize,
        servers: usize,
        now: Moment,
        jitter: u64,
    ) -> Duration {
        let wait = self.pace.predicted_wait(ahead, servers, now).unwrap_or_else(|| patience.limit());
        let wait = wait.clamp(LEAST_RETRY, GREATEST_RETRY);
        // Between once and twice that long.
        let share = u32::try_from(jitter % 1_024).unwrap_or(0);
        wait + wait * share / 1_024
    }

    /// Since when the line stands.
    #[must_use]
    pub const fn overloaded_since(&self) -> Option<Moment> {
        self.overloaded_since
    }

    /// Nothing is to be undone when a server finds nobody waiting.
    #[must_use]
    pub const fn is_relaxed(&self) -> bool {
        self.above.is_none() && self.overloaded_since.is_none()
    }

    /// How fast this line is served.
    #[must_use]
    pub const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The wait that is no trouble. Never less than the time in which all servers become free twice, so that a line that is kept
    /// to it is not empty when they do (CoDel never drops the last one, for the same reason).
    fn target(&self, patience: Patience) -> Duration {
        let turns = self.service.unwrap_or_default().saturating_mul(2);
        patience.target().max(turns.min(self.useful_wait(patience)))
    }

    /// For so long a wait may end in an answer that somebody still waits for.
    fn useful_wait(&self, patience: Patience) -> Duration {
        patience.limit().saturating_sub(self.service(patience))
    }

    /// The time of service as far as it concerns this caller: one who gives up sooner than a server usually needs may have
    /// a short request, so that at least half of the patience is left for the wait.
    fn service(&self, patience: Patience) -> Duration {
        self.service.unwrap_or_default().min(patience.limit() / 2)
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
