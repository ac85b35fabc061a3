//! An api's generations of pools, for tests.

use std::collections::HashMap;
use std::sync::Arc;

use selection::pool::{Member, encode, generation};
use trust::api::PoolsAnswer;
use trust::{BlobHash, KeyRing, KeyState, NetworkId, PoolEntry, PoolManifest, RingKey, TokenKey};

use proxy::control::ControlError;

const NETWORK: NetworkId = NetworkId([1; 32]);

/// What an api has; none until something is published.
pub(crate) struct Pools {
    pub(crate) key: TokenKey,
    pub(crate) answer: Option<PoolsAnswer>,
    pub(crate) blobs: HashMap<BlobHash, Vec<u8>>,
    /// Pools whose bytes were asked for.
    pub(crate) read: usize,
    number: u64,
}

impl Default for Pools {
    fn default() -> Self {
        let key = TokenKey::generate().unwrap();
        Self { key, answer: None, blobs: HashMap::new(), read: 0, number: 0 }
    }
}

impl Pools {
    /// A new generation of these.
    pub(crate) fn publish(&mut self, members: &[Member]) {
        self.number += 1;
        let now_ms = clock::unix_ms();
        let mut pools = Vec::new();
        for pool in generation(members, now_ms) {
            let bytes = encode(&pool.members);
            let (hash, counts) = (BlobHash::of(&bytes), pool.counts);
            self.blobs.insert(hash, bytes);
            pools.push(PoolEntry {
                name: pool.name.to_string(),
                hash,
                listed: counts.listed,
                connected: counts.connected,
                verified: counts.verified,
            });
        }
        let manifest = PoolManifest {
            network: NETWORK,
            number: self.number,
            built_at_ms: now_ms,
            every_ms: 1,
            registered: members.len() as u64,
            pools,
        };
        self.answer = Some(PoolsAnswer {
            manifest: manifest.sign(&self.key).unwrap(),
            confirmed_at_ms: now_ms,
            stale: false,
            cause: None,
            now_ms,
        });
    }

    pub(crate) fn ring(&self) -> Arc<KeyRing> {
        let keys = vec![RingKey::new(*self.key.public_key(), KeyState::Signing)];
        Arc::new(KeyRing::new(NETWORK, 1, 1, keys).unwrap())
    }

    pub(crate) fn answer(&self, tag: Option<&str>) -> Result<Option<(PoolsAnswer, String)>, ControlError> {
        let answer = self.answer.clone().ok_or_else(|| ControlError::Silent("no pools".into()))?;
        let own = format!("{}-{}", self.number, answer.stale);
        Ok((tag != Some(&own)).then_some((answer, own)))
    }

    pub(crate) fn bytes(&mut self, hash: BlobHash) -> Result<Vec<u8>, ControlError> {
        self.read += 1;
        self.blobs.get(&hash).cloned().ok_or_else(|| ControlError::Silent("no such pool".into()))
    }
}
