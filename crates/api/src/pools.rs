//! The newest generation of pools: read from the database, signed, served, and kept on this disk for the time without one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use clock::unix_ms;
use keys::Signer;
use selection::pool::Member;
use snapshot::{Generation, NoGeneration, Shelf};
use store::{PoolRow, Store, StoreError};
use trust::api::ProviderFigures;
use trust::{BlobHash, KeyRing, NetworkId, PoolEntry, PoolManifest, TokenError};

/// How often the database is asked for a newer generation, at least: so late is this process.
const LEAST_LOOK: Duration = Duration::from_millis(500);
/// And at most.
const MOST_LOOK: Duration = Duration::from_secs(5);
/// Rest after a look that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A newer generation is written to the disk at most so often, ms.
const SAVE_EVERY_MS: u64 = 5_000;
/// And that the same one has been confirmed, ms.
const CONFIRM_EVERY_MS: u64 = 60_000;
/// A generation is stale if it has not been confirmed for three looks of the worker and so long, ms.
const STALE_GRACE_MS: u64 = 10_000;

/// A generation that is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) generation: Generation,
    /// Why the worker has not published the next one.
    held_cause: Option<String>,
    /// Whoever reads the one before may finish.
    before: Option<Arc<Self>>,
    members: OnceLock<Vec<Member>>,
}

/// How old a generation is, and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Age {
    pub(crate) stale: bool,
    pub(crate) cause: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the manifest cannot be signed: {0}")]
    Sign(#[from] TokenError),
    #[error("no key that signs for this network is here")]
    NoKey,
    #[error(transparent)]
    Pool(#[from] NoGeneration),
    #[error("the database has no bytes for a pool of its newest generation")]
    Missing,
}

pub(crate) struct PoolKeeper {
    network: NetworkId,
    shelf: Option<Shelf>,
    current: Mutex<Option<Arc<Served>>>,
    /// Number and time of what is on the disk.
    saved: Mutex<(u64, u64)>,
    /// The database gave no answer to the last look.
    silent: AtomicBool,
}

impl Served {
    fn new(generation: Generation, held_cause: Option<String>, before: Option<Arc<Self>>) -> Self {
        Self { generation, held_cause, before, members: OnceLock::new() }
    }

    /// The bytes of a pool of this generation, or of the one before.
    pub(crate) fn blob(&self, hash: BlobHash) -> Option<snapshot::Bytes> {
        let before = || self.before.as_ref().and_then(|before| before.generation.blob(hash));
        self.generation.blob(hash).or_else(before).cloned()
    }

    /// Everybody who is listed in any pool.
    pub(crate) fn members(&self) -> &[Member] {
        self.members.get_or_init(|| {
            let pools = &self.generation.manifest().pools;
            let mut members: Vec<Member> =
                pools.iter().flat_map(|pool| self.generation.members(&pool.name)).collect();
            members.sort_unstable_by_key(|member| member.provider);
            members.dedup_by_key(|member| member.provider);
            members
        })
    }

    /// How many providers there are, and how far that can be trusted.
    pub(crate) fn figures(&self, now_ms: u64) -> ProviderFigures {
        let (manifest, age) = (self.generation.manifest(), self.age(now_ms));
        let countries = manifest.pools.iter().filter(|pool| pool.name != "best");
        ProviderFigures {
            listed: manifest.pool("best").map_or(0, |best| best.connected.into()),
            verified: countries.map(|pool| u64::from(pool.verified)).sum(),
            registered: manifest.registered,
            as_of_ms: self.generation.confirmed_at_ms(),
            stale: age.stale,
            cause: age.cause,
        }
    }

    pub(crate) fn age(&self, now_ms: u64) -> Age {
        let manifest = self.generation.manifest();
        let fresh_ms = manifest.every_ms.saturating_mul(3).saturating_add(STALE_GRACE_MS);
        let age_ms = now_ms.saturating_sub(self.generation.confirmed_at_ms());
        let late = age_ms > fresh_ms;
        let cause = self
            .held_cause
            .clone()
            .or_else(|| late.then(|| format!("nobody has looked who is connected for {} s", age_ms / 1_000)));
        Age { stale: late || self.held_cause.is_some(), cause }
    }
}

impl PoolKeeper {
    /// With what was kept by an earlier start, as far as the ring on this disk believes it.
    pub(crate) fn new(network: NetworkId, folder: Option<PathBuf>, ring: Option<&KeyRing>) -> Self {
        let shelf = folder.map(|folder| Shelf::new(folder.join("pools")));
        let kept = shelf.as_ref().zip(ring).and_then(|(shelf, ring)| match shelf.read(ring, unix_ms()) {
            Ok(kept) => kept.filter(|kept| kept.missing().is_empty()),
            Err(error) => {
                tracing::warn!(%error, "the kept pools are not used");
                None
            }
        });
        let current = kept.map(|generation| Arc::new(Served::new(generation, None, None)));
        Self {
            network,
            shelf,
            current: Mutex::new(current),
            saved: Mutex::default(),
            silent: AtomicBool::new(false),
        }
    }

    /// The newest that is known.
    pub(crate) fn current(&self) -> Option<Arc<Served>> {
        lock(&self.current).clone()
    }

    /// Whether the database gave no answer to the last look, a moment ago: then others need not wait to hear the same.
    pub(crate) fn is_database_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// Keeps looking. Never ends.
    pub(crate) async fn keep(&self, store: &Store, signer: &Signer) {
        let mut failing = false;
        loop {
            let looked = self.look(store, signer).await;
            let is_silent = matches!(&looked, Err(LookError::Store(error)) if error.is_silence());
            self.silent.store(is_silent, Ordering::Relaxed);
            let rest = match looked {
                Ok(()) => {
                    failing = false;
                    let every = self.current().map_or(0, |served| served.generation.manifest().every_ms);
                    Duration::from_millis(every / 4).clamp(LEAST_LOOK, MOST_LOOK)
                }
                Err(error) => {
                    // Once for each time that it begins to fail.
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "no newer generation of pools; the last one is served");
                    }
                    RETRY_AFTER
                }
            };
            tokio::time::sleep(rest.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
        }
    }

    async fn look(&self, store: &Store, signer: &Signer) -> Result<(), LookError> {
        let Some(row) = store.generation().await? else { return Ok(()) };
        let current = self.current();
        let served = match current {
            // Signed anew after a rotation: one day the old key is believed no more. The same key gives the same text.
            Some(current)
                if current.generation.manifest().number == row.number
                    && signer.key().is_none_or(|key| {
                        let text = current.generation.manifest().sign(&key);
                        text.is_ok_and(|text| text == current.generation.text())
                    }) =>
            {
                let mut generation = current.generation.clone();
                generation.confirm(row.confirmed_at_ms);
                Served::new(generation, row.held_cause, current.before.clone())
            }
            // A database that was restored: what was published later is gone, and numbers go on above it.
            Some(current) if current.generation.manifest().number > row.number => return Ok(()),
            current => {
                let manifest = PoolManifest {
                    network: self.network,
                    number: row.number,
                    built_at_ms: row.built_at_ms,
                    every_ms: row.every_ms,
                    registered: row.registered,
                    pools: row.pools.into_iter().map(entry).collect(),
                };
                let key = signer.key().ok_or(LookError::NoKey)?;
                let text = manifest.sign(&key)?;
                let mut generation = Generation::new(manifest, text, row.confirmed_at_ms);
                if let Some(current) = &current {
                    generation.take_from(&current.generation);
                }
                for hash in generation.missing() {
                    let bytes = store.pool_blob(hash).await?.ok_or(LookError::Missing)?;
                    generation.add(hash, bytes.into())?;
                }
                let before = current.map(|current| {
                    let Served { generation, held_cause, .. } = &*current;
                    Arc::new(Served::new(generation.clone(), held_cause.clone(), None))
                });
                Served::new(generation, row.held_cause, before)
            }
        };
        let served = Arc::new(served);
        *lock(&self.current) = Some(Arc::clone(&served));
        self.save(served).await;
        Ok(())
    }

    /// Keeps it on the disk, if it is time to.
    async fn save(&self, served: Arc<Served>) {
        let Some(shelf) = self.shelf.clone() else { return };
        {
            let (now_ms, number) = (unix_ms(), served.generation.manifest().number);
            let mut saved = lock(&self.saved);
            let every_ms = if saved.0 == number { CONFIRM_EVERY_MS } else { SAVE_EVERY_MS };
            if now_ms.saturating_sub(saved.1) < every_ms {
                return;
            }
            *saved = (number, now_ms);
        }
        // A slow disk is waited for elsewhere.
        let _ = tokio::task::spawn_blocking(move || write(&shelf, &served)).await;
    }

    /// Keeps the newest on the disk.
    pub(crate) fn save_now(&self) {
        if let Some((shelf, served)) = self.shelf.as_ref().zip(self.current()) {
            write(shelf, &served);
        }
    }
}

fn write(shelf: &Shelf, served: &Served) {
    if let Err(error) = shelf.keep(&served.generation) {
        tracing::warn!(%error, "the pools could not be kept on disk");
    }
}

fn entry(row: PoolRow) -> PoolEntry {
    let PoolRow { name, hash, listed, connected, verified } = row;
    PoolEntry { name, hash, listed, connected, verified }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
