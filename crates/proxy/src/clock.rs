//! The clocks that the rules are told.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use overload::Moment;

/// A monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a driver's own clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Moment {
        Moment::from_micros(micros(self.0.elapsed()))
    }
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a driver's own clock")]
pub(crate) fn unix_ms() -> u64 {
    micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()) / 1_000
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
