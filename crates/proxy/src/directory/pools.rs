//! Generations of pools: asked for, believed by their signature, taken whole, kept on the disk.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use clock::unix_ms;
use selection::Country;
use snapshot::{BELIEVED_FOR_MS, Generation, NoGeneration};
use tokio::time::timeout;
use trust::api::PoolsAnswer;
use trust::{BlobHash, PoolManifest, TokenError};
use uuid::Uuid;

use super::known::of_pool;
use super::{Directory, Provider};
use crate::control::{Control, ControlError};

/// The longest that a manifest, or the bytes of a pool, are waited for.
const POOLS_WAIT: Duration = Duration::from_secs(10);

/// Without a word from the api for three looks of the worker and so long, a generation is stale, ms.
const STALE_GRACE_MS: u64 = 10_000;

/// A key that is not known makes the key ring be read, at most so often, ms.
const RING_EVERY_MS: u64 = 10_000;

/// A newer generation is written to the disk at most so often, ms; and that the same one still holds, once a minute.
const KEEP_EVERY_MS: u64 = 5_000;
const CONFIRM_EVERY_MS: u64 = 60_000;

/// What stands on the disk, what was heard last, and what has been told to the log.
#[derive(Debug, Default)]
pub(super) struct Kept {
    number: u64,
    written_at_ms: u64,
    tag: Option<String>,
    /// Not to be asked before, ms since 1970.
    next_look_ms: u64,
    ring_read_at_ms: u64,
    /// The api says that nobody vouches for it, and why.
    doubt: Option<String>,
    told_stale: bool,
}

#[cfg(test)]
impl Kept {
    /// The next look is due now.
    pub(super) fn set_due(&mut self) {
        self.next_look_ms = 0;
    }
}

#[derive(Debug, thiserror::Error)]
enum NoPools {
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Generation(#[from] NoGeneration),
    #[error("the manifest of the pools: {0}")]
    Manifest(#[from] TokenError),
    #[error("no answer in time")]
    Late,
}

impl<C: Control> Directory<C> {
    /// Takes in the generation that an earlier run has kept, if it holds.
    pub(crate) async fn restore_pools(&self) {
        let Some(shelf) = self.shelf.clone() else { return };
        let ring = self.control.key_ring();
        let read = tokio::task::spawn_blocking(move || shelf.read(&ring, unix_ms())).await;
        match read {
            Ok(Ok(Some(generation))) => {
                let number = generation.manifest().number;
                self.take(generation).await;
                tracing::info!(number, providers = self.len(), "providers as they were last known");
            }
            Ok(Err(error)) => tracing::warn!(%error, "the providers that were last known are not used"),
            Ok(Ok(None)) | Err(_) => {}
        }
    }

    /// Looks for a newer generation, if it is time to. Whether there is one that is fresh.
    pub(super) async fn refresh_pools(&self) -> bool {
        let now_ms = unix_ms();
        let next_look_ms = self.kept().next_look_ms;
        // A clock that was set back does not stop the looking.
        if now_ms >= next_look_ms || next_look_ms - now_ms > BELIEVED_FOR_MS {
            let looked = self.look_for_pools().await;
            self.lock().hears = looked.is_ok();
            if let Err(error) = looked {
                tracing::debug!(%error, "pools stay as they were last known");
            } else {
                self.write().await;
            }
            let every_ms = self.lock().generation.as_ref().map_or(0, |last| last.manifest().every_ms);
            // Half a period, give or take a half of that: proxies do not fall into step.
            self.kept().next_look_ms = now_ms + every_ms / 4 + fastrand::u64(0..=every_ms / 2);
        }
        self.judge_age().await
    }

    async fn look_for_pools(&self) -> Result<(), NoPools> {
        let tag = self.kept().tag.clone();
        let answer =
            timeout(POOLS_WAIT, self.control.pools(tag.as_deref())).await.map_err(|_| NoPools::Late)??;
        let Some((answer, tag)) = answer else {
            if self.kept().doubt.is_none()
                && let Some(generation) = &mut self.lock().generation
            {
                generation.confirm(unix_ms());
            }
            return Ok(());
        };
        let manifest = self.verify(&answer.manifest).await?;
        let held = self.lock().generation.as_ref().map(|last| last.manifest().number);
        if held.is_none_or(|held| held < manifest.number) {
            let mut generation = Generation::new(manifest, answer.manifest.clone(), confirmed_at_ms(&answer));
            self.fill(&mut generation).await?;
            self.take(generation).await;
        } else if held == Some(manifest.number)
            && let Some(generation) = &mut self.lock().generation
        {
            generation.confirm(confirmed_at_ms(&answer));
        }
        let mut kept = self.kept();
        kept.doubt = answer.stale.then(|| answer.cause.unwrap_or_default());
        kept.tag = Some(tag);
        Ok(())
    }

    /// Reads a manifest; if its key is not known, after the ring has been read anew.
    async fn verify(&self, manifest: &str) -> Result<PoolManifest, NoPools> {
        match PoolManifest::verify(manifest, &self.control.key_ring(), unix_ms()) {
            Err(TokenError::UnknownKey(key)) => {
                let now_ms = unix_ms();
                {
                    let mut kept = self.kept();
                    if now_ms.saturating_sub(kept.ring_read_at_ms) < RING_EVERY_MS {
                        return Err(TokenError::UnknownKey(key).into());
                    }
                    kept.ring_read_at_ms = now_ms;
                }
                timeout(POOLS_WAIT, self.control.renew_key_ring()).await.map_err(|_| NoPools::Late)??;
                Ok(PoolManifest::verify(manifest, &self.control.key_ring(), unix_ms())?)
            }
            verified => Ok(verified?),
        }
    }

    /// Gets the bytes of the pools that are used, as far as they are not at hand.
    async fn fill(&self, generation: &mut Generation) -> Result<(), NoPools> {
        let used = {
            let mut state = self.lock();
            if let Some(last) = &state.generation {
                generation.take_from(last);
            }
            state.used_pools(self.clock.now())
        };
        for name in used {
            let hash = generation.manifest().pool(&name).map(|pool| pool.hash);
            if let Some(hash) = hash.filter(|hash| generation.blob(*hash).is_none()) {
                generation.add(hash, self.fetch(hash).await?.into())?;
            }
        }
        Ok(())
    }

    async fn fetch(&self, hash: BlobHash) -> Result<Vec<u8>, NoPools> {
        Ok(timeout(POOLS_WAIT, self.control.pool(hash)).await.map_err(|_| NoPools::Late)??)
    }

    /// Gets the pool of a country that customers ask for.
    pub(super) async fn fetch_country(&self, country: Country) {
        let Some(mut generation) = self.lock().generation.clone() else { return };
        let hash = generation.manifest().pool(country.as_str()).map(|pool| pool.hash);
        let Some(hash) = hash.filter(|hash| generation.blob(*hash).is_none()) else { return };
        let added = match self.fetch(hash).await {
            Ok(bytes) => generation.add(hash, bytes.into()).map_err(NoPools::from),
            Err(error) => Err(error),
        };
        match added {
            Ok(()) => {
                self.take(generation).await;
                self.kept().number = 0;
            }
            Err(error) => tracing::debug!(%error, %country, "a country's providers are not known"),
        }
    }

    /// Takes a generation in place of the last one, whole.
    async fn take(&self, generation: Generation) {
        let read = tokio::task::spawn_blocking(move || {
            let listed = listed(&generation);
            (generation, listed)
        });
        let Ok((generation, listed)) = read.await else { return };
        let mut state = self.lock();
        // Another one may have come meanwhile.
        if state.generation.as_ref().is_none_or(|held| held.manifest().number <= generation.manifest().number)
        {
            state.generation = Some(generation);
            state.set_listed(listed, self.clock.now());
        }
    }

    /// Whether the generation is fresh; says so when that changes. One that is too old is not used any more.
    async fn judge_age(&self) -> bool {
        let age = self.lock().generation.as_ref().map(|last| {
            let age_ms = unix_ms().saturating_sub(last.confirmed_at_ms());
            let fresh_ms = last.manifest().every_ms.saturating_mul(3).saturating_add(STALE_GRACE_MS);
            (age_ms, age_ms <= fresh_ms)
        });
        let Some((age_ms, is_young)) = age else { return false };
        if age_ms > BELIEVED_FOR_MS {
            tracing::error!("the pools of providers are older than 7 days, and not used any more");
            let mut state = self.lock();
            state.generation = None;
            state.set_listed(HashMap::new(), self.clock.now());
            return false;
        }
        let mut kept = self.kept();
        let is_fresh = is_young && kept.doubt.is_none();
        if kept.told_stale == is_fresh {
            kept.told_stale = !is_fresh;
            let cause = kept.doubt.as_deref().unwrap_or("no answer from the api");
            if is_fresh {
                tracing::info!("the list of providers is fresh again");
            } else {
                tracing::warn!(
                    age_s = age_ms / 1_000,
                    cause,
                    "the list of providers is stale, and used as it was"
                );
            }
        }
        is_fresh
    }

    /// Writes the generation to the disk, if it is time to.
    async fn write(&self) {
        let Some((shelf, generation)) = self.shelf.clone().zip(self.lock().generation.clone()) else {
            return;
        };
        {
            let (now_ms, number) = (unix_ms(), generation.manifest().number);
            let mut kept = self.kept();
            let every_ms = if kept.number == number { CONFIRM_EVERY_MS } else { KEEP_EVERY_MS };
            if now_ms.saturating_sub(kept.written_at_ms) < every_ms {
                return;
            }
            (kept.number, kept.written_at_ms) = (number, now_ms);
        }
        // A slow disk is waited for elsewhere.
        let written = tokio::task::spawn_blocking(move || shelf.keep(&generation)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "the pools of providers cannot be kept on this disk");
        }
    }

    /// Writes the newest to the disk, at a stop.
    pub(crate) fn write_now(&self) {
        let generation = self.lock().generation.clone();
        if let Some((shelf, generation)) = self.shelf.as_ref().zip(generation)
            && let Err(error) = shelf.keep(&generation)
        {
            tracing::warn!(%error, "the pools of providers cannot be kept on this disk");
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By our own clock: what counts is how old it was.
fn confirmed_at_ms(answer: &PoolsAnswer) -> u64 {
    unix_ms().saturating_sub(answer.now_ms.saturating_sub(answer.confirmed_at_ms))
}

/// Everybody in the pools whose bytes are here.
fn listed(generation: &Generation) -> HashMap<Uuid, Arc<Provider>> {
    let mut listed: HashMap<Uuid, Arc<Provider>> = HashMap::new();
    for pool in &generation.manifest().pools {
        for member in generation.members(&pool.name) {
            listed.entry(member.provider).or_insert_with(|| Arc::new(of_pool(&member)));
        }
    }
    listed
}
