//! Sessions: streams of one name leave through one provider.
//!
//! A session without a pin goes where the rendezvous hash of account, name and provider is greatest, so that every proxy
//! finds the same one without asking; from its first stream it is pinned. Nothing is written anywhere.

use std::sync::Arc;
use std::time::Duration;

use overload::{Lru, Moment};
use uuid::Uuid;

use crate::hash;
use crate::options::Session;

/// The most sessions that are remembered; the one used longest ago makes room.
pub const MAX_PINS: usize = 100_000;

/// A session without a stream for so long ends, whatever life it has left.
pub const IDLE: Duration = Duration::from_secs(2 * 60);

/// Whose session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey {
    account: Arc<str>,
    name: Arc<str>,
}

impl SessionKey {
    pub(crate) fn new(account: &str, session: &Session) -> Self {
        Self { account: account.into(), name: (*session.name).into() }
    }

    /// Its place in the rendezvous.
    pub(crate) fn hash(&self) -> u64 {
        hash::of_parts(&[self.account.as_bytes(), self.name.as_bytes()])
    }
}

/// How much a provider is this session's.
pub(crate) const fn weight(session: u64, provider: Uuid) -> u64 {
    hash::together(session, provider.as_u128())
}

#[derive(Clone, Copy, Debug)]
struct Pin {
    provider: Uuid,
    until: Moment,
    used_at: Moment,
    live: u32,
}

impl Pin {
    fn holds(&self, now: Moment) -> bool {
        now < self.until && (self.live > 0 || now.since(self.used_at) < IDLE)
    }
}

/// Which provider each session has.
#[derive(Clone, Debug)]
pub(crate) struct Pins(Lru<SessionKey, Pin>);

impl Pins {
    pub(crate) fn new(most: usize) -> Self {
        Self(Lru::new(most))
    }

    pub(crate) fn find(&mut self, key: &SessionKey, now: Moment) -> Option<Uuid> {
        if self.0.peek(key).is_some_and(|pin| pin.holds(now)) {
            return self.0.touch(key).map(|pin| pin.provider);
        }
        self.0.remove(key);
        None
    }

    /// A stream of this session has come about.
    pub(crate) fn opened(&mut self, key: &SessionKey, provider: Uuid, ttl: Duration, now: Moment) {
        match self.0.touch(key) {
            Some(pin) if pin.provider == provider && pin.holds(now) => {
                pin.used_at = now;
                pin.live = pin.live.saturating_add(1);
            }
            // Moving on does not lengthen its life.
            Some(pin) if pin.holds(now) => *pin = Pin { provider, until: pin.until, used_at: now, live: 1 },
            _ => self.0.insert(key.clone(), Pin { provider, until: now + ttl, used_at: now, live: 1 }),
        }
    }

    /// A stream of this session through this provider has ended.
    pub(crate) fn closed(&mut self, key: &SessionKey, provider: Uuid, now: Moment) {
        if let Some(pin) = self.0.touch(key).filter(|pin| pin.provider == provider) {
            pin.live = pin.live.saturating_sub(1);
            pin.used_at = now;
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests;
