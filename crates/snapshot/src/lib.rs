//! What a role keeps on its disk to start without a database: the last generation of pools.
//!
//! The manifest is signed and names its pools by the hashes of their bytes, so nothing on the disk is believed that the network has
//! not said. A folder belongs to one process.

mod generation;

pub use generation::{Bytes, Generation, NoGeneration};

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use disk::{private_folder, read, remove, replace};
use serde::{Deserialize, Serialize};
use trust::{BlobHash, KeyRing, PoolManifest};

/// What is older is not believed any more, ms: 7 days.
pub const BELIEVED_FOR_MS: u64 = 7 * 86_400_000;

/// The longest index that is read: a manifest, and room.
const MAX_INDEX_BYTES: u64 = trust::MAX_MANIFEST_LEN as u64 + 4_096;
const INDEX: &str = "pools.json";
const SUFFIX: &str = ".pool";

/// A folder with the last generation of pools.
#[derive(Clone, Debug)]
pub struct Shelf {
    folder: PathBuf,
    /// One writer at a time: the last one of a process may meet one that is under way.
    writing: Arc<Mutex<()>>,
}

/// The file that names the others; written last.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Index {
    manifest: String,
    confirmed_at_ms: u64,
}

impl Shelf {
    /// A folder, which is made when something is kept.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), writing: Arc::default() }
    }

    /// What was kept, as far as it holds by this ring and is not too old; `None` if nothing is there. A pool whose bytes are missing or
    /// damaged is left out.
    ///
    /// # Errors
    /// See [`NoGeneration`]: whoever starts goes on without.
    pub fn read(&self, ring: &KeyRing, now_ms: u64) -> Result<Option<Generation>, NoGeneration> {
        let Some(text) = read(&self.folder.join(INDEX), MAX_INDEX_BYTES)? else { return Ok(None) };
        let index: Index = serde_json::from_slice(&text).map_err(|_| NoGeneration::Damaged)?;
        if now_ms.saturating_sub(index.confirmed_at_ms) > BELIEVED_FOR_MS {
            return Err(NoGeneration::TooOld);
        }
        let manifest = PoolManifest::verify(&index.manifest, ring, now_ms)?;
        let mut generation = Generation::new(manifest, index.manifest, index.confirmed_at_ms);
        for hash in generation.missing() {
            let longest = selection::pool::MAX_BLOB_BYTES as u64;
            if let Ok(Some(bytes)) = read(&self.blob(hash), longest) {
                // Damaged: as if it were not there.
                let _ = generation.add(hash, bytes.into());
            }
        }
        Ok(Some(generation))
    }

    /// Keeps a generation in place of the last: pools first, then the index, and then pools that it does not name are removed.
    ///
    /// # Errors
    /// The disk's; what was kept before is still there.
    pub fn keep(&self, generation: &Generation) -> io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        private_folder(&self.folder)?;
        for (hash, bytes) in generation.blobs() {
            let path = self.blob(hash);
            if fs::metadata(&path).map_or(true, |found| found.len() != bytes.len() as u64) {
                replace(&path, bytes)?;
            }
        }
        let index =
            Index { manifest: generation.text().to_owned(), confirmed_at_ms: generation.confirmed_at_ms() };
        replace(&self.folder.join(INDEX), &serde_json::to_vec(&index)?)?;
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let hash =
                name.to_str().and_then(|name| name.strip_suffix(SUFFIX)).and_then(|name| name.parse().ok());
            if hash.is_some_and(|hash: BlobHash| !generation.names(hash)) {
                remove(&self.folder.join(name))?;
            }
        }
        Ok(())
    }

    fn blob(&self, hash: BlobHash) -> PathBuf {
        self.folder.join(format!("{hash}{SUFFIX}"))
    }
}

#[cfg(test)]
mod tests;
