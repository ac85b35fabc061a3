//! How many opens may be second attempts.
//!
//! Retries are paid from a budget, so that trouble costs no more work than health: with every provider failing, a
//! proxy makes a tenth more attempts than it has customers' opens, not three times as many.

use std::time::Duration;

use overload::Moment;

/// Opens and retries are counted over this span.
pub const WINDOW: Duration = Duration::from_secs(10);

/// A retry for each so many opens in the window.
pub const OPENS_PER_RETRY: u32 = 10;

/// Retries that a window allows however few opens it has seen: one a second. Without it, a proxy with a single customer
/// could never move on.
pub const RETRIES_ALWAYS: u32 = 10;

const SLOTS: usize = 10;
const SLOT_US: u64 = 1_000_000;

/// Counts opens and retries of the last ten seconds, by the second.
#[derive(Clone, Debug, Default)]
pub struct RetryBudget {
    slots: [Slot; SLOTS],
    refused: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    second: u64,
    opens: u32,
    retries: u32,
}

impl RetryBudget {
    /// Nothing has been counted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A customer has asked for a stream.
    pub fn opened(&mut self, now: Moment) {
        let slot = self.slot(now);
        slot.opens = slot.opens.saturating_add(1);
    }

    /// Takes a retry, if there is one.
    pub fn take_retry(&mut self, now: Moment) -> bool {
        let (opens, retries) = self.counts(now);
        let allowed = retries < RETRIES_ALWAYS.max(opens / OPENS_PER_RETRY);
        if allowed {
            self.slot(now).retries += 1;
        } else {
            self.refused = self.refused.saturating_add(1);
        }
        allowed
    }

    /// Opens and retries within the window.
    #[must_use]
    pub fn counts(&self, now: Moment) -> (u32, u32) {
        let oldest = second(now).saturating_sub(SLOTS as u64 - 1);
        let current = self.slots.iter().filter(|slot| slot.second >= oldest);
        current.fold((0, 0), |(opens, retries), slot| {
            (slot.opens.saturating_add(opens), slot.retries.saturating_add(retries))
        })
    }

    /// Retries that were asked for and not there, since the start.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    #[expect(clippy::indexing_slicing, reason = "the remainder is below the number of slots")]
    fn slot(&mut self, now: Moment) -> &mut Slot {
        let second = second(now);
        let slot = &mut self.slots[usize::try_from(second % SLOTS as u64).unwrap_or_default()];
        if slot.second != second {
            *slot = Slot { second, ..Slot::default() };
        }
        slot
    }
}

const fn second(now: Moment) -> u64 {
    now.as_micros() / SLOT_US
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_micros(1_000 * ms)
    }

    #[test]
    fn no_more_than_a_tenth_of_the_opens_are_retried() {
        let mut budget = RetryBudget::new();
        let mut retries = 0;
        for open in 0..10_000_u64 {
            budget.opened(at(open));
            // Every attempt fails, and each open would like to be tried twice more.
            retries += u32::from(budget.take_retry(at(open))) + u32::from(budget.take_retry(at(open)));
        }
        assert!((900..=1_000 + RETRIES_ALWAYS).contains(&retries), "{retries}");
        assert_eq!(budget.refused(), u64::from(20_000 - retries));
    }

    #[test]
    fn a_lonely_customer_can_move_on_and_the_window_ends() {
        let mut budget = RetryBudget::new();
        budget.opened(at(0));
        assert_eq!((0..100).filter(|_| budget.take_retry(at(0))).count(), RETRIES_ALWAYS as usize);
        assert!(!budget.take_retry(at(9_999)));
        assert!(budget.take_retry(at(10_000)));
        assert_eq!(budget.counts(at(10_000)), (0, 1));
    }
}
