//! Redis and Valkey: a single server or a Cluster.
//!
//! Commands go over the crate's connections, one for each node ([`node`]), by a map of slots of our own ([`topology`]); hints
//! come over connections of the listener's own ([`listener`]). Both share the map, so that what one learns the other knows.

mod commands;
mod connect;
mod listener;
mod node;
mod topology;
mod way;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ::redis::{Cmd, Value};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::CacheError;
use crate::cache::CacheCounts;
use crate::config::CacheConfig;
use crate::hints::{Hints, Listening, MAX_CHANNELS};
use crate::slot::slot_of;
use connect::Connector;
use topology::Topology;
pub(crate) use way::Way;

/// How often a connection that is up is asked whether it still answers.
const PING_EVERY: Duration = Duration::from_secs(5);

pub(crate) struct Redis {
    topology: Topology,
    connector: Arc<Connector>,
    places: Semaphore,
    in_flight: usize,
    deadline: Duration,
    check: Duration,
    channels: Mutex<HashMap<String, Weak<Listening>>>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    answered: AtomicU64,
    failed: AtomicU64,
    hints: AtomicU64,
    subscribed: AtomicU64,
    moved: AtomicU64,
}

impl Counters {
    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Redis {
    pub(crate) fn open(way: Way, config: &CacheConfig) -> Self {
        let connector = Arc::new(way.connector);
        let topology = if way.cluster {
            Topology::cluster(way.addresses, Arc::clone(&connector), config.deadline())
        } else {
            Topology::single(way.addresses.into_iter().next().unwrap_or_default(), Arc::clone(&connector))
        };
        Self {
            topology,
            connector,
            places: Semaphore::new(config.in_flight),
            in_flight: config.in_flight,
            deadline: config.deadline(),
            check: config.check(),
            channels: Mutex::default(),
            counters: Arc::default(),
        }
    }

    /// Sends a command about `key`, within the deadline and the number that may be under way.
    async fn call(&self, key: &str, command: &Cmd) -> Result<Value, CacheError> {
        let answer = match self.places.try_acquire() {
            Err(_) => Err(CacheError::Busy { limit: self.in_flight }),
            Ok(_place) => {
                let until = Instant::now() + self.deadline;
                let answer = self.topology.call(slot_of(key.as_bytes()), command, until).await;
                answer.map_err(|error| match error {
                    CacheError::Deadline { .. } => {
                        let limit_ms = u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX);
                        CacheError::Deadline { limit_ms }
                    }
                    other => other,
                })
            }
        };
        Counters::add(if answer.is_ok() { &self.counters.answered } else { &self.counters.failed });
        answer
    }

    pub(crate) fn subscribe(&self, channel: &str) -> Result<Hints, CacheError> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listening) = channels.get(channel).and_then(Weak::upgrade) {
            return Ok(Hints::new(listening));
        }
        channels.retain(|_, listening| listening.strong_count() > 0);
        if channels.len() >= MAX_CHANNELS {
            return Err(CacheError::Full);
        }
        let heard = watch::Sender::new(0);
        let listener = listener::Listener {
            topology: self.topology.clone(),
            connector: Arc::clone(&self.connector),
            channel: channel.to_owned(),
            check: self.check,
            heard: heard.clone(),
            counters: Arc::clone(&self.counters),
        };
        let task = tokio::spawn(listener.run());
        let listening = Arc::new(Listening::new(heard, Some(task.abort_handle())));
        channels.insert(channel.to_owned(), Arc::downgrade(&listening));
        Ok(Hints::new(listening))
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheCounts {
            answered: read(&self.counters.answered),
            failed: read(&self.counters.failed),
            hints: read(&self.counters.hints),
            subscribed: read(&self.counters.subscribed),
            moved: read(&self.counters.moved),
        }
    }
}

#[cfg(test)]
mod tests;
