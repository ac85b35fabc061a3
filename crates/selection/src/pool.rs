//! Generations of pools: who stands in which list, how a list looks as bytes, and when a new generation is not believed.
//!
//! A generation is built out of all connected providers at once: a pool with the best of all, and one for each country. Whoever
//! reads it takes it whole. A filter of quality would stand before [`generation`]: it takes members out, with a decision that is
//! written down.

mod blob;
mod guard;

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

use crate::candidate::Country;

pub use blob::{BlobError, MAX_BLOB_BYTES, MEMBER_BYTES, decode, encode};
pub use guard::{Before, Doubt, Held, Inputs, SETTLING_MS, judge};

/// The most providers in one pool. Of more, a part is listed, and everybody has a turn (see [`generation`]).
pub const MOST_LISTED: usize = 20_000;

/// The most pools of a generation: one for each pair of letters, one for those that name no country, and the best.
pub const MOST_POOLS: usize = 26 * 26 + 2;

/// Who is listed of a pool that is too large is drawn anew so often, for each provider at a moment of its own, ms.
pub const TURN_MS: u64 = 6 * 3_600_000;

/// The bytes of a provider's two public keys.
pub const IDENTITY_BYTES: usize = 64;

/// Which pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolName {
    /// The best of all.
    Best,
    /// A country; [`Country::UNKNOWN`] for those that name none.
    Country(Country),
}

/// Text that names no pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a pool is called 'best', or by the two letters of a country")]
pub struct NoPool;

impl Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Best => f.write_str("best"),
            Self::Country(country) => country.fmt(f),
        }
    }
}

impl FromStr for PoolName {
    type Err = NoPool;

    fn from_str(text: &str) -> Result<Self, NoPool> {
        match text {
            "best" => Ok(Self::Best),
            other => Country::parse(other).map(Self::Country).ok_or(NoPool),
        }
    }
}

/// A connected provider, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub provider: Uuid,
    /// Its start.
    pub epoch: u64,
    /// Since when it has been connected, ms since 1970.
    pub connected_at_ms: u64,
    /// The relay that has it, `host:port`.
    pub relay: Arc<str>,
    /// Where it is.
    pub country: Country,
    /// A stream through it worked within the last hour.
    pub verified: bool,
    /// Its two public keys: to check signatures with, to seal to.
    pub identity: [u8; IDENTITY_BYTES],
}

/// How many providers a pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that stand in the list.
    pub listed: u32,
    /// Those that are connected; more, if the list is full.
    pub connected: u32,
    /// Of those that are listed: a stream worked within the last hour.
    pub verified: u32,
}

/// A pool of a new generation.
#[derive(Clone, Debug)]
pub struct Pool<'members> {
    /// Which.
    pub name: PoolName,
    /// How many.
    pub counts: Counts,
    /// By the providers' names.
    pub members: Vec<&'members Member>,
}

/// The pools of everybody who is connected, the best first and then the countries in order. Empty pools are not among them.
///
/// In a pool that is too large verified providers go before others, and among equals a lot decides: the same one for some hours,
/// so that lists change little, and then another, so that nobody is left out for ever.
#[must_use]
pub fn generation(connected: &[Member], now_ms: u64) -> Vec<Pool<'_>> {
    let mut pools: Vec<(PoolName, Vec<&Member>)> = Vec::new();
    if !connected.is_empty() {
        pools.push((PoolName::Best, connected.iter().collect()));
    }
    let mut by_country: std::collections::BTreeMap<Country, Vec<&Member>> = std::collections::BTreeMap::new();
    for member in connected {
        by_country.entry(member.country).or_default().push(member);
    }
    pools.extend(by_country.into_iter().map(|(country, members)| (PoolName::Country(country), members)));
    pools.into_iter().map(|(name, members)| pool(name, members, now_ms)).collect()
}

fn pool(name: PoolName, mut members: Vec<&Member>, now_ms: u64) -> Pool<'_> {
    let connected = count(members.len());
    if members.len() > MOST_LISTED {
        members
            .sort_by_cached_key(|member| (!member.verified, lot(member.provider, now_ms), member.provider));
        members.truncate(MOST_LISTED);
    }
    members.sort_unstable_by_key(|member| member.provider);
    let verified = count(members.iter().filter(|member| member.verified).count());
    Pool { name, counts: Counts { listed: count(members.len()), connected, verified }, members }
}

/// A provider's lot at this time: each draws anew at a moment of its own.
fn lot(provider: Uuid, now_ms: u64) -> u64 {
    let own_moment = crate::hash::together(1, provider.as_u128()) % TURN_MS;
    let turn = now_ms.wrapping_add(own_moment) / TURN_MS;
    crate::hash::together(turn, provider.as_u128())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
