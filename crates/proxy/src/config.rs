//! `proxy.toml`: where the proxy listens, and its bounds.

mod error;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use egress::ExactTarget;
use selection::Options;
use serde::{Deserialize, Deserializer};

pub use error::ConfigError;

use crate::abuse::Keeping;

/// The largest file that is read, bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The whole file. Everything has a default: a listener on loopback, for both protocols, by login.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where it listens.
    pub listen: Vec<Listen>,
    /// Single `address:port` of special addresses that customers may reach, if their provider lets them.
    #[serde(deserialize_with = "all_parsed")]
    pub allow_exact: Vec<ExactTarget>,
    /// The most connections of customers at once.
    pub connections: u32,
    /// The most distinct targets a minute of one account; 0 is no limit.
    pub targets_per_minute: u32,
    /// A customer's request must be complete within this time, and a login with it.
    pub handshake_ms: u64,
    /// The most connections of one address (for IPv6, one /64) that have not logged in.
    pub handshakes_per_address: u32,
    /// A stream ends if nothing passes for so long.
    pub idle_s: u64,
    /// How often the list of providers is asked for.
    pub refresh_ms: u64,
    /// At a stop, streams may go on for so long.
    pub drain_s: u64,
    /// What is kept about the use of exits.
    pub abuse: Abuse,
}

/// One listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// `address:port`.
    pub address: SocketAddr,
    /// What is spoken there.
    #[serde(default)]
    pub protocol: Protocol,
    /// Options for whoever sends none, in the form of the user name: `country-de-session-x`; over those of the account.
    #[serde(default)]
    pub selection: String,
    /// On loopback only: the account of whoever sends no login.
    #[serde(default)]
    pub no_auth_account: Option<String>,
}

/// What is spoken at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Whatever the first byte says.
    #[default]
    Any,
    /// SOCKS5 only.
    Socks5,
    /// HTTP only.
    Http,
}

/// What is kept about the use of exits, for complaints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Abuse {
    /// A folder for files of one day each, beside the records that the api keeps. None: no files.
    pub folder: Option<PathBuf>,
    /// Days after which they are deleted.
    pub days: u32,
    /// The most bytes of one day.
    pub bytes_a_day: u64,
    /// Write the target down too. Off: nothing says where a customer went.
    pub targets: bool,
}

impl Default for Config {
    fn default() -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 1080));
        let (protocol, selection, no_auth_account) = Default::default();
        Self {
            listen: vec![Listen { address, protocol, selection, no_auth_account }],
            allow_exact: Vec::new(),
            connections: 10_000,
            targets_per_minute: 1_000,
            handshake_ms: 10_000,
            handshakes_per_address: 1_024,
            idle_s: 300,
            refresh_ms: 1_000,
            drain_s: 30,
            abuse: Abuse::default(),
        }
    }
}

impl Default for Abuse {
    fn default() -> Self {
        Self { folder: None, days: 30, bytes_a_day: 1 << 30, targets: false }
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// With line and column where that helps.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let read = |error| ConfigError::Read { path: path.to_owned(), error };
        if fs::metadata(path).map_err(read)?.len() > MAX_FILE_BYTES {
            return Err(ConfigError::TooLarge(path.to_owned()));
        }
        Self::parse(&fs::read_to_string(path).map_err(read)?)
    }

    /// Reads and checks a text.
    ///
    /// # Errors
    ///
    /// With line and column where that helps.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// What no single value shows.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.listen.is_empty() {
            return Err(ConfigError::NoListener);
        }
        for listen in &self.listen {
            let address = listen.address;
            // Whoever can reach it could use it, and the account would pay.
            if listen.no_auth_account.is_some() && !address.ip().is_loopback() {
                return Err(ConfigError::OpenProxy(address));
            }
            if let Some(account) = &listen.no_auth_account
                && let Err(error) = selection::Username::parse(account, &Options::default())
            {
                return Err(ConfigError::NoAuthAccount { address, error });
            }
            if let Err(error) = Options::parse(&listen.selection) {
                return Err(ConfigError::Selection { address, error });
            }
        }
        for (name, value) in [
            ("connections", u64::from(self.connections)),
            ("handshake_ms", self.handshake_ms),
            ("handshakes_per_address", u64::from(self.handshakes_per_address)),
            ("idle_s", self.idle_s),
            ("refresh_ms", self.refresh_ms),
        ] {
            if value == 0 {
                return Err(ConfigError::Zero(name));
            }
        }
        Ok(())
    }

    pub(crate) const fn handshake(&self) -> Duration {
        Duration::from_millis(self.handshake_ms)
    }

    pub(crate) const fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_s)
    }

    pub(crate) const fn refresh(&self) -> Duration {
        Duration::from_millis(self.refresh_ms)
    }

    pub(crate) const fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_s)
    }

    pub(crate) fn keeping(&self) -> Option<Keeping> {
        let folder = self.abuse.folder.clone()?;
        Some(Keeping { folder, days: self.abuse.days, bytes_a_day: self.abuse.bytes_a_day })
    }
}

fn all_parsed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ExactTarget>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
}

#[cfg(test)]
mod tests;
