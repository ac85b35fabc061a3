//! How many relays may be late, and how many removed, at once.

/// For so many relays (the first number): how many may be late at once before that is the judge's problem, and how many may be
/// removed within one window. In between, straight lines, rounded down for the late and up for the removed; beyond the last, in
/// proportion.
///
/// One of two and one of three: the smallest networks lose a relay too. Two of ten: a second one that dies while the first is
/// being judged is no reason to stop. Four of 32: an eighth, about what Eureka allows. One of one is everybody: it takes an
/// answer of its own host.
const TABLE: [(u32, u32, u32); 6] = [(0, 0, 0), (1, 1, 1), (2, 1, 1), (3, 1, 1), (10, 2, 1), (32, 4, 2)];

/// Limits of a network of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// With more relays late than this, nobody is removed.
    pub late_at_once: u32,
    /// The most that are removed within one window.
    pub removed_in_window: u32,
}

impl Limits {
    /// For so many relays that are not removed.
    #[must_use]
    pub fn of(relays: u32) -> Self {
        let (most, late, removed) = TABLE[TABLE.len() - 1];
        if relays >= most {
            let scaled = |value: u32| u32::try_from(u64::from(relays) * u64::from(value) / u64::from(most));
            return Self {
                late_at_once: scaled(late).unwrap_or(late),
                removed_in_window: scaled(removed).unwrap_or(removed),
            };
        }
        let above = TABLE.iter().position(|(size, ..)| *size > relays).unwrap_or(TABLE.len() - 1);
        let (low, high) = (TABLE[above.saturating_sub(1)], TABLE[above]);
        let (above, span) = (relays - low.0, high.0 - low.0);
        Self {
            late_at_once: low.1 + (high.1 - low.1) * above / span,
            // Those that may be late at once are removed within a few windows, also when the first of them are.
            removed_in_window: low.2 + ((high.2 - low.2) * above).div_ceil(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_for_the_sizes_that_it_names_and_between_them() {
        for (relays, late_at_once, removed_in_window) in [
            (0, 0, 0),
            (1, 1, 1),
            (2, 1, 1),
            (3, 1, 1),
            (9, 1, 1),
            (10, 2, 1),
            (20, 2, 2),
            (21, 3, 2),
            (31, 3, 2),
            (32, 4, 2),
            (33, 4, 2),
            (1_000, 125, 62),
        ] {
            assert_eq!(Limits::of(relays), Limits { late_at_once, removed_in_window }, "{relays} relays");
        }
    }

    #[test]
    fn more_relays_never_have_lower_limits_and_from_two_on_everybody_is_too_many() {
        for relays in 1..2_000 {
            let (limits, next) = (Limits::of(relays), Limits::of(relays + 1));
            assert!(
                next.late_at_once >= limits.late_at_once
                    && next.removed_in_window >= limits.removed_in_window
            );
            assert!(limits.removed_in_window <= limits.late_at_once);
            assert!(relays == 1 || limits.late_at_once * 2 <= relays, "{relays}");
        }
        assert!(Limits::of(u32::MAX).late_at_once > 500_000_000);
    }
}
