//! A token bucket in whole numbers, and a rate limit for log lines on top of it.

use std::time::Duration;

use crate::Moment;

/// So many per interval, and at most `burst` at once after a quiet time. A rate of zero means no limit.
///
/// The level is held in tokens times microseconds of the interval, so that refilling is exact however often it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    rate: u32,
    interval_us: u64,
    burst: u32,
    level: u128,
    filled_at: Moment,
}

impl TokenBucket {
    /// `rate` tokens each second. Starts full. A burst of zero counts as one: otherwise nothing could ever pass.
    #[must_use]
    pub fn per_second(rate: u32, burst: u32) -> Self {
        Self::new(rate, Duration::from_secs(1), burst)
    }

    /// `rate` tokens each `interval` (at least a microsecond). Starts full.
    #[must_use]
    pub fn new(rate: u32, interval: Duration, burst: u32) -> Self {
        let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX).max(1);
        let burst = burst.max(1);
        Self { rate, interval_us, burst, level: full(burst, interval_us), filled_at: Moment::ORIGIN }
    }

    /// Whole tokens there at `now`; `usize::MAX` without a limit.
    #[must_use]
    pub fn available(&self, now: Moment) -> usize {
        if self.rate == 0 {
            return usize::MAX;
        }
        usize::try_from(self.level_at(now) / u128::from(self.interval_us)).unwrap_or(usize::MAX)
    }

    /// Takes one token if there is one.
    pub fn take(&mut self, now: Moment) -> bool {
        let there = self.available(now) > 0;
        if there {
            self.spend(now, 1);
        }
        there
    }

    /// Takes `count` tokens, or all there are if fewer: what has happened is not undone by a missing token.
    pub fn spend(&mut self, now: Moment, count: usize) {
        self.level = self.level_at(now).saturating_sub(count as u128 * u128::from(self.interval_us));
        self.filled_at = self.filled_at.max(now);
    }

    /// The first moment, not before `now`, at which a token is there.
    #[must_use]
    pub fn next_at(&self, now: Moment) -> Moment {
        let missing = u128::from(self.interval_us).saturating_sub(self.level_at(now));
        if self.rate == 0 || missing == 0 {
            return now;
        }
        let micros = missing.div_ceil(u128::from(self.rate));
        self.filled_at.max(now) + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Another rate and burst from now on. What has been saved up stays, as far as the new burst allows; from no limit
    /// to one, it starts full.
    pub fn set_rate(&mut self, now: Moment, rate: u32, burst: u32) {
        let burst = burst.max(1);
        let greatest = full(burst, self.interval_us);
        self.level = if self.rate == 0 { greatest } else { self.level_at(now).min(greatest) };
        self.filled_at = self.filled_at.max(now);
        (self.rate, self.burst) = (rate, burst);
    }

    fn level_at(&self, now: Moment) -> u128 {
        let gained = now.since(self.filled_at).as_micros() * u128::from(self.rate);
        (self.level + gained).min(full(self.burst, self.interval_us))
    }
}

fn full(burst: u32, interval_us: u64) -> u128 {
    u128::from(burst) * u128::from(interval_us)
}

/// Lets events through at a rate and counts those it holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimited {
    bucket: TokenBucket,
    suppressed: u64,
}

impl RateLimited {
    /// Passes what `bucket` has tokens for.
    #[must_use]
    pub const fn new(bucket: TokenBucket) -> Self {
        Self { bucket, suppressed: 0 }
    }

    /// `None` if the event is to be held back; else how many were held back since the last that passed.
    pub fn allow(&mut self, now: Moment) -> Option<u64> {
        if self.bucket.take(now) {
            return Some(std::mem::take(&mut self.suppressed));
        }
        self.suppressed = self.suppressed.saturating_add(1);
        None
    }

    /// How many were held back since the last that passed.
    #[must_use]
    pub const fn suppressed(&self) -> u64 {
        self.suppressed
    }
}

#[cfg(test)]
mod tests;
