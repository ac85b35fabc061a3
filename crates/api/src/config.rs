//! `api.toml`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use cache::CacheConfig;
use serde::Deserialize;
use store::{ConfigError, DatabaseConfig};

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The network's name.
    pub network: trust::NetworkId,
    /// PEM: the role's certificate, then the root's.
    pub certificate: PathBuf,
    /// PEM: its key.
    pub certificate_key: PathBuf,
    /// The key that signs tokens and contracts: its seed in base64url.
    pub token_key: PathBuf,
    /// A folder with the keys that follow it, each in a file `….key`. It is looked at while the api runs; which of all keys
    /// signs is for the key ring to say.
    #[serde(default)]
    pub token_keys: Option<PathBuf>,
    /// The root key, if it may be here: then revocations are signed at once, and a new network gets its first documents.
    #[serde(default)]
    pub root_key: Option<PathBuf>,
    /// Where the signed documents, and who is refused, are kept, for a start without the database.
    #[serde(default)]
    pub state_folder: Option<PathBuf>,
    /// A database that has given no answer for this long is gone, ms: known accounts get one block without it.
    #[serde(default = "offline_after_ms")]
    pub offline_after_ms: u64,
    /// Where hints of changes go; in process without.
    #[serde(default)]
    pub cache: CacheConfig,
    /// The way to the database.
    pub database: DatabaseConfig,
}

fn offline_after_ms() -> u64 {
    15_000
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        store::config::read_toml(path)
    }
}
