//! A histogram of latencies with fixed bounds: no allocation, a few hundred bytes.

use std::time::Duration;

/// Inclusive upper bounds of the buckets in microseconds: 1, 2, 5 in each decade from 100 µs to 200 s, so that limits
/// people write down fall on a bound. What is longer goes into one more bucket.
pub const BOUNDS_US: [u64; 20] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
];

/// How many latencies fell between which bounds. All counts saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyHistogram {
    counts: [u64; BOUNDS_US.len() + 1],
    count: u64,
    sum_us: u64,
}

impl LatencyHistogram {
    /// Nothing recorded.
    #[must_use]
    pub const fn new() -> Self {
        Self { counts: [0; BOUNDS_US.len() + 1], count: 0, sum_us: 0 }
    }

    /// Counts one latency, in whole microseconds.
    pub fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS_US.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.counts.get_mut(at) {
            *bucket = bucket.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum_us = self.sum_us.saturating_add(micros);
    }

    /// Adds what another one has counted, such as that of a pool that goes away.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine = mine.saturating_add(theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    /// How many were recorded.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all recorded, in microseconds.
    #[must_use]
    pub const fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// The count of each bucket by itself (not summed up), in the order of [`BOUNDS_US`], each with its inclusive upper
    /// bound in microseconds; last the bucket without one.
    pub fn buckets(&self) -> impl ExactSizeIterator<Item = (Option<u64>, u64)> + '_ {
        self.counts.iter().enumerate().map(|(at, count)| (BOUNDS_US.get(at).copied(), *count))
    }
}

#[cfg(test)]
mod tests;
