//! The cache: what may be lost at any time. In process, or in Redis or Valkey, single or Cluster, behind one type.
//!
//! It is never the truth. Four things it does, each of which may be refused, forgotten or late: [`Cache::get`] and
//! [`Cache::put`] with expiry; leases with a fencing number ([`Cache::take`], [`Cache::renew`], [`Cache::give_back`]);
//! counters of a window ([`Cache::count`]); hints ([`Cache::publish`], [`Cache::subscribe`]), which carry no data. Whoever
//! uses one of them knows what to do without it: what is lost with a cache is freshness, never money or an identity.
//!
//! Every call answers within [`CacheConfig::deadline_ms`], and there are at most [`CacheConfig::in_flight`] at once. With
//! Redis gone, calls fail at once with the time of the next attempt; nothing waits for it and nothing grows.

mod cache;
mod config;
mod error;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod hints;
mod memory;
mod names;
mod redis;
mod slot;

pub use cache::{Cache, CacheCounts, Count, GREATEST_VALUE_BYTES, Lease, Take};
pub use config::{CacheConfig, CacheConfigError};
pub use error::CacheError;
pub use hints::{Hints, MAX_CHANNELS, Publisher};
pub use memory::MemoryLimits;
pub use names::{Channel, Key};
