//! The patience of callers who have not declared one, from those who were seen to leave the line.

use crate::{Lru, Moment};
use std::hash::Hash;
use std::time::Duration;

/// Callers whose patience is kept at once; beyond it, the one that was heard of longest ago is forgotten.
pub const MAX_CALLERS: usize = 1_024;

/// Departures that are kept of one caller.
pub const SAMPLES: usize = 16;

/// With fewer departures nothing is known.
pub const LEAST_SAMPLES: usize = 8;

/// Departures closer together are one: a process that ends takes all of its connections along, however long each has
/// waited, and says nothing of how long it would have.
pub const SAMPLE_SPACING: Duration = Duration::from_millis(250);

/// Who leaves sooner than this has not lost patience.
pub const LEAST_WAIT: Duration = Duration::from_millis(100);

/// Without another departure for so long, what was learnt is forgotten.
pub const MEMORY: Duration = Duration::from_secs(600);

/// For each caller, how long those waited who gave up lately.
///
/// The longest of the last [`SAMPLES`] is the patience: too long a one costs little, since whoever leaves is taken out of
/// the line anyway; too short a one would refuse what could have been served.
#[derive(Clone, Debug)]
pub struct LearntPatience<K> {
    callers: Lru<K, Departures>,
}

#[derive(Clone, Debug)]
struct Departures {
    waits_ms: [u32; SAMPLES],
    count: usize,
    /// Of the last sample.
    at: Moment,
}

impl<K: Clone + Eq + Hash> Default for LearntPatience<K> {
    fn default() -> Self {
        Self { callers: Lru::new(MAX_CALLERS) }
    }
}

impl<K: Clone + Eq + Hash> LearntPatience<K> {
    /// One of these callers has left the line by itself.
    pub fn gave_up(&mut self, caller: &K, waited: Duration, now: Moment) {
        if waited < LEAST_WAIT {
            return;
        }
        let none = || Departures { waits_ms: [0; SAMPLES], count: 0, at: now };
        let departures = self.callers.touch_or_insert_with(caller, none);
        departures.note(u32::try_from(waited.as_millis()).unwrap_or(u32::MAX), now);
    }

    /// One of these callers was still there after so long: if that is clearly more than what was learnt, nothing is known any
    /// more.
    pub fn stayed(&mut self, caller: &K, waited: Duration, now: Moment) {
        if self.patience(caller, now).is_some_and(|patience| waited > patience + patience / 4) {
            self.callers.remove(caller);
        }
    }

    /// How long these callers wait, if it is known.
    #[must_use]
    pub fn patience(&self, caller: &K, now: Moment) -> Option<Duration> {
        self.callers.peek(caller)?.patience(now)
    }

    /// Everyone of whom something is known: patience, and from how many departures.
    pub fn known(&self, now: Moment) -> impl Iterator<Item = (&K, Duration, usize)> + '_ {
        self.callers.iter().filter_map(move |(caller, departures)| {
            Some((caller, departures.patience(now)?, departures.kept()))
        })
    }

    /// Callers that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.callers.len()
    }

    /// Nothing has been learnt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.callers.clear();
    }
}

impl Departures {
    fn note(&mut self, wait_ms: u32, now: Moment) {
        if now.since(self.at) > MEMORY {
            self.count = 0;
        }
        let last = self.count.checked_sub(1).map(|last| last % SAMPLES);
        match last.and_then(|last| self.waits_ms.get_mut(last)) {
            Some(last) if now.since(self.at) < SAMPLE_SPACING => *last = (*last).max(wait_ms),
            _ => {
                self.waits_ms[self.count % SAMPLES] = wait_ms;
                self.count += 1;
                self.at = now;
            }
        }
    }

    fn kept(&self) -> usize {
        self.count.min(SAMPLES)
    }

    fn patience(&self, now: Moment) -> Option<Duration> {
        if self.kept() < LEAST_SAMPLES || now.since(self.at) > MEMORY {
            return None;
        }
        let longest = self.waits_ms.iter().take(self.kept()).max()?;
        Some(Duration::from_millis(u64::from(*longest)))
    }
}

#[cfg(test)]
mod tests;
