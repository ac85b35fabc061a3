//! The part of a role's configuration that leads to the database, and the reading of a file that holds it: what is wrong in it is
//! named by its place, and never shown, because it may be a password.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::pool::{InvalidPool, Pool, PoolOptions};
use crate::{PathError, Store};
use trust::NetworkId;

/// The largest file that is read, bytes.
const FILE_MAX: u64 = 256 * 1024;

/// The way to the database.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseConfig {
    /// `postgresql://holdfast_…:…@host:port/database`, through the pooler.
    pub url: String,
    /// The most connections.
    #[serde(default = "connections")]
    pub connections: usize,
    /// How long work waits for one, ms.
    #[serde(default = "acquire_ms")]
    pub acquire_ms: u64,
    /// How long its statements may take, ms.
    #[serde(default = "work_ms")]
    pub work_ms: u64,
    /// The pooler's `query_wait_timeout`, ms. It has to be shorter than both.
    #[serde(default)]
    pub pooler_wait_ms: Option<u64>,
}

impl DatabaseConfig {
    /// All defaults.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        let (connections, acquire_ms, work_ms) = (connections(), acquire_ms(), work_ms());
        Self { url: url.into(), connections, acquire_ms, work_ms, pooler_wait_ms: None }
    }

    /// A pool to there. Nothing is dialled yet.
    ///
    /// # Errors
    /// The address or the limits make no sense.
    pub fn open(&self, network: NetworkId) -> Result<Store, DatabaseConfigError> {
        let options = PoolOptions {
            connections: self.connections,
            acquire_ms: self.acquire_ms,
            work_ms: self.work_ms,
            pooler_wait_ms: self.pooler_wait_ms,
            ..PoolOptions::default()
        };
        Ok(Store::new(Pool::new(self.url.parse()?, options)?, network))
    }
}

impl fmt::Debug for DatabaseConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseConfig").field("connections", &self.connections).finish_non_exhaustive()
    }
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

/// Why a way to the database cannot be gone.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseConfigError {
    /// The address.
    #[error("database.url: {0}")]
    Path(#[from] PathError),
    /// The limits.
    #[error("database: {0}")]
    Pool(#[from] InvalidPool),
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not. It is in the text: as a source it would be told twice.
        error: io::Error,
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

impl ConfigError {
    /// A file that can be read, and is wrong.
    #[must_use]
    pub fn wrong(path: &Path, cause: impl ToString) -> Self {
        Self::Wrong { path: path.to_owned(), cause: cause.to_string() }
    }
}

/// Reads a TOML file.
///
/// # Errors
/// See [`ConfigError`].
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = read_text(path)?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
        ConfigError::wrong(path, format!("line {line}, column {column}: {}", error.message()))
    })
}

/// The text of a file of bounded size.
///
/// # Errors
/// [`ConfigError::Read`].
pub fn read_text(path: &Path) -> Result<String, ConfigError> {
    let failed = |error| ConfigError::Read { path: path.to_owned(), error };
    if fs::metadata(path).map_err(failed)?.len() > FILE_MAX {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    fs::read_to_string(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[expect(dead_code, reason = "only whether it can be read is asked")]
        database: DatabaseConfig,
    }

    #[test]
    fn a_mistake_is_named_with_its_place_and_without_the_password() {
        let path = std::env::temp_dir().join(format!("holdfast-store-config-{}", std::process::id()));
        fs::write(&path, "[database]\nurl = \"postgresql://a:hunter2@b/c\"\nconections = 3\n").unwrap();
        let error = read_toml::<File>(&path).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(error.contains("line 3, column 1") && error.contains("conections"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn an_inverted_wait_is_refused_when_the_pool_is_opened() {
        let config =
            DatabaseConfig { pooler_wait_ms: Some(10_000), ..DatabaseConfig::new("postgresql://a@b/c") };
        let error = config.open(NetworkId([0; 32])).unwrap_err().to_string();
        assert!(error.contains("10000 ms") && error.contains("acquire_ms"), "{error}");
    }
}
