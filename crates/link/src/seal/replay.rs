//! Which first messages are too old, meant for another start, or have been here before (§6).

use super::KEY_BYTES;
use crate::code::Code;
use std::collections::HashSet;

/// The most by which two clocks may differ.
pub const GREATEST_SKEW_MS: u64 = 120_000;
/// A message may come for so long after its first time.
const REMEMBERED_MS: u64 = 2 * GREATEST_SKEW_MS;
/// The most messages that are remembered, some 30 MB. More within four minutes are refused.
pub const MAX_REMEMBERED: usize = 1 << 19;

/// Half of a key tells two apart.
type Remembered = [u8; KEY_BYTES / 2];

/// A first message that is not to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// Its time is too far from this clock.
    #[error("the clocks of the two ends differ too much")]
    ClockSkew,
    /// It is meant for another start of this provider.
    #[error("it was meant for another start of this provider")]
    Epoch,
    /// It was here before.
    #[error("it was here before")]
    Replayed,
    /// There is no room to remember it.
    #[error("too many opens within four minutes")]
    TooMany,
}

impl Stale {
    /// What the opener is told.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::ClockSkew => Code::ClockSkew,
            Self::Epoch => Code::Stale,
            Self::Replayed => Code::Replayed,
            Self::TooMany => Code::Limit,
        }
    }
}

/// What one start of a provider has seen.
#[derive(Debug)]
pub struct Freshness {
    epoch: u64,
    current: HashSet<Remembered>,
    previous: HashSet<Remembered>,
    turned_at_ms: u64,
    most: usize,
}

impl Freshness {
    /// For the start of this number.
    #[must_use]
    pub fn new(epoch: u64) -> Self {
        Self::remembering(epoch, MAX_REMEMBERED)
    }

    fn remembering(epoch: u64, most: usize) -> Self {
        Self { epoch, current: HashSet::new(), previous: HashSet::new(), turned_at_ms: 0, most }
    }

    /// Checks a first message, which has been opened, and remembers it. `now_ms` is this clock since 1970.
    ///
    /// # Errors
    /// It is not to be answered.
    pub fn check(
        &mut self,
        message: &[u8],
        time_ms: u64,
        provider_epoch: u64,
        now_ms: u64,
    ) -> Result<(), Stale> {
        if time_ms.abs_diff(now_ms) > GREATEST_SKEW_MS {
            return Err(Stale::ClockSkew);
        }
        if provider_epoch != 0 && provider_epoch != self.epoch {
            return Err(Stale::Epoch);
        }
        // A message of Noise IK begins with its ephemeral key.
        let Some(key) = message.first_chunk::<{ KEY_BYTES / 2 }>() else { return Err(Stale::Replayed) };
        self.turn(now_ms);
        if self.previous.contains(key) || self.current.contains(key) {
            return Err(Stale::Replayed);
        }
        if self.current.len() + self.previous.len() >= self.most {
            return Err(Stale::TooMany);
        }
        self.current.insert(*key);
        Ok(())
    }

    /// What is older than two turns is forgotten. A clock that was set back forgets nothing early.
    fn turn(&mut self, now_ms: u64) {
        let since = now_ms.saturating_sub(self.turned_at_ms);
        if since < REMEMBERED_MS {
            return;
        }
        self.previous =
            if since < 2 * REMEMBERED_MS { std::mem::take(&mut self.current) } else { HashSet::new() };
        self.current = HashSet::new();
        self.turned_at_ms = now_ms;
    }
}

#[cfg(test)]
mod tests;
