//! The `[cache]` section of a role's file.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use trust::NetworkId;

use crate::memory::MemoryLimits;
use crate::{Cache, redis};

/// Where the cache is. Without `url` it is in this process.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// `redis://user:password@host:port/database`, or `rediss://…` for TLS. None: in process.
    pub url: Option<String>,
    /// Whether it is a Cluster.
    pub cluster: bool,
    /// Further nodes of the Cluster to ask for its shape at the start, `host:port`.
    pub nodes: Vec<String>,
    /// PEM: the authorities of the server's certificate. Needed for `rediss://`.
    pub ca: Option<PathBuf>,
    /// Within this time a call answers or fails, ms.
    pub deadline_ms: u64,
    /// Calls at once.
    pub in_flight: usize,
    /// How often a subscription is asked whether it still stands, ms.
    pub check_ms: u64,
    /// In process: the most entries.
    pub entries: usize,
    /// In process: the most bytes.
    pub bytes: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        let MemoryLimits { entries, bytes } = MemoryLimits::default();
        Self {
            url: None,
            cluster: false,
            nodes: Vec::new(),
            ca: None,
            deadline_ms: 250,
            in_flight: 256,
            check_ms: 30_000,
            entries,
            bytes,
        }
    }
}

impl CacheConfig {
    /// A server, all else by default.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// The cache of a network; without an address the one of this process, which all roles in it share, made by the first of
    /// them. Nothing is waited for: a server that is not there is no reason not to start. Call it in a
    /// runtime of tokio's.
    ///
    /// # Errors
    /// See [`CacheConfigError`].
    pub fn open(&self, network: NetworkId) -> Result<Cache, CacheConfigError> {
        for (setting, value) in [
            ("deadline_ms", self.deadline_ms),
            ("in_flight", self.in_flight as u64),
            ("check_ms", self.check_ms),
            ("entries", self.entries as u64),
            ("bytes", self.bytes as u64),
        ] {
            if value == 0 {
                return Err(CacheConfigError::Zero(setting));
            }
        }
        match &self.url {
            None if self.cluster || !self.nodes.is_empty() => Err(CacheConfigError::NoUrl),
            None => {
                let limits = MemoryLimits { entries: self.entries, bytes: self.bytes };
                Ok(Cache::of_this_process(network, limits))
            }
            Some(url) => {
                let way = redis::Way::parse(url, self.cluster, &self.nodes, self.ca.as_deref())?;
                Ok(Cache::remote(network, way, self))
            }
        }
    }

    pub(crate) const fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    pub(crate) const fn check(&self) -> Duration {
        Duration::from_millis(self.check_ms)
    }
}

/// Without the address: a password stands in it.
impl fmt::Debug for CacheConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheConfig")
            .field("remote", &self.url.is_some())
            .field("cluster", &self.cluster)
            .field("deadline_ms", &self.deadline_ms)
            .finish_non_exhaustive()
    }
}

/// Why a cache cannot be used as it is configured. Nothing of the address is shown.
#[derive(Debug, thiserror::Error)]
pub enum CacheConfigError {
    /// The address.
    #[error("cache.url: {0}")]
    Url(&'static str),
    /// A cluster without an address.
    #[error("cache.url is missing, but cache.cluster or cache.nodes is set")]
    NoUrl,
    /// One of the further nodes.
    #[error("cache.nodes: {0:?} is not host:port")]
    Node(String),
    /// The authorities.
    #[error("cache.ca: {0}")]
    Authorities(String),
    /// A setting that cannot be nothing.
    #[error("cache.{0} must not be 0")]
    Zero(&'static str),
}

#[cfg(test)]
mod tests;
