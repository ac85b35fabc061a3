//! What a server has been seen to carry, where it has said that it carries no more.

use overload::Moment;
use std::time::Duration;

/// An estimate grows by one in this time.
pub const GROWTH_INTERVAL: Duration = Duration::from_secs(10);

/// The limit of the server, of a role or of a database, learnt from "too many connections". Unknown until that is said;
/// then what stood at that moment, and one more every [`GROWTH_INTERVAL`], until it is back where it had been.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    shrunk: Option<Shrunk>,
}

#[derive(Clone, Copy, Debug)]
struct Shrunk {
    at: Moment,
    limit: usize,
    /// What had been allowed before.
    until: usize,
}

impl Estimate {
    /// "Too many connections": so many `stand` for certain, and so many were `tried` beside them.
    pub fn refused(&mut self, now: Moment, stand: usize, tried: usize) {
        let asked = stand + tried.max(1);
        let until = self.shrunk.map_or(asked, |before| before.until.max(asked));
        // Of a wave that was refused together, the later answers say no more than the first.
        let limit = self.limit(now).map_or(stand, |limit| limit.min(stand)).max(1);
        self.shrunk = Some(Shrunk { at: now, limit, until });
    }

    /// The most that should stand now. `None`: nothing is known against more.
    #[must_use]
    pub fn limit(&self, now: Moment) -> Option<usize> {
        let shrunk = self.shrunk?;
        let grown = now.since(shrunk.at).as_micros() / GROWTH_INTERVAL.as_micros();
        let limit = shrunk.limit.saturating_add(usize::try_from(grown).unwrap_or(usize::MAX));
        (limit < shrunk.until).then_some(limit)
    }

    /// When it next grows.
    #[must_use]
    pub fn grows_at(&self, now: Moment) -> Option<Moment> {
        self.limit(now)?;
        let shrunk = self.shrunk?;
        let grown = now.since(shrunk.at).as_micros() / GROWTH_INTERVAL.as_micros();
        Some(shrunk.at + GROWTH_INTERVAL * u32::try_from(grown + 1).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn it_shrinks_to_what_stands_and_grows_back_slowly() {
        let mut estimate = Estimate::default();
        assert_eq!((estimate.limit(at(0)), estimate.grows_at(at(0))), (None, None));
        estimate.refused(at(0), 20, 3);
        assert_eq!(estimate.limit(at(9)), Some(20));
        assert_eq!(estimate.grows_at(at(9)), Some(at(10)));
        assert_eq!(estimate.limit(at(10)), Some(21));
        assert_eq!(estimate.limit(at(29)), Some(22));
        assert_eq!(estimate.limit(at(30)), None, "as much as had been asked for");
    }

    #[test]
    fn a_wave_of_refusals_is_one_and_one_connection_may_always_be_tried() {
        let mut estimate = Estimate::default();
        estimate.refused(at(0), 8, 4);
        estimate.refused(at(0), 8, 3);
        estimate.refused(at(1), 9, 2);
        assert_eq!(estimate.limit(at(1)), Some(8));
        estimate.refused(at(2), 0, 1);
        assert_eq!(estimate.limit(at(2)), Some(1));
        // It does not forget how far it may grow.
        assert_eq!(estimate.limit(at(2 + 10 * 10)), Some(11));
    }
}
