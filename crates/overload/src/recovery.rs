//! What may be tried after a failure: rest, then one probe at a time, then everything again.

use std::time::Duration;

use crate::{Backoff, Cause, Moment};

/// A probe without an answer for this long no longer holds back the next one. Otherwise a single packet that went
/// nowhere would cost the whole limit of a login, long after the server is back.
pub const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// The state of one thing that logins depend on: a server address, or a pool.
///
/// Attempts are known by the moment they were started at. One that was started before the last failure says nothing
/// new: a wave of sixty failures counts as one, and a straggler's time-out does not hurt a server that has recovered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    state: State,
    backoff: Backoff,
}

/// What may be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// As much as other limits allow.
    Free,
    /// One attempt, to see whether it works again.
    Probe,
    /// Nothing before that moment.
    RestUntil(Moment),
}

#[derive(Clone, Copy, Debug)]
enum State {
    Well { since: Moment },
    Resting { cause: Cause, failed_at: Moment, until: Moment },
    Probing { cause: Cause, failed_at: Moment, started_at: Moment },
}

impl Default for State {
    fn default() -> Self {
        Self::Well { since: Moment::ORIGIN }
    }
}

impl Recovery {
    /// Nothing has failed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What may be started now.
    #[must_use]
    pub fn admits(&self, now: Moment) -> Admission {
        let until = match self.state {
            State::Well { .. } => return Admission::Free,
            State::Resting { until, .. } => until,
            State::Probing { started_at, .. } => started_at + PROBE_PATIENCE,
        };
        if now < until { Admission::RestUntil(until) } else { Admission::Probe }
    }

    /// An attempt was started.
    pub fn started(&mut self, now: Moment) {
        if let State::Resting { cause, failed_at, .. } | State::Probing { cause, failed_at, .. } = self.state
        {
            self.state = State::Probing { cause, failed_at, started_at: now };
        }
    }

    /// An attempt worked. True if this ends a time of failures.
    pub fn succeeded(&mut self, now: Moment, started_at: Moment) -> bool {
        let ends = match self.state {
            State::Well { .. } => false,
            State::Resting { failed_at, .. } | State::Probing { failed_at, .. } => started_at >= failed_at,
        };
        if ends {
            self.reset(now);
        }
        ends
    }

    /// An attempt failed. True if it says something new, so that a rest begins: from the first wait of its cause on,
    /// doubled with each failure of the same cause. `jitter` is any random number.
    pub fn failed(&mut self, now: Moment, started_at: Moment, cause: Cause, jitter: u64) -> bool {
        let (is_news, last_cause) = match self.state {
            State::Well { since } => (started_at >= since, None),
            State::Resting { cause, .. } => (false, Some(cause)),
            State::Probing { cause, started_at: probe_at, .. } => (started_at >= probe_at, Some(cause)),
        };
        if is_news {
            if last_cause != Some(cause) {
                self.backoff.reset();
            }
            let wait = self.backoff.failed(cause.first_wait(), cause.greatest_wait(), jitter);
            self.state = State::Resting { cause, failed_at: now, until: now + wait };
        }
        is_news
    }

    /// An attempt was given up without an answer. If it was the probe, the next may start at once.
    pub fn abandoned(&mut self, now: Moment, started_at: Moment) {
        if let State::Probing { cause, failed_at, started_at: probe_at } = self.state
            && started_at >= probe_at
        {
            self.state = State::Resting { cause, failed_at, until: now };
        }
    }

    /// Forgets all failures, such as after a person has changed the settings.
    pub fn reset(&mut self, now: Moment) {
        self.backoff.reset();
        self.state = State::Well { since: now };
    }

    /// Why it rests or probes. `None` if all is well.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        match self.state {
            State::Well { .. } => None,
            State::Resting { cause, .. } | State::Probing { cause, .. } => Some(cause),
        }
    }
}

#[cfg(test)]
mod tests;
