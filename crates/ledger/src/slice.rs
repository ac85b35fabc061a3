//! One slice of a grant: what is spent, held and free.

use std::collections::BTreeMap;

use crate::{LEAST_BLOCK_BYTES, Minute, most_carried_bytes};

/// The most minutes of the future that a slice has holds for: a day. A hold of a later minute is refused.
pub const MOST_MINUTES: usize = 1_440;

/// A block that was taken from a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its size.
    pub bytes: u64,
    /// Until when it counts if nobody settles it.
    pub until: Minute,
}

/// Why a slice gives no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Everything is used: waiting does not help.
    #[error("the grant is used up")]
    Spent,
    /// What is not used is held: it may come back until the minute named.
    #[error("what is left of the grant is held by open contracts")]
    Held {
        /// The first minute in which a hold ends by itself.
        until: Minute,
    },
    /// More was used than was given: nothing is held until that is covered.
    #[error("more was used than the grants gave")]
    Overdrawn,
    /// The minute is past, or more than a day ahead.
    #[error("a block cannot be held until then")]
    Minute,
}

/// Where the bytes of a settlement went. Together they are all that was used, up to what a relay can have carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    /// Taken from what was free.
    pub spent_bytes: u64,
    /// Beyond it: a debt, until it is covered.
    pub overdrawn_bytes: u64,
}

/// The account book of an account with one slice. `store` does the same arithmetic in the database; a test there compares the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    given_bytes: u64,
    spent_bytes: u64,
    overdrawn_bytes: u64,
    extension_minutes: u32,
    holds: BTreeMap<Minute, u64>,
}

impl Slice {
    /// A slice of which nothing is used.
    #[must_use]
    pub fn new(given_bytes: u64) -> Self {
        Self { given_bytes, spent_bytes: 0, overdrawn_bytes: 0, extension_minutes: 0, holds: BTreeMap::new() }
    }

    /// What was used and settled; never more than was given.
    #[must_use]
    pub fn spent_bytes(&self) -> u64 {
        self.spent_bytes
    }

    /// What was used beyond that, and is not covered.
    #[must_use]
    pub fn overdrawn_bytes(&self) -> u64 {
        self.overdrawn_bytes
    }

    /// From now on holds count so much longer ([`crate::extension_minutes`]).
    pub fn set_extension_minutes(&mut self, minutes: u32) {
        self.extension_minutes = minutes;
    }

    /// What open contracts hold at this time.
    #[must_use]
    pub fn held_bytes(&self, now_ms: u64) -> u64 {
        let live = self.holds.iter().filter(|(minute, _)| self.counts(**minute, now_ms));
        live.fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// What can be held at this time; never below zero, also if a settlement came behind the end of its hold.
    #[must_use]
    pub fn free_bytes(&self, now_ms: u64) -> u64 {
        self.given_bytes.saturating_sub(self.spent_bytes).saturating_sub(self.held_bytes(now_ms))
    }

    /// Holds a block of `wanted` bytes, or of what is free if that is less but not less than [`LEAST_BLOCK_BYTES`].
    ///
    /// # Errors
    /// [`Refusal`]; then nothing has changed.
    pub fn hold(&mut self, wanted: u64, until: Minute, now_ms: u64) -> Result<Held, Refusal> {
        self.forget_past(now_ms);
        if self.overdrawn_bytes > 0 {
            return Err(Refusal::Overdrawn);
        }
        let ahead_ms = until.begins_at_ms().saturating_sub(now_ms);
        if !until.counts_at(now_ms) || ahead_ms > MOST_MINUTES as u64 * 60_000 {
            return Err(Refusal::Minute);
        }
        let free = self.free_bytes(now_ms);
        let bytes = wanted.max(LEAST_BLOCK_BYTES).min(free);
        if bytes < LEAST_BLOCK_BYTES {
            return Err(self.refusal(now_ms));
        }
        *self.holds.entry(until).or_insert(0) += bytes;
        Ok(Held { bytes, until })
    }

    /// Ends a hold with what was used under it, also beyond it: that is all charged, up to what one start of a relay can have carried,
    /// first to what is free, and what is more to the debt. A hold is settled once; whoever calls this keeps that promise.
    pub fn settle(&mut self, held: Held, used_bytes: u64, now_ms: u64) -> Charged {
        if let Some(bytes) = self.holds.get_mut(&held.until) {
            *bytes = bytes.saturating_sub(held.bytes);
        }
        self.forget_past(now_ms);
        let billed_bytes = used_bytes.min(most_carried_bytes(held.bytes));
        let spent_bytes = billed_bytes.min(self.free_bytes(now_ms));
        let charged = Charged { spent_bytes, overdrawn_bytes: billed_bytes - spent_bytes };
        self.spent_bytes += charged.spent_bytes;
        self.overdrawn_bytes += charged.overdrawn_bytes;
        self.cover(now_ms);
        charged
    }

    /// Takes what is free for the debt.
    pub fn cover(&mut self, now_ms: u64) {
        let covered = self.overdrawn_bytes.min(self.free_bytes(now_ms));
        self.spent_bytes += covered;
        self.overdrawn_bytes -= covered;
    }

    fn refusal(&self, now_ms: u64) -> Refusal {
        let unspent = self.given_bytes.saturating_sub(self.spent_bytes);
        let first = self.holds.iter().find(|(minute, bytes)| self.counts(**minute, now_ms) && **bytes > 0);
        match first {
            Some((minute, _)) if unspent >= LEAST_BLOCK_BYTES => {
                Refusal::Held { until: minute.later_by(self.extension_minutes) }
            }
            _ => Refusal::Spent,
        }
    }

    fn counts(&self, minute: Minute, now_ms: u64) -> bool {
        minute.later_by(self.extension_minutes).counts_at(now_ms)
    }

    fn forget_past(&mut self, now_ms: u64) {
        let extension = self.extension_minutes;
        self.holds.retain(|minute, bytes| minute.later_by(extension).counts_at(now_ms) && *bytes > 0);
    }
}
