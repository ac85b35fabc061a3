//! A generation of pools, as its readers hold it: the manifest, and the bytes of those pools that they have.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use selection::pool::{BlobError, Member, decode};
use trust::{BlobHash, PoolManifest, TokenError};

/// The bytes of a pool.
pub type Bytes = Arc<[u8]>;

/// Why there is no generation, or no pool.
#[derive(Debug, thiserror::Error)]
pub enum NoGeneration {
    /// The disk.
    #[error("the kept pools cannot be read: {0}")]
    Disk(#[from] io::Error),
    /// The index is not what was written.
    #[error("the kept pools are damaged")]
    Damaged,
    /// Seven days without a word.
    #[error("the kept pools are older than 7 days")]
    TooOld,
    /// Nobody of the network has signed the manifest.
    #[error("the manifest of the pools: {0}")]
    Manifest(#[from] TokenError),
    /// Bytes that are not those that were named.
    #[error("a pool whose bytes are not those of its name")]
    OtherBytes,
    /// Bytes that are no pool.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// A generation whose manifest has been verified.
#[derive(Clone, Debug)]
pub struct Generation {
    manifest: PoolManifest,
    text: String,
    confirmed_at_ms: u64,
    blobs: HashMap<BlobHash, Bytes>,
}

impl Generation {
    /// A generation without the bytes of its pools. `text` is the signed form of `manifest`.
    #[must_use]
    pub fn new(manifest: PoolManifest, text: String, confirmed_at_ms: u64) -> Self {
        Self { manifest, text, confirmed_at_ms, blobs: HashMap::new() }
    }

    /// What was signed.
    #[must_use]
    pub const fn manifest(&self) -> &PoolManifest {
        &self.manifest
    }

    /// As it was signed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// When it was last known to be true, ms since 1970.
    #[must_use]
    pub const fn confirmed_at_ms(&self) -> u64 {
        self.confirmed_at_ms
    }

    /// It is still so. A time never goes back.
    pub fn confirm(&mut self, at_ms: u64) {
        self.confirmed_at_ms = self.confirmed_at_ms.max(at_ms);
    }

    /// Whether the manifest names these bytes.
    #[must_use]
    pub fn names(&self, hash: BlobHash) -> bool {
        self.manifest.pools.iter().any(|pool| pool.hash == hash)
    }

    /// The pools whose bytes are not here.
    #[must_use]
    pub fn missing(&self) -> Vec<BlobHash> {
        let hashes = self.manifest.pools.iter().map(|pool| pool.hash);
        hashes.filter(|hash| !self.blobs.contains_key(hash)).collect()
    }

    /// Adds the bytes of a pool, if they are those that are named, and make a pool.
    ///
    /// # Errors
    /// See [`NoGeneration`].
    pub fn add(&mut self, hash: BlobHash, bytes: Bytes) -> Result<(), NoGeneration> {
        if BlobHash::of(&bytes) != hash {
            return Err(NoGeneration::OtherBytes);
        }
        decode(&bytes)?;
        self.blobs.insert(hash, bytes);
        Ok(())
    }

    /// Takes over what the generation before has of the same bytes.
    pub fn take_from(&mut self, before: &Self) {
        for hash in self.missing() {
            if let Some(bytes) = before.blobs.get(&hash) {
                self.blobs.insert(hash, Arc::clone(bytes));
            }
        }
    }

    /// The bytes that are here.
    pub fn blobs(&self) -> impl Iterator<Item = (BlobHash, &Bytes)> {
        self.blobs.iter().map(|(hash, bytes)| (*hash, bytes))
    }

    /// The bytes of one pool.
    #[must_use]
    pub fn blob(&self, hash: BlobHash) -> Option<&Bytes> {
        self.blobs.get(&hash)
    }

    /// The providers of one pool; none if its bytes are not here.
    #[must_use]
    pub fn members(&self, pool: &str) -> Vec<Member> {
        let bytes = self.manifest.pool(pool).and_then(|pool| self.blobs.get(&pool.hash));
        // They have been read once already.
        bytes.and_then(|bytes| decode(bytes).ok()).unwrap_or_default()
    }
}
