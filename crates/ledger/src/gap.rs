//! Gaps: times in which the ledger could not be written to. Holds that stood then stand that much longer.

/// A pause between two signs of life of the ledger that is longer than this is a gap, ms.
pub const LEAST_GAP_MS: u64 = 30_000;
/// How often an api gives the ledger's sign of life, ms.
pub const PULSE_MS: u64 = 5_000;
/// Gaps are remembered for so long, and extend holds by no more than so much altogether, minutes: a day, which is how long a
/// hold of the past is kept.
pub const MOST_EXTENSION_MINUTES: u32 = 1_440;

/// A gap, ms since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last sign of life before it.
    pub from_ms: u64,
    /// The first one behind it, or now, if there has been none.
    pub until_ms: u64,
}

/// By how many minutes holds count longer at this time, with these gaps. A hold that had ended before a gap is not brought back:
/// that would take a `now` within the gap, when nobody asks.
#[must_use]
pub fn extension_minutes(gaps: &[Gap], now_ms: u64) -> u32 {
    let oldest_ms = now_ms.saturating_sub(u64::from(MOST_EXTENSION_MINUTES) * 60_000);
    let minutes = gaps.iter().filter(|gap| gap.until_ms > oldest_ms).map(|gap| {
        let length_ms = gap.until_ms.saturating_sub(gap.from_ms);
        u32::try_from(length_ms.div_ceil(60_000)).unwrap_or(u32::MAX)
    });
    minutes.fold(0, u32::saturating_add).min(MOST_EXTENSION_MINUTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Minute, Slice};

    const MIB: u64 = 1 << 20;
    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn gaps_add_up_in_whole_minutes_and_are_forgotten_after_a_day() {
        let gap = |from_ms, until_ms| Gap { from_ms, until_ms };
        assert_eq!(extension_minutes(&[], HOUR_MS), 0);
        let gaps = [gap(0, 60_001), gap(HOUR_MS, HOUR_MS + 600_000)];
        assert_eq!(extension_minutes(&gaps, 2 * HOUR_MS), 12);
        assert_eq!(extension_minutes(&gaps, 25 * HOUR_MS), 10);
        assert_eq!(extension_minutes(&[gap(0, 100 * HOUR_MS)], 100 * HOUR_MS), MOST_EXTENSION_MINUTES);
    }

    #[test]
    fn a_hold_outlives_an_outage_that_it_stood_in_and_one_that_was_over_does_not_come_back() {
        let mut slice = Slice::new(8 * MIB);
        slice.hold(4 * MIB, Minute::at_or_after(HOUR_MS), 0).unwrap();
        slice.hold(4 * MIB, Minute::at_or_after(2 * HOUR_MS), 0).unwrap();
        // The first had ended, the second stood when the outage began; it ends while nobody can settle it.
        let gap = Gap { from_ms: HOUR_MS + 60_000, until_ms: 3 * HOUR_MS };
        slice.set_extension_minutes(extension_minutes(&[gap], gap.until_ms));
        assert_eq!(slice.held_bytes(gap.until_ms), 4 * MIB);
        assert_eq!(slice.held_bytes(2 * HOUR_MS + gap.until_ms - gap.from_ms), 0, "it ends that much later");
    }
}
