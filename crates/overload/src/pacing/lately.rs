//! The fastest login seen lately, as the measure of a slow one.

use std::time::Duration;

use super::{SLOW_FACTOR, SLOW_FLOOR};
use crate::Moment;

/// The past is kept in halves of this length: "lately" is between one and two of them.
pub(super) const HALF: Duration = Duration::from_secs(30);

/// The smallest latency of the half that runs and of the one before it. So a server that has become slow for good is
/// measured by its new speed after a minute at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lately {
    half_began: Moment,
    smallest: Option<Duration>,
    smallest_before: Option<Duration>,
}

impl Lately {
    pub(super) const fn new() -> Self {
        Self { half_began: Moment::ORIGIN, smallest: None, smallest_before: None }
    }

    /// Takes note of a latency and judges it.
    pub(super) fn is_slow(&mut self, now: Moment, latency: Duration) -> bool {
        let elapsed = now.since(self.half_began);
        if elapsed >= HALF {
            self.smallest_before = if elapsed < HALF * 2 { self.smallest } else { None };
            self.smallest = None;
            self.half_began = now;
        }
        let smallest = self.smallest.map_or(latency, |known| known.min(latency));
        self.smallest = Some(smallest);
        let lately = self.smallest_before.map_or(smallest, |known| known.min(smallest));
        latency > lately.saturating_mul(SLOW_FACTOR).max(SLOW_FLOOR)
    }
}
