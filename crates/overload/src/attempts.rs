//! Attempts to connect, by who tries: at what rate they are looked at, and how long refusals are remembered.

use crate::{Backoff, Lru, Moment, TokenBucket};
use std::hash::Hash;
use std::time::Duration;

/// Most sources that are remembered at once; beyond it, the one that has not tried for longest is forgotten.
pub const MAX_SOURCES: usize = 4_096;

/// The first rest after too many refusals in a row; each further refusal doubles it.
pub const FIRST_REST: Duration = Duration::from_secs(1);

/// The longest rest.
pub const GREATEST_REST: Duration = Duration::from_mins(1);

/// After so long without a refusal, those before it are forgotten.
pub const MEMORY: Duration = Duration::from_mins(10);

/// What one source may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimits {
    /// Attempts a second. Zero: no limit.
    pub rate_per_second: u32,
    /// Attempts at once after a quiet time.
    pub burst: u32,
    /// Refusals in a row from which on the source rests. Zero: none are remembered.
    pub refusals: u32,
}

/// Why an attempt is not looked at, and when the next one will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptRefusal {
    /// There were too many of them.
    TooMany {
        /// When there is room for one more.
        retry_at: Moment,
    },
    /// Too many in a row have been refused.
    Refused {
        /// The end of the rest.
        retry_at: Moment,
    },
}

impl AttemptRefusal {
    /// When the next attempt is worth it.
    #[must_use]
    pub const fn retry_at(self) -> Moment {
        match self {
            Self::TooMany { retry_at } | Self::Refused { retry_at } => retry_at,
        }
    }
}

/// Everybody who has tried lately. `K` names a source: a user and an address.
#[derive(Debug)]
pub struct Attempts<K> {
    sources: Lru<K, Source>,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    bucket: TokenBucket,
    refusals: u32,
    refused_at: Moment,
    rests_until: Moment,
    backoff: Backoff,
}

impl<K: Clone + Eq + Hash> Default for Attempts<K> {
    fn default() -> Self {
        Self { sources: Lru::new(MAX_SOURCES) }
    }
}

impl<K: Clone + Eq + Hash> Attempts<K> {
    /// Nobody has tried.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Someone tries.
    ///
    /// # Errors
    /// Why it is not to be looked at. Such an attempt costs the source nothing more: it neither lengthens a rest nor takes
    /// from what it may do later.
    pub fn admit(&mut self, now: Moment, key: &K, limits: AttemptLimits) -> Result<(), AttemptRefusal> {
        let source = self.touch(now, key, limits);
        if limits.refusals > 0 && now < source.rests_until {
            return Err(AttemptRefusal::Refused { retry_at: source.rests_until });
        }
        if source.bucket.take(now) {
            Ok(())
        } else {
            Err(AttemptRefusal::TooMany { retry_at: source.bucket.next_at(now) })
        }
    }

    /// An attempt was refused, for a reason that lies with who tried, such as a wrong password. `jitter` is any random
    /// number.
    pub fn refused(&mut self, now: Moment, key: &K, limits: AttemptLimits, jitter: u64) {
        if limits.refusals == 0 {
            return;
        }
        let source = self.touch(now, key, limits);
        if now.since(source.refused_at) >= MEMORY {
            source.refusals = 0;
            source.backoff.reset();
        }
        source.refused_at = now;
        source.refusals = source.refusals.saturating_add(1);
        if source.refusals >= limits.refusals {
            source.rests_until = now + source.backoff.failed(FIRST_REST, GREATEST_REST, jitter);
        }
    }

    /// An attempt was let in: what was refused before does not count any more.
    pub fn succeeded(&mut self, key: &K) {
        if let Some(source) = self.sources.peek_mut(key) {
            source.refusals = 0;
            source.rests_until = Moment::ORIGIN;
            source.backoff.reset();
        }
    }

    /// Nobody is remembered any more.
    pub fn clear(&mut self) {
        self.sources.clear();
    }

    /// How many are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Nobody is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    fn touch(&mut self, now: Moment, key: &K, limits: AttemptLimits) -> &mut Source {
        let source = self.sources.touch_or_insert_with(key, || Source {
            bucket: TokenBucket::per_second(limits.rate_per_second, limits.burst),
            refusals: 0,
            refused_at: now,
            rests_until: Moment::ORIGIN,
            backoff: Backoff::new(),
        });
        source.bucket.set_rate(now, limits.rate_per_second, limits.burst);
        source
    }
}

#[cfg(test)]
mod tests;
