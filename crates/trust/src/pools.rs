//! The manifest of a generation of pools: which lists of providers belong together, by the hashes of their bytes.
//!
//! A token key signs it, so whoever holds the key ring can check a manifest that has lain on a disk for days, with nobody to ask. It
//! does not expire: how old a list may be is for its reader to say.

use crate::error::TokenError;
use crate::ids::{BlobHash, NetworkId};
use crate::ring::KeyRing;
use crate::signed::{self, Kind, TokenKey};
use serde::{Deserialize, Serialize};

/// The most pools of a manifest.
pub const MOST_MANIFEST_POOLS: usize = 700;

/// One pool of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolEntry {
    /// `best`, or the two letters of a country in lower case; `zz` for none.
    pub name: String,
    /// The name of its bytes.
    pub hash: BlobHash,
    /// Providers in the list.
    pub listed: u32,
    /// Providers that are connected: more than are listed, if the list is full.
    pub connected: u32,
    /// Of those that are listed: a stream worked within the hour before.
    pub verified: u32,
}

/// A generation: read whole, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolManifest {
    /// The network it is for.
    #[serde(rename = "net")]
    pub network: NetworkId,
    /// Grows with each generation.
    #[serde(rename = "num")]
    pub number: u64,
    /// When it was built, ms since 1970.
    #[serde(rename = "at")]
    pub built_at_ms: u64,
    /// About how often the worker builds at this size, ms: to look more often is of no use.
    #[serde(rename = "every")]
    pub every_ms: u64,
    /// Registered providers that are not disabled, connected or not.
    pub registered: u64,
    /// The pools.
    pub pools: Vec<PoolEntry>,
}

impl PoolManifest {
    /// Signs it.
    ///
    /// # Errors
    /// More than [`MOST_MANIFEST_POOLS`], or longer than a manifest may be.
    pub fn sign(&self, key: &TokenKey) -> Result<String, TokenError> {
        if self.pools.len() > MOST_MANIFEST_POOLS {
            return Err(TokenError::Malformed);
        }
        key.sign(Kind::Pools, self)
    }

    /// Reads a manifest that a key of the ring signed, for the ring's network, believed at `now_ms`.
    ///
    /// # Errors
    /// See [`TokenError`]; for an unknown key the ring may be read again once an interval.
    pub fn verify(manifest: &str, ring: &KeyRing, now_ms: u64) -> Result<Self, TokenError> {
        let read: Self =
            signed::open(Kind::Pools, manifest, ring.public_key(Kind::Pools, manifest, now_ms)?)?;
        if read.network != ring.network() {
            return Err(TokenError::OtherNetwork);
        }
        if read.pools.len() > MOST_MANIFEST_POOLS {
            return Err(TokenError::Malformed);
        }
        Ok(read)
    }

    /// A pool by its name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&PoolEntry> {
        self.pools.iter().find(|pool| pool.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::{KeyState, RingKey};
    use crate::{ClientClaims, ClientId, Role, Thumbprint};

    fn manifest(pools: usize) -> PoolManifest {
        let entry = |number: usize| PoolEntry {
            name: format!("p{number}"),
            hash: BlobHash::of(&number.to_be_bytes()),
            listed: u32::MAX,
            connected: u32::MAX,
            verified: u32::MAX,
        };
        let pools = (0..pools).map(entry).collect();
        let (built_at_ms, every_ms, registered) = (u64::MAX, u64::MAX, u64::MAX);
        PoolManifest {
            network: NetworkId([1; 32]),
            number: u64::MAX,
            built_at_ms,
            every_ms,
            registered,
            pools,
        }
    }

    fn ring(keys: &[&TokenKey], network: NetworkId) -> KeyRing {
        let keys = keys.iter().map(|key| RingKey::new(*key.public_key(), KeyState::Signing)).collect();
        KeyRing::new(network, 1, 1, keys).unwrap()
    }

    #[test]
    fn a_manifest_holds_by_a_key_of_the_ring_and_for_its_network_only() {
        let (key, stranger) = (TokenKey::generate().unwrap(), TokenKey::generate().unwrap());
        let manifest = manifest(3);
        let text = manifest.sign(&key).unwrap();
        let ring = ring(&[&key], manifest.network);
        assert_eq!(PoolManifest::verify(&text, &ring, 1).as_ref(), Ok(&manifest));
        let forged = manifest.sign(&stranger).unwrap();
        assert_eq!(PoolManifest::verify(&forged, &ring, 1), Err(TokenError::UnknownKey(stranger.id())));
        let (head, _) = text.rsplit_once('.').unwrap();
        let (_, signature) = forged.rsplit_once('.').unwrap();
        assert_eq!(
            PoolManifest::verify(&format!("{head}.{signature}"), &ring, 1),
            Err(TokenError::Signature)
        );
        let other = PoolManifest { network: NetworkId([2; 32]), ..manifest };
        let text = other.sign(&key).unwrap();
        assert_eq!(PoolManifest::verify(&text, &ring, 1), Err(TokenError::OtherNetwork));
    }

    #[test]
    fn a_token_is_no_manifest() {
        let (key, network) = (TokenKey::generate().unwrap(), NetworkId([1; 32]));
        let claims = ClientClaims {
            network,
            client: ClientId::random(),
            role: Role::Proxy,
            thumbprint: Thumbprint([1; 32]),
            epoch: 1,
            issued_at_s: 1,
            expires_at_s: 2,
        };
        let token = claims.sign(&key).unwrap();
        assert_eq!(PoolManifest::verify(&token, &ring(&[&key], network), 1), Err(TokenError::Malformed));
    }

    #[test]
    fn the_largest_manifest_fits_and_a_larger_one_is_not_signed() {
        let key = TokenKey::generate().unwrap();
        let largest = manifest(MOST_MANIFEST_POOLS);
        let text = largest.sign(&key).unwrap();
        assert_eq!(PoolManifest::verify(&text, &ring(&[&key], largest.network), 1), Ok(largest));
        assert_eq!(manifest(MOST_MANIFEST_POOLS + 1).sign(&key), Err(TokenError::Malformed));
    }
}
