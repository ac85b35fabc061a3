//! How many requests a server really carries: a limit that finds itself, by additive increase and multiplicative decrease.
//!
//! Beyond a point more requests at once make each of them slower and none of them sooner. The limit is measured against the
//! fastest that queries have been lately, window by window, from two sums that are counted anyway.

use crate::Moment;
use std::time::Duration;

/// The limit never falls below this, unless the pool is smaller: enough that a few held transactions do not stop a pool.
pub const LEAST_RUNNING: usize = 4;

/// A window is judged after so long, if it has seen [`LEAST_QUERIES`].
pub const WINDOW: Duration = Duration::from_millis(500);

/// Fewer queries say nothing of their speed.
pub const LEAST_QUERIES: u64 = 20;

/// After so long a window with fewer queries ends as well.
pub const LONGEST_WINDOW: Duration = Duration::from_secs(5);

/// Queries are slow if they take, on average, more than so many times the fastest window lately.
pub const TOLERANCE: u64 = 2;

/// And this much more: what is not felt is not slow.
pub const SLACK: Duration = Duration::from_millis(1);

/// "Lately" is between one and two of these.
pub const MEMORY: Duration = Duration::from_mins(5);

/// Queries that have ended since the start, and the time that they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryTotals {
    /// How many.
    pub count: u64,
    /// Microseconds.
    pub time_us: u64,
}

/// The limit of one pool.
#[derive(Clone, Copy, Debug)]
pub struct RunningLimit {
    /// In thousandths, so that a decrease of a small limit is not lost to rounding.
    limit_milli: u64,
    greatest: usize,
    window: Option<Window>,
    /// Somebody was held back in this window, or would have been.
    is_reached: bool,
    memory_began: Moment,
    fastest_us: Option<u64>,
    fastest_before_us: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began: Moment,
    totals: QueryTotals,
}

impl RunningLimit {
    /// No limit below the `greatest`, which is the size of the pool.
    #[must_use]
    pub const fn new(greatest: usize) -> Self {
        Self {
            limit_milli: greatest as u64 * 1_000,
            greatest,
            window: None,
            is_reached: false,
            memory_began: Moment::ORIGIN,
            fastest_us: None,
            fastest_before_us: None,
        }
    }

    /// How many may run now.
    #[must_use]
    pub fn limit(&self) -> usize {
        usize::try_from(self.limit_milli / 1_000).unwrap_or(usize::MAX)
    }

    /// Somebody is held back by the limit, or would be.
    pub const fn reached(&mut self) {
        self.is_reached = true;
    }

    /// Looks at what has ended until now, and judges the window if it is over. True if the limit has changed.
    pub fn look(&mut self, now: Moment, totals: QueryTotals, greatest: usize) -> bool {
        let before = self.limit();
        if greatest != self.greatest {
            // Whoever was at the greatest stays there.
            let is_open = self.limit() >= self.greatest;
            self.greatest = greatest;
            let most = greatest as u64 * 1_000;
            self.limit_milli = if is_open { most } else { self.limit_milli.min(most) };
        }
        let window = *self.window.get_or_insert(Window { began: now, totals });
        let elapsed = now.since(window.began);
        let count = totals.count.saturating_sub(window.totals.count);
        let is_whole = elapsed >= WINDOW && count >= LEAST_QUERIES;
        if is_whole || elapsed >= LONGEST_WINDOW {
            let mean_us =
                is_whole.then(|| totals.time_us.saturating_sub(window.totals.time_us) / count.max(1));
            self.judge(now, mean_us);
            self.window = Some(Window { began: now, totals });
            self.is_reached = false;
        }
        self.limit() != before
    }

    fn judge(&mut self, now: Moment, mean_us: Option<u64>) {
        let slow = mean_us.is_some_and(|mean_us| self.is_slow(now, mean_us));
        let least = LEAST_RUNNING.min(self.greatest) as u64 * 1_000;
        let most = self.greatest as u64 * 1_000;
        if slow {
            self.limit_milli = (self.limit_milli * 9 / 10).max(least);
        } else if self.is_reached {
            // Too few queries to judge by, and somebody waits: the servers are held, not busy.
            self.limit_milli = (self.limit_milli + 1_000).min(most);
        }
    }

    fn is_slow(&mut self, now: Moment, mean_us: u64) -> bool {
        let elapsed = now.since(self.memory_began);
        if elapsed >= MEMORY {
            self.fastest_before_us = if elapsed < 2 * MEMORY { self.fastest_us } else { None };
            self.fastest_us = None;
            self.memory_began = now;
        }
        let fastest = self.fastest_us.map_or(mean_us, |known| known.min(mean_us));
        self.fastest_us = Some(fastest);
        let lately = self.fastest_before_us.map_or(fastest, |known| known.min(fastest));
        let slack_us = u64::try_from(SLACK.as_micros()).unwrap_or(u64::MAX);
        mean_us > lately.saturating_mul(TOLERANCE).saturating_add(slack_us)
    }
}

#[cfg(test)]
mod tests;
