//! How one token key follows another: published, seen by every verifier that lives, settled; only then does it sign. The old one
//! is still believed for as long as something that it signed may hold.
//!
//! Where a rotation stands is in the ring itself, which the root key signs: so whoever has the ring can take it up again.

use crate::error::DocumentError;
use crate::ids::KeyId;
use crate::ring::{KeyRing, KeyState, MAX_KEYS, RingKey};
use crate::token::TOKEN_LIFE_MS;

/// How long what a key signed is believed after the key signs no more, ms: a token's life, and a day for clocks and for contracts,
/// which end before.
pub const RETIRED_FOR_MS: u64 = TOKEN_LIFE_MS + 86_400_000;
/// How long it stays in the ring, seconds: whoever was away for half a year renews the token of its time, which nobody else believes
/// any more. If the ring is full, it leaves earlier.
const KEPT_FOR_S: u64 = 180 * 86_400;

/// A step that the ring does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RotationError {
    /// A key is coming already: that one first.
    #[error("key {0} is coming already")]
    Coming(KeyId),
    /// No key is coming that could sign.
    #[error("no key is coming")]
    NothingComing,
    /// The ring would not be one: most often, it is full until an old key leaves.
    #[error("the ring: {0}")]
    Ring(#[from] DocumentError),
}

/// What a verifier that lives has said of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// Number of the ring that it holds.
    pub ring: u64,
    /// Since when, ms since 1970.
    pub since_ms: u64,
    /// An api: whether it has the secret of the key that is coming.
    pub can_sign: Option<bool>,
}

/// Whether the key that is coming may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// So many of those who live have not seen it.
    Unseen(usize),
    /// All have seen it; so many apis have not its secret.
    Secretless(usize),
    /// All have seen it: until then it settles, ms since 1970.
    Settling(u64),
    /// It may sign.
    Open,
}

/// Whether the key that is coming in ring `number`, published at `published_ms`, may sign at `now_ms`. Whoever is not among the
/// witnesses is not waited for.
#[must_use]
pub fn gate(number: u64, published_ms: u64, witnesses: &[Witness], settle_ms: u64, now_ms: u64) -> Gate {
    let unseen = witnesses.iter().filter(|witness| witness.ring < number).count();
    if unseen > 0 {
        return Gate::Unseen(unseen);
    }
    let secretless = witnesses.iter().filter(|witness| witness.can_sign == Some(false)).count();
    if secretless > 0 {
        return Gate::Secretless(secretless);
    }
    let last_ms = witnesses.iter().map(|witness| witness.since_ms).max().unwrap_or(0).max(published_ms);
    let settled_ms = last_ms.saturating_add(settle_ms);
    if now_ms < settled_ms { Gate::Settling(settled_ms) } else { Gate::Open }
}

impl KeyRing {
    /// The key that signs.
    #[must_use]
    pub fn signing(&self) -> Option<&RingKey> {
        self.keys().iter().find(|key| key.state == KeyState::Signing)
    }

    /// The key that is published and does not sign yet.
    #[must_use]
    pub fn coming(&self) -> Option<&RingKey> {
        self.keys().iter().find(|key| key.state == KeyState::Coming)
    }

    /// The next ring, in which this key is coming.
    ///
    /// # Errors
    /// See [`RotationError`].
    pub fn with_coming(&self, public_key: [u8; 32], now_s: u64) -> Result<Self, RotationError> {
        if let Some(coming) = self.coming() {
            return Err(RotationError::Coming(coming.id));
        }
        let mut keys = self.kept_keys(now_s);
        if keys.len() >= MAX_KEYS {
            let over = |key: &&RingKey| key.is_over(now_s.saturating_mul(1_000));
            if let Some(oldest) = keys.iter().filter(over).min_by_key(|key| key.since_s).map(|key| key.id) {
                keys.retain(|key| key.id != oldest);
            }
        }
        keys.push(RingKey { since_s: now_s, ..RingKey::new(public_key, KeyState::Coming) });
        Ok(self.next(now_s, keys)?)
    }

    /// The next ring, in which the key that was coming signs, and the one that signed is retired.
    ///
    /// # Errors
    /// See [`RotationError`].
    pub fn switched(&self, now_s: u64) -> Result<Self, RotationError> {
        if self.coming().is_none() {
            return Err(RotationError::NothingComing);
        }
        let mut keys = self.kept_keys(now_s);
        for key in &mut keys {
            let state = match key.state {
                KeyState::Coming => KeyState::Signing,
                KeyState::Signing | KeyState::Retired => KeyState::Retired,
            };
            if state != key.state {
                (key.state, key.since_s) = (state, now_s);
            }
        }
        Ok(self.next(now_s, keys)?)
    }

    /// The next ring, without the key that was coming: it has never signed.
    ///
    /// # Errors
    /// See [`RotationError`].
    pub fn withdrawn(&self, now_s: u64) -> Result<Self, RotationError> {
        if self.coming().is_none() {
            return Err(RotationError::NothingComing);
        }
        let mut keys = self.kept_keys(now_s);
        keys.retain(|key| key.state != KeyState::Coming);
        Ok(self.next(now_s, keys)?)
    }

    /// The next ring, without the keys that signed so long ago that nobody renews a token of theirs; `None` if there are none.
    #[must_use]
    pub fn tidied(&self, now_s: u64) -> Option<Self> {
        let keys = self.kept_keys(now_s);
        (keys.len() < self.keys().len()).then(|| self.next(now_s, keys).ok()).flatten()
    }

    fn kept_keys(&self, now_s: u64) -> Vec<RingKey> {
        let stays =
            |key: &&RingKey| key.state != KeyState::Retired || now_s < key.since_s.saturating_add(KEPT_FOR_S);
        self.keys().iter().filter(stays).cloned().collect()
    }

    fn next(&self, now_s: u64, keys: Vec<RingKey>) -> Result<Self, DocumentError> {
        Self::new(self.network(), self.number() + 1, now_s, keys)
    }
}

impl RingKey {
    /// From when on nothing that it signed is believed, seconds since 1970; `None` while it is not retired.
    #[must_use]
    pub fn leaves_at_s(&self) -> Option<u64> {
        (self.state == KeyState::Retired).then_some(self.since_s.saturating_add(RETIRED_FOR_MS / 1_000))
    }

    /// Nothing that it signed is believed at `now_ms`.
    pub(crate) fn is_over(&self, now_ms: u64) -> bool {
        self.leaves_at_s().is_some_and(|at_s| now_ms / 1_000 >= at_s)
    }
}

#[cfg(test)]
mod tests;
