//! How long one candidate may take before another is tried.
//!
//! A fixed limit of 3 s against connects that have come to take 14 s throws nearly every attempt away, and each costs
//! the work of a whole one. So patience follows what is seen: an attempt that ran out doubles it, and what connects
//! brings it down again to a multiple of what it took (in the manner of RFC 6298).

use std::time::Duration;

/// The least patience.
pub const LEAST: Duration = Duration::from_secs(3);

/// The greatest.
pub const GREATEST: Duration = Duration::from_secs(30);

/// Patience that is too long comes down by one part in this many with each open.
const DECAY: u32 = 8;

/// Follows the time that opens take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    smoothed: Option<Duration>,
    variation: Duration,
    current: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}

impl Patience {
    /// Nothing has been seen: the least.
    #[must_use]
    pub const fn new() -> Self {
        Self { smoothed: None, variation: Duration::ZERO, current: LEAST }
    }

    /// How long to wait for the next candidate.
    #[must_use]
    pub const fn current(&self) -> Duration {
        self.current
    }

    /// How long opens take, smoothed; `None` before the first.
    #[must_use]
    pub const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// An open was answered after `took`.
    pub fn answered(&mut self, took: Duration) {
        let smoothed = self.smoothed.unwrap_or(took);
        let off = took.abs_diff(smoothed);
        self.variation = match self.smoothed {
            Some(_) => (self.variation * 3 + off) / 4,
            None => took / 2,
        };
        self.smoothed = Some((smoothed * 7 + took) / 8);
        let wanted = self.wanted();
        self.current = if wanted >= self.current {
            wanted
        } else {
            (self.current - (self.current - wanted) / DECAY).max(LEAST)
        };
    }

    /// An open was given up after `waited`. Only a wait as long as the current patience says anything: several that
    /// run out together double it once.
    pub fn ran_out(&mut self, waited: Duration) {
        if waited >= self.current {
            self.current = (waited * 2).clamp(LEAST, GREATEST);
        }
    }

    fn wanted(&self) -> Duration {
        let smoothed = self.smoothed.unwrap_or_default();
        (smoothed + self.variation * 4).clamp(LEAST, GREATEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connects_of_14_seconds_are_waited_for() {
        let mut patience = Patience::new();
        let mut random = fastrand::Rng::with_seed(52);
        let mut abandoned = 0;
        for _ in 0..1_000 {
            let takes = Duration::from_millis(random.u64(10_000..18_000));
            if takes <= patience.current() {
                patience.answered(takes);
            } else {
                abandoned += 1;
                patience.ran_out(patience.current());
            }
        }
        assert!(abandoned < 50, "{abandoned} of 1,000 were given up");
    }

    #[test]
    fn patience_comes_back_once_connects_are_quick() {
        let mut patience = Patience::new();
        for _ in 0..10 {
            patience.ran_out(patience.current());
        }
        assert_eq!(patience.current(), GREATEST);
        for _ in 0..60 {
            patience.answered(Duration::from_millis(40));
        }
        assert!(patience.current() < LEAST * 2, "{:?}", patience.current());
    }

    #[test]
    fn many_that_run_out_together_double_it_once() {
        let mut patience = Patience::new();
        for _ in 0..100 {
            patience.ran_out(LEAST);
        }
        assert_eq!(patience.current(), LEAST * 2);
    }
}
