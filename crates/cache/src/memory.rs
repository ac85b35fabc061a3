//! The cache of one process: a table behind a lock, and channels.

mod table;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use clock::{Clock, unix_ms};
use tokio::sync::watch;

use crate::CacheError;
use crate::cache::{CacheCounts, Count};
use crate::hints::{Hints, Listening, MAX_CHANNELS};
use crate::names::Channel;
use table::Table;

/// What a cache in process may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Entries.
    pub entries: usize,
    /// Bytes, names and a fixed part for each entry with them.
    pub bytes: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { entries: 100_000, bytes: 64 * 1024 * 1024 }
    }
}

pub(crate) struct Memory {
    clock: Clock,
    table: Mutex<Table>,
    channels: Mutex<HashMap<Channel, Weak<Listening>>>,
    answered: AtomicU64,
    hints: AtomicU64,
}

impl Memory {
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        // Above those of the process before this one.
        let first_fence = unix_ms().saturating_mul(1_000);
        Self {
            clock: Clock::start(),
            table: Mutex::new(Table::new(limits, first_fence)),
            channels: Mutex::default(),
            answered: AtomicU64::new(0),
            hints: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.table().get(key, self.clock.now()).map(<[u8]>::to_vec)
    }

    pub(crate) fn put(&self, key: &str, value: &[u8], keep: Duration) -> Result<(), CacheError> {
        self.table().put(key, value, keep, self.clock.now())
    }

    pub(crate) fn take(
        &self,
        key: &str,
        holder: &str,
        keep: Duration,
    ) -> Result<Result<u64, u64>, CacheError> {
        self.table().take(key, holder, keep, self.clock.now())
    }

    pub(crate) fn renew(&self, key: &str, holder: &str, fence: u64, keep: Duration) -> bool {
        self.table().renew(key, holder, fence, keep, self.clock.now())
    }

    pub(crate) fn give_back(&self, key: &str, holder: &str, fence: u64) -> bool {
        self.table().give_back(key, holder, fence, self.clock.now())
    }

    pub(crate) fn count(&self, key: &str, by: u32, window: Duration) -> Result<Count, CacheError> {
        self.table().count(key, by, window, self.clock.now())
    }

    pub(crate) fn publish(&self, channel: Channel) -> Result<(), CacheError> {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let listening = self.channels().get(&channel).and_then(Weak::upgrade);
        if let Some(listening) = listening {
            self.hints.fetch_add(1, Ordering::Relaxed);
            listening.hint();
        }
        Ok(())
    }

    pub(crate) fn subscribe(&self, channel: Channel) -> Result<Hints, CacheError> {
        let mut channels = self.channels();
        if let Some(listening) = channels.get(&channel).and_then(Weak::upgrade) {
            return Ok(Hints::new(listening));
        }
        channels.retain(|_, listening| listening.strong_count() > 0);
        if channels.len() >= MAX_CHANNELS {
            return Err(CacheError::Full);
        }
        let listening = Arc::new(Listening::new(watch::Sender::new(0), None));
        channels.insert(channel, Arc::downgrade(&listening));
        Ok(Hints::new(listening))
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        CacheCounts {
            answered: self.answered.load(Ordering::Relaxed),
            hints: self.hints.load(Ordering::Relaxed),
            ..CacheCounts::default()
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<Channel, Weak<Listening>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
