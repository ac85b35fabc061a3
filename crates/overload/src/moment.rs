//! Time as the rules see it: a number that the driver hands in.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Microseconds on a monotonic clock since an origin of the driver's choosing. Rules never read a clock; they are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The origin.
    pub const ORIGIN: Self = Self(0);

    /// The moment that many microseconds after the origin.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the origin.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences_stop_at_the_ends_of_time() {
        let last = Moment::from_micros(u64::MAX);
        assert_eq!(last + Duration::from_micros(1), last);
        assert_eq!(Moment::ORIGIN + Duration::MAX, last);
        assert_eq!(Moment::from_micros(5) - Duration::from_micros(6), Moment::ORIGIN);
        assert_eq!(Moment::ORIGIN.since(last), Duration::ZERO);
        assert_eq!(Moment::from_micros(7).since(Moment::from_micros(5)), Duration::from_micros(2));
    }
}
