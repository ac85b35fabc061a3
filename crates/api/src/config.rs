//! `api.toml`.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use store::pool::PoolOptions;

/// The largest file that is read, bytes.
const FILE_MAX: u64 = 256 * 1024;

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
    /// The root key, if it may be here: then revocations are signed at once, and a new network gets its first documents.
    #[serde(default)]
    pub root_key: Option<PathBuf>,
    /// Where the signed documents are kept, for a start without the database.
    #[serde(default)]
    pub state_folder: Option<PathBuf>,
    /// A relay that has not beaten for this long has nobody, ms.
    #[serde(default = "relay_silence_ms")]
    pub relay_silence_ms: u64,
    /// The way to the database.
    pub database: DatabaseConfig,
}

/// The way to the database.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseConfig {
    /// `postgresql://holdfast_api:…@host:port/database`, through the pooler.
    pub url: String,
    /// The most connections.
    #[serde(default = "connections")]
    pub connections: usize,
    /// How long a request waits for one, ms.
    #[serde(default = "acquire_ms")]
    pub acquire_ms: u64,
    /// How long its statements may take, ms.
    #[serde(default = "work_ms")]
    pub work_ms: u64,
    /// The pooler's `query_wait_timeout`, ms. It has to be shorter than both.
    #[serde(default)]
    pub pooler_wait_ms: Option<u64>,
}

impl std::fmt::Debug for DatabaseConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseConfig").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl DatabaseConfig {
    pub(crate) fn pool_options(&self) -> PoolOptions {
        PoolOptions {
            connections: self.connections,
            acquire_ms: self.acquire_ms,
            work_ms: self.work_ms,
            pooler_wait_ms: self.pooler_wait_ms,
            ..PoolOptions::default()
        }
    }
}

fn relay_silence_ms() -> u64 {
    30_000
}

fn connections() -> usize {
    PoolOptions::default().connections
}

fn acquire_ms() -> u64 {
    PoolOptions::default().acquire_ms
}

fn work_ms() -> u64 {
    PoolOptions::default().work_ms
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is wrong; the text names line and column.
    #[error("{}: {cause}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = read(path)?;
        // Without the line itself, which may hold a password.
        toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1;
            wrong(path, format!("line {line}, column {column}: {}", error.message()))
        })
    }
}

/// The text of a file of bounded size.
pub(crate) fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > FILE_MAX {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    fs::read_to_string(path).map_err(failed)
}

pub(crate) fn wrong(path: &Path, cause: impl ToString) -> ConfigError {
    ConfigError::Wrong { path: path.to_owned(), cause: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_named_with_its_place_and_without_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("api.toml");
        fs::write(
            &file,
            "listen = \"127.0.0.1:1\"\n[database]\nurl = \"postgresql://a:hunter2@b/c\"\nconections = 3\n",
        )
        .unwrap();
        let error = Config::read(&file).unwrap_err().to_string();
        assert!(error.contains("line 4, column 1") && error.contains("conections"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
