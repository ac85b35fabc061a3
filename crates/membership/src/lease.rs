//! The lease of a session: its client's standing, as it was last heard.
//!
//! Nothing is asked for one session. A reader hears of all clients at once: an answer extends every lease, a definite refusal
//! ends those of its client, and no answer is no reason for anything: what was heard last holds on. A refusal is kept for as
//! long as a token that was made before it could live; after that, no token is left that it could refuse.

use std::collections::HashMap;
use std::hash::Hash;

/// The most refusals that are kept. Beyond that, those that would end first are forgotten first.
pub const MOST_REFUSALS: usize = 100_000;

/// Why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It was revoked, for good.
    Revoked,
    /// It was disabled by its owner or the operator.
    Disabled,
    /// Its account was disabled.
    AccountDisabled,
}

impl Cause {
    /// The bounded kind: a metric's label, and its name on disk.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Disabled => "disabled",
            Self::AccountDisabled => "account_disabled",
        }
    }

    /// The cause with this label.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        [Self::Revoked, Self::Disabled, Self::AccountDisabled]
            .into_iter()
            .find(|cause| cause.label() == label)
    }

    /// What the client is told: a text for its owner.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Revoked => "the operator has revoked this client",
            Self::Disabled => "this client was disabled by its owner",
            Self::AccountDisabled => "the account of this client was disabled",
        }
    }
}

/// A definite refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub cause: Cause,
    /// Until when a token from before it could live, ms since 1970.
    pub until_ms: u64,
}

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It goes on.
    Valid,
    /// It ends.
    Refused(Cause),
}

/// All leases of a process, by what ends them. `C` names a client.
#[derive(Clone, Debug)]
pub struct Leases<C> {
    refused: HashMap<C, Refusal>,
}

impl<C: Eq + Hash> PartialEq for Leases<C> {
    fn eq(&self, other: &Self) -> bool {
        self.refused == other.refused
    }
}

impl<C: Eq + Hash> Eq for Leases<C> {}

impl<C> Default for Leases<C> {
    fn default() -> Self {
        Self { refused: HashMap::new() }
    }
}

impl<C: Copy + Eq + Hash> Leases<C> {
    /// What was kept by an earlier process.
    #[must_use]
    pub fn kept(refused: impl IntoIterator<Item = (C, Refusal)>) -> Self {
        let mut leases = Self { refused: refused.into_iter().collect() };
        leases.make_room();
        leases
    }

    /// An answer that names everybody who is refused. Whoever is not named is in good standing.
    pub fn answer_whole(&mut self, refused: impl IntoIterator<Item = (C, Refusal)>, now_ms: u64) {
        self.refused = refused.into_iter().collect();
        self.forget_ended(now_ms);
    }

    /// An answer that names those whose standing has changed. Whoever is not named stands as before.
    pub fn answer_changes(&mut self, changed: impl IntoIterator<Item = (C, Option<Refusal>)>, now_ms: u64) {
        for (client, refusal) in changed {
            match refusal {
                Some(refusal) => drop(self.refused.insert(client, refusal)),
                None => drop(self.refused.remove(&client)),
            }
        }
        self.forget_ended(now_ms);
    }

    /// How a client's sessions stand. Asks nobody.
    #[must_use]
    pub fn standing(&self, client: C) -> Standing {
        self.refused.get(&client).map_or(Standing::Valid, |refusal| Standing::Refused(refusal.cause))
    }

    /// Who is refused, in no order.
    pub fn refused(&self) -> impl Iterator<Item = (C, Refusal)> {
        self.refused.iter().map(|(client, refusal)| (*client, *refusal))
    }

    /// How many are refused.
    #[must_use]
    pub fn len(&self) -> usize {
        self.refused.len()
    }

    /// Whether nobody is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.refused.is_empty()
    }

    fn forget_ended(&mut self, now_ms: u64) {
        self.refused.retain(|_, refusal| now_ms < refusal.until_ms);
        self.make_room();
    }

    fn make_room(&mut self) {
        let over = self.refused.len().saturating_sub(MOST_REFUSALS);
        if over > 0 {
            let mut ends: Vec<u64> = self.refused.values().map(|refusal| refusal.until_ms).collect();
            ends.sort_unstable();
            let last = ends.get(over - 1).copied().unwrap_or_default();
            let mut left = over;
            self.refused.retain(|_, refusal| {
                let goes = left > 0 && refusal.until_ms <= last;
                left -= usize::from(goes);
                !goes
            });
        }
    }
}

#[cfg(test)]
mod tests;
