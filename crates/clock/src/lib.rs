//! The clocks of the roles: they read them here, and tell the rules.

use overload::Moment;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// A monotonic clock that begins when it is made. In tests whose time is paused, it is paused too.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Begins now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The moment that it is.
    #[must_use]
    pub fn now(self) -> Moment {
        Moment::from_micros(u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// A moment as tokio's timers want it.
    #[must_use]
    pub fn instant(self, moment: Moment) -> Instant {
        self.0 + Duration::from_micros(moment.as_micros())
    }
}

/// Milliseconds since 1970.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where the time of day is read")]
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
