//! The least that the last looks have left over.

use overload::Moment;
use std::time::Duration;

/// What was left over in each look of the last `settle` to twice that time: the least of it. What somebody has just given
/// up may still be on its way to the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Floor {
    since: Option<Moment>,
    current: usize,
    before: Option<usize>,
}

impl Floor {
    /// A look that was begun at `at` left `places`.
    pub(crate) fn note(&mut self, at: Moment, places: usize, settle: Duration) {
        match self.since {
            Some(since) if at.since(since) < settle => self.current = self.current.min(places),
            Some(_) => {
                self.before = Some(self.current);
                (self.since, self.current) = (Some(at), places);
            }
            None => (self.since, self.current) = (Some(at), places),
        }
    }

    /// Nothing before the looks have gone on for `settle`.
    pub(crate) fn places(&self) -> usize {
        self.before.map_or(0, |before| before.min(self.current))
    }

    /// When the next look may raise it.
    pub(crate) fn rises_at(&self, settle: Duration) -> Option<Moment> {
        self.since.map(|since| since + settle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_millis(500);

    fn at(millis: u64) -> Moment {
        Moment::from_micros(millis * 1000)
    }

    #[test]
    fn a_place_that_has_just_become_free_is_not_believed_before_it_has_been_free_for_long() {
        let mut floor = Floor::default();
        floor.note(at(0), 10, SETTLE);
        assert_eq!(floor.places(), 0, "one look is none");
        floor.note(at(500), 10, SETTLE);
        assert_eq!(floor.places(), 10);
        floor.note(at(600), 4, SETTLE);
        assert_eq!(floor.places(), 4, "less counts at once");
        floor.note(at(700), 10, SETTLE);
        floor.note(at(1000), 10, SETTLE);
        assert_eq!(floor.places(), 4, "the window in which it was less has only just ended");
        floor.note(at(1500), 10, SETTLE);
        assert_eq!(floor.places(), 10);
    }
}
