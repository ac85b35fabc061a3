//! The one place that reads the clock, once a turn.

use overload::Moment;
use std::time::{Duration, Instant};

/// A monotonic clock whose origin is the start of the reactor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the reactor's clock")]
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Now.
    #[expect(clippy::disallowed_methods, reason = "this is the reactor's clock")]
    pub(crate) fn now(&self) -> Moment {
        let micros = Instant::now().duration_since(self.origin).as_micros();
        Moment::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// How long to sleep at `now` until the first of several deadlines; `None` is for ever.
pub(crate) fn sleep_until(
    now: Moment,
    deadlines: impl IntoIterator<Item = Option<Moment>>,
) -> Option<Duration> {
    deadlines.into_iter().flatten().min().map(|deadline| deadline.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_until_the_first_deadline_and_for_ever_without_one() {
        let now = Moment::from_micros(1_000);
        let later = |micros| Some(Moment::from_micros(micros));
        assert_eq!(sleep_until(now, [later(9_000), None, later(1_500)]), Some(Duration::from_micros(500)));
        assert_eq!(sleep_until(now, [later(10), later(9_000)]), Some(Duration::ZERO));
        assert_eq!(sleep_until(now, [None, None]), None);
    }
}
