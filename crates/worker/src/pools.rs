//! Builds generations of pools: who is connected, in lists that the api signs and proxies keep.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use clock::unix_ms;
use selection::Country;
use selection::pool::{self, Before, Inputs, Member, PoolName, SETTLING_MS};
use store::{Generation, LiveNetwork, LiveProvider, PoolRow, Store, StoreError};
use trust::BlobHash;

use crate::runner::Left;

/// The shortest time between two looks, ms: in a small network a provider that comes is listed at once.
pub(crate) const LEAST_EVERY_MS: u64 = 1_000;
/// A look costs the more, the more providers there are: so much rest for each of them, ms.
const REST_FOR_EACH_MS: u64 = 3;

/// The job of building, turn after turn.
pub(crate) struct Builder {
    relay_silence_ms: u64,
    longest_every_ms: u64,
    /// The next look, ms since 1970.
    due_ms: AtomicU64,
}

impl Builder {
    pub(crate) fn new(relay_silence_ms: u64, longest_every_ms: u64) -> Self {
        Self { relay_silence_ms, longest_every_ms, due_ms: AtomicU64::new(0) }
    }

    /// Looks who is connected, if it is time to, and publishes a generation if that has changed. One that must not be believed is not
    /// published: the last one stays, and is said to be held.
    /// `reaper_holds`: many relays are late at once.
    pub(crate) async fn turn(&self, store: &Store, reaper_holds: bool) -> Result<Left, StoreError> {
        let now_ms = unix_ms();
        let due_ms = self.due_ms.load(Ordering::Relaxed);
        // A clock that was set back does not stop the building.
        if now_ms < due_ms && due_ms - now_ms <= self.longest_every_ms {
            return Ok(Left::Nothing);
        }
        let network = store.live_network(now_ms, self.relay_silence_ms, SETTLING_MS).await?;
        let every_ms = every_ms(network.providers.len(), self.longest_every_ms);
        let last = store.generation().await?;
        let inputs = inputs(&network, reaper_holds);
        self.publish(store, &network, &inputs, last, now_ms, every_ms).await?;
        self.due_ms.store(now_ms + every_ms, Ordering::Relaxed);
        Ok(Left::Nothing)
    }

    async fn publish(
        &self,
        store: &Store,
        network: &LiveNetwork,
        inputs: &Inputs,
        last: Option<Generation>,
        now_ms: u64,
        every_ms: u64,
    ) -> Result<(), StoreError> {
        let members: Vec<Member> = network.providers.iter().map(member).collect();
        let pools = pool::generation(&members, now_ms);
        if let Some(last) = &last {
            let before: Vec<Before> = last.pools.iter().filter_map(before).collect();
            let counts: Vec<_> = pools.iter().map(|pool| (pool.name, pool.counts)).collect();
            if let Err(held) = pool::judge(&before, &counts, inputs) {
                if last.held_cause.is_none() {
                    tracing::warn!(number = last.number, %held, "the last generation of pools is kept");
                }
                return store.confirm_generation(last.number, now_ms, Some(held.to_string())).await;
            }
        }
        let known: HashSet<BlobHash> =
            last.iter().flat_map(|last| &last.pools).map(|pool| pool.hash).collect();
        let (mut rows, mut blobs) = (Vec::new(), Vec::new());
        for pool in &pools {
            let bytes = pool::encode(&pool.members);
            let hash = BlobHash::of(&bytes);
            let counts = pool.counts;
            rows.push(PoolRow {
                name: pool.name.to_string(),
                hash,
                listed: counts.listed,
                connected: counts.connected,
                verified: counts.verified,
            });
            if !known.contains(&hash) && !blobs.iter().any(|(other, _)| *other == hash) {
                blobs.push((hash, bytes));
            }
        }
        if let Some(last) = &last
            && last.pools == rows
            && last.registered == network.registered
            && last.every_ms == every_ms
        {
            return store.confirm_generation(last.number, now_ms, None).await;
        }
        let number = last.map_or(now_ms, |last| now_ms.max(last.number + 1));
        let (listed, new) = (rows.first().map_or(0, |best| best.listed), blobs.len());
        let generation = Generation {
            number,
            built_at_ms: now_ms,
            confirmed_at_ms: now_ms,
            every_ms,
            registered: network.registered,
            held_cause: None,
            pools: rows,
        };
        if store.publish_generation(generation, blobs).await? {
            tracing::debug!(number, listed, new, "a generation of pools");
        }
        Ok(())
    }
}

/// How often a network of this size is looked at.
fn every_ms(providers: usize, longest_ms: u64) -> u64 {
    let rest_ms = u64::try_from(providers).unwrap_or(u64::MAX).saturating_mul(REST_FOR_EACH_MS);
    rest_ms.max(LEAST_EVERY_MS).min(longest_ms.max(1))
}

fn member(live: &LiveProvider) -> Member {
    Member {
        provider: live.provider.0,
        epoch: live.epoch,
        connected_at_ms: live.connected_at_ms,
        relay: live.relay.as_str().into(),
        country: live.country.as_deref().and_then(Country::parse).unwrap_or(Country::UNKNOWN),
        verified: live.verified,
        identity: *live.identity.bytes(),
    }
}

fn before(row: &PoolRow) -> Option<Before> {
    let name: PoolName = row.name.parse().ok()?;
    Some(Before { name, connected: row.connected })
}

fn inputs(network: &LiveNetwork, reaper_holds: bool) -> Inputs {
    Inputs {
        relays_fresh: network.relays_fresh,
        relays_settling: network.relays_settling,
        relays_known: network.relays_known,
        reaper_holds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_network_is_looked_at_each_second_and_a_large_one_each_half_minute() {
        let every = [0, 300, 1_000, 10_000, 75_000].map(|providers| every_ms(providers, 30_000));
        assert_eq!(every, [1_000, 1_000, 3_000, 30_000, 30_000]);
        assert_eq!(every_ms(5, 0), 1);
    }
}
