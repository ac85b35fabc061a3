//! What a proxy has seen of one provider: how well it opens streams, and whether it rests.

use std::time::Duration;

use overload::{Backoff, Moment};

use crate::candidate::Candidate;

/// The rest after a first failure.
pub const FIRST_REST: Duration = Duration::from_secs(1);

/// The longest rest.
pub const GREATEST_REST: Duration = Duration::from_secs(60);

/// Opens that have to succeed in a row before the rests start from the first again. One success is not enough: a
/// provider that fails every other time would be asked as often as a sound one.
pub const SUSTAINED_OPENS: u32 = 8;

/// Without a failure for so long, the rests start from the first again as well.
pub const FORGIVEN_AFTER: Duration = Duration::from_secs(10 * 60);

/// A provider that its relay does not know stays out until it is seen with another connection, or for so long; it may come back
/// without any list that says so.
pub const GONE_FIRST: Duration = Duration::from_secs(5);

/// Each time that it is found gone again, it stays out for twice as long, up to so long: a list that is days old costs few opens.
pub const GONE_AT_MOST: Duration = Duration::from_secs(10 * 60);

/// The greatest rest that a provider or relay may ask for itself.
pub const GREATEST_ASKED_REST: Duration = Duration::from_secs(5 * 60);

/// The weight of the newest open in the averages.
const NEWEST: f64 = 0.2;

/// Costs do not tell opens apart that are quicker than this.
const QUICK_MS: f64 = 5.0;

/// A provider that always fails still has a cost that is finite.
const LEAST_SUCCESS: f64 = 0.05;

/// Why an open did not become a stream, where the provider or the way to it is to blame. That the target refuses, or
/// has no name, is no fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its relay says that it is not connected.
    Gone,
    /// No answer within the patience.
    TimedOut,
    /// The way to it broke, or it answered nonsense.
    Failed,
    /// It takes no streams now (paused, full, a limit); and for how long, if it said so.
    Full(Option<Duration>),
    /// It does not go to this target.
    Policy,
}

/// Averages and rests of one provider.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    success: f64,
    latency_ms: Option<f64>,
    /// Streams, and opens under way.
    pub(crate) live: u32,
    backoff: Backoff,
    good_in_a_row: u32,
    failed_at: Option<Moment>,
    rests_until: Moment,
    gone: Option<Gone>,
    pub(crate) used_at: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Gone {
    epoch: u64,
    connection: u64,
    until: Moment,
    times: u32,
}

impl Health {
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            success: 1.0,
            latency_ms: None,
            live: 0,
            backoff: Backoff::new(),
            good_in_a_row: 0,
            failed_at: None,
            rests_until: Moment::ORIGIN,
            gone: None,
            used_at: now,
        }
    }

    /// The lower, the better; `usual_ms` is what opens take elsewhere.
    pub(crate) fn cost(&self, usual_ms: f64) -> f64 {
        let latency = self.latency_ms.unwrap_or(usual_ms).max(QUICK_MS);
        let success = self.success.max(LEAST_SUCCESS);
        f64::from(self.live.saturating_add(1)) * latency / (success * success)
    }

    /// Until when it is not to be asked, if it is not.
    pub(crate) fn rests(&self, candidate: &Candidate, now: Moment) -> Option<Moment> {
        let gone = self.gone.filter(|gone| gone.names(candidate)).map(|gone| gone.until);
        gone.into_iter().chain([self.rests_until]).max().filter(|until| *until > now)
    }

    /// It answered: with a stream, or with what the target said.
    pub(crate) fn answered(&mut self, took: Duration, now: Moment) {
        self.used_at = now;
        self.success += NEWEST * (1.0 - self.success);
        let took_ms = took.as_secs_f64() * 1_000.0;
        let latency = self.latency_ms.unwrap_or(took_ms);
        self.latency_ms = Some(latency + NEWEST * (took_ms - latency));
        self.gone = None;
        self.good_in_a_row = self.good_in_a_row.saturating_add(1);
        if self.good_in_a_row >= SUSTAINED_OPENS {
            self.backoff.reset();
        }
    }

    pub(crate) fn failed(&mut self, fault: Fault, candidate: &Candidate, now: Moment, jitter: u64) {
        self.used_at = now;
        match fault {
            Fault::Policy => return,
            Fault::Gone => {
                let before = self.gone.filter(|gone| gone.names(candidate));
                // Opens that were under way together find it gone together: that is once.
                if before.is_some_and(|gone| gone.until > now) {
                    return;
                }
                let times = before.map_or(0, |gone| gone.times);
                let rest = GONE_FIRST.saturating_mul(1 << times.min(16)).min(GONE_AT_MOST);
                let (epoch, connection) = (candidate.epoch, candidate.connection);
                self.gone =
                    Some(Gone { epoch, connection, until: now + rest, times: times.saturating_add(1) });
                return;
            }
            Fault::Full(Some(rest)) => {
                self.rests_until = self.rests_until.max(now + rest.min(GREATEST_ASKED_REST));
                return;
            }
            Fault::TimedOut | Fault::Failed => self.success -= NEWEST * self.success,
            Fault::Full(None) => {}
        }
        if self.failed_at.is_some_and(|failed_at| now.since(failed_at) > FORGIVEN_AFTER) {
            self.backoff.reset();
        }
        // Opens that were under way together fail together: they are one failure.
        if self.rests_until <= now {
            self.rests_until = now + self.backoff.failed(FIRST_REST, GREATEST_REST, jitter);
        }
        self.failed_at = Some(now);
        self.good_in_a_row = 0;
    }

    /// A new list has it, or does not.
    pub(crate) fn seen(&mut self, candidate: Option<&Candidate>) {
        self.gone = self.gone.filter(|gone| candidate.is_some_and(|candidate| gone.names(candidate)));
    }
}

impl Gone {
    const fn names(&self, candidate: &Candidate) -> bool {
        self.epoch == candidate.epoch && self.connection == candidate.connection
    }
}
