//! The one type that callers see.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use trust::NetworkId;

use crate::CacheError;
use crate::config::CacheConfig;
use crate::hints::{Hints, Publisher};
use crate::memory::{Memory, MemoryLimits};
use crate::names::{Channel, Class, Key, Names};
use crate::redis::{Redis, Way};

/// The greatest value, bytes.
pub const GREATEST_VALUE_BYTES: usize = 64 * 1024;

/// A cache. Clones share it.
#[derive(Clone)]
pub struct Cache {
    names: Names,
    backend: Arc<Backend>,
}

enum Backend {
    Memory(Memory),
    Redis(Redis),
}

/// A lease that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    key: Key,
    holder: Box<str>,
    fence: u64,
}

impl Lease {
    /// Greater than that of every earlier holder. What is done under the lease carries it, and whoever keeps the truth refuses
    /// one that is lower than the greatest it has seen: a holder may learn too late that its lease is over.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }
}

/// What came of taking a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is the caller's.
    Taken(Lease),
    /// Another has it.
    Held {
        /// For so long, if it is not renewed, ms.
        for_ms: u64,
    },
}

/// Where a counter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// In this window, what was just added with it.
    pub total: u64,
    /// The window ends in so long, ms.
    pub ends_in_ms: u64,
}

/// What a cache has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Calls that were answered.
    pub answered: u64,
    /// Calls that were not.
    pub failed: u64,
    /// Hints that came in.
    pub hints: u64,
    /// Subscriptions that were confirmed, first ones and those after a loss.
    pub subscribed: u64,
    /// Subscriptions that the server ended by itself, because their slot moved.
    pub moved: u64,
}

impl Cache {
    /// A cache of its own, in process.
    #[must_use]
    pub fn in_process(network: NetworkId, limits: MemoryLimits) -> Self {
        Self { names: Names::new(network), backend: Arc::new(Backend::Memory(Memory::new(limits))) }
    }

    /// The cache of this process for a network: roles that run in one process hear each other through it.
    pub(crate) fn of_this_process(network: NetworkId, limits: MemoryLimits) -> Self {
        static SHARED: Mutex<Vec<(NetworkId, Weak<Backend>)>> = Mutex::new(Vec::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            shared.iter().find(|(known, _)| *known == network).and_then(|(_, shared)| shared.upgrade());
        if let Some(backend) = known {
            return Self { names: Names::new(network), backend };
        }
        let cache = Self::in_process(network, limits);
        shared.retain(|(_, shared)| shared.strong_count() > 0);
        shared.push((network, Arc::downgrade(&cache.backend)));
        cache
    }

    pub(crate) fn remote(network: NetworkId, way: Way, config: &CacheConfig) -> Self {
        Self { names: Names::new(network), backend: Arc::new(Backend::Redis(Redis::open(way, config))) }
    }

    /// What was put there, if it has not expired or been thrown out.
    ///
    /// # Errors
    /// See [`CacheError`].
    pub async fn get(&self, key: &Key) -> Result<Option<Vec<u8>>, CacheError> {
        let key = self.names.key(Class::Value, key);
        match &*self.backend {
            Backend::Memory(memory) => Ok(memory.get(&key)),
            Backend::Redis(redis) => redis.get(&key).await,
        }
    }

    /// Keeps a value for at most `keep`.
    ///
    /// # Errors
    /// See [`CacheError`]; whatever was there before may then still be.
    pub async fn put(&self, key: &Key, value: &[u8], keep: Duration) -> Result<(), CacheError> {
        if value.len() > GREATEST_VALUE_BYTES {
            return Err(CacheError::TooLarge { limit: GREATEST_VALUE_BYTES });
        }
        let key = self.names.key(Class::Value, key);
        match &*self.backend {
            Backend::Memory(memory) => memory.put(&key, value, keep),
            Backend::Redis(redis) => redis.put(&key, value, keep).await,
        }
    }

    /// Takes a lease for `keep`. A holder that has it already has it anew, with the same number: so a call whose answer was lost
    /// can be made again. `holder` names one taker, and nobody else.
    ///
    /// # Errors
    /// See [`CacheError`].
    pub async fn take(&self, key: &Key, holder: &str, keep: Duration) -> Result<Take, CacheError> {
        let name = self.names.key(Class::Lease, key);
        let taken = match &*self.backend {
            Backend::Memory(memory) => memory.take(&name, holder, keep)?,
            Backend::Redis(redis) => redis.take(&name, holder, keep).await?,
        };
        Ok(match taken {
            Ok(fence) => Take::Taken(Lease { key: key.clone(), holder: holder.into(), fence }),
            Err(for_ms) => Take::Held { for_ms },
        })
    }

    /// Extends a lease. `false`: it is over, and whoever held it stops.
    ///
    /// # Errors
    /// See [`CacheError`].
    pub async fn renew(&self, lease: &Lease, keep: Duration) -> Result<bool, CacheError> {
        let name = self.names.key(Class::Lease, &lease.key);
        match &*self.backend {
            Backend::Memory(memory) => Ok(memory.renew(&name, &lease.holder, lease.fence, keep)),
            Backend::Redis(redis) => redis.renew(&name, &lease.holder, lease.fence, keep).await,
        }
    }

    /// Ends a lease, so that another need not wait for its expiry. `false`: it was over.
    ///
    /// # Errors
    /// See [`CacheError`]; it then ends by expiry.
    pub async fn give_back(&self, lease: Lease) -> Result<bool, CacheError> {
        let name = self.names.key(Class::Lease, &lease.key);
        match &*self.backend {
            Backend::Memory(memory) => Ok(memory.give_back(&name, &lease.holder, lease.fence)),
            Backend::Redis(redis) => redis.give_back(&name, &lease.holder, lease.fence).await,
        }
    }

    /// Adds to a counter whose window begins with the first addition and is never extended. After an error it may have been
    /// added or not.
    ///
    /// # Errors
    /// See [`CacheError`].
    pub async fn count(&self, key: &Key, by: u32, window: Duration) -> Result<Count, CacheError> {
        let name = self.names.key(Class::Count, key);
        match &*self.backend {
            Backend::Memory(memory) => memory.count(&name, by, window),
            Backend::Redis(redis) => redis.count(&name, by, window).await,
        }
    }

    /// Tells everyone who listens that there is something to read. Whoever cannot wait for it uses [`Self::publisher`].
    ///
    /// # Errors
    /// See [`CacheError`]. The listeners then find out when they read the next time.
    pub async fn publish(&self, channel: Channel) -> Result<(), CacheError> {
        match &*self.backend {
            Backend::Memory(memory) => memory.publish(channel),
            Backend::Redis(redis) => redis.publish(&self.names.channel(channel)).await,
        }
    }

    /// Publishes without waiting: many notifications close together are one. Call it in a runtime of tokio's.
    #[must_use]
    pub fn publisher(&self, channel: Channel) -> Publisher {
        Publisher::start(self.clone(), channel)
    }

    /// Listens. The first hint comes with each (re)subscription: what happened before it was not heard. Call it in a runtime
    /// of tokio's.
    ///
    /// # Errors
    /// [`CacheError::Full`] beyond [`MAX_CHANNELS`](crate::MAX_CHANNELS).
    pub fn subscribe(&self, channel: Channel) -> Result<Hints, CacheError> {
        match &*self.backend {
            Backend::Memory(memory) => memory.subscribe(channel),
            Backend::Redis(redis) => redis.subscribe(&self.names.channel(channel)),
        }
    }

    /// Passes every hint on to somebody who waits to be told to read; never ends.
    pub async fn wake(&self, channel: Channel, reader: &Notify) {
        match self.subscribe(channel) {
            Ok(mut hints) => loop {
                hints.heard().await;
                reader.notify_one();
            },
            Err(error) => {
                tracing::warn!(%channel, "hints are not heard, and changes only at the next reading: {error}");
                std::future::pending::<()>().await;
            }
        }
    }

    /// What it has done.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        match &*self.backend {
            Backend::Memory(memory) => memory.counts(),
            Backend::Redis(redis) => redis.counts(),
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &*self.backend {
            Backend::Memory(_) => "in process",
            Backend::Redis(_) => "remote",
        };
        f.debug_struct("Cache").field("place", &place).finish_non_exhaustive()
    }
}
