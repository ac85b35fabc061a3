//! Exponential back-off with jitter. The chance comes from the caller, so that a run can be repeated.

use std::time::Duration;

/// The jitter takes away at most one part in this many of a wait. Taking away, not adding, keeps the greatest wait
/// the greatest.
pub const JITTER_SHARE: u32 = 2;

/// How often it has failed in a row, and what wait follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Nothing has failed yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { failures: 0 }
    }

    /// Counts a failure and says how long to rest: `first`, doubled with every failure in a row, at most `greatest`;
    /// then shortened by chance by up to half, after the cap, so that those who have reached it spread as well.
    /// `jitter` is any random number.
    pub fn failed(&mut self, first: Duration, greatest: Duration, jitter: u64) -> Duration {
        let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        let wait = first.saturating_mul(doubled).min(greatest);
        wait - part_of(wait / JITTER_SHARE, jitter)
    }

    /// It has worked: the next failure is the first again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failures in a row.
    #[must_use]
    pub const fn failures(self) -> u32 {
        self.failures
    }
}

/// The share of `span` that `jitter` stands for: nothing at 0, nearly all at its greatest value.
fn part_of(span: Duration, jitter: u64) -> Duration {
    let micros = (span.as_micros() * u128::from(jitter)) >> u64::BITS;
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
