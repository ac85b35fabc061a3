//! `provider.toml`: what the owner allows. Everything has a default; a new provider reaches the web, without other limits.

use crate::exit::Dns;
use crate::limits::{ByteCount, Hours};
use egress::{ExactTarget, Network, Policy, Ports};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The largest file that is read, bytes.
const FILE_MAX: u64 = 256 * 1024;
/// Streams at once, unless the owner says otherwise.
const STREAMS: u32 = 1_000;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where streams may go.
    pub egress: EgressConfig,
    /// Who is asked for names.
    pub dns: DnsConfig,
    /// How much is given away.
    pub limits: LimitsConfig,
    /// How relays are reached; read at the start.
    pub link: LinkConfig,
}

/// How relays are reached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// By which way.
    pub transport: LinkTransport,
}

/// By which way relays are dialled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkTransport {
    /// Straight, and inside a WebSocket where that fails.
    #[default]
    Auto,
    /// Straight, always.
    Direct,
    /// Inside a WebSocket, always; through the HTTP proxy that `HTTPS_PROXY` names, if it does.
    WebSocket,
}

/// Where streams may go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressConfig {
    /// `web` (80 and 443), `open` (all but what is abused), or a list such as `80, 443, 8000-8999`.
    #[serde(deserialize_with = "parsed")]
    pub ports: Ports,
    /// Single `address:port` that may be reached although the rules say no. Each is a warning at every start.
    #[serde(deserialize_with = "all_parsed")]
    pub allow_exact: Vec<ExactTarget>,
    /// Addresses of this site that the machine does not know itself, such as the router's public one. Never reached.
    pub own_addresses: Vec<IpAddr>,
}

/// Who is asked for names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DnsConfig {
    /// `address:port` of name servers; none means those of the system.
    pub servers: Vec<SocketAddr>,
}

/// How much is given away.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Bytes a month of the local calendar, both directions together, such as `100GB`; absent: no limit.
    #[serde(deserialize_with = "maybe_parsed")]
    pub month: Option<ByteCount>,
    /// Mbit/s, both directions and all streams together; absent: no limit.
    pub rate_mbit_s: Option<u32>,
    /// Streams at once.
    pub streams: u32,
    /// When it works, by the local clock: `22:00-06:00`; absent: always.
    #[serde(deserialize_with = "parsed")]
    pub hours: Hours,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { month: None, rate_mbit_s: None, streams: STREAMS, hours: Hours::default() }
    }
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It is wrong; the text has line and column.
    #[error("{}: {error}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: Box<toml::de::Error>,
    },
    /// It is too large to be one.
    #[error("{} has more than {FILE_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

impl Config {
    /// Reads the file; the defaults if there is none.
    ///
    /// # Errors
    ///
    /// It is there, but cannot be read or is wrong.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = match read(path) {
            Ok(text) => text.ok_or_else(|| ConfigError::TooLarge { path: path.to_owned() })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(ConfigError::Read { path: path.to_owned(), error }),
        };
        toml::from_str(&text)
            .map_err(|error| ConfigError::Wrong { path: path.to_owned(), error: Box::new(error) })
    }

    /// The policy of the file, without what is read from the machine.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy::new(self.egress.ports.clone()).with_exact(self.egress.allow_exact.clone())
    }

    /// The addresses that the file calls its own.
    #[must_use]
    pub fn own_networks(&self) -> Vec<Network> {
        self.egress.own_addresses.iter().map(|address| Network::single(*address)).collect()
    }

    /// Who is asked for names.
    #[must_use]
    pub fn name_servers(&self) -> Dns {
        if self.dns.servers.is_empty() { Dns::System } else { Dns::Servers(self.dns.servers.clone()) }
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    if fs::metadata(path)?.len() > FILE_MAX {
        return Ok(None);
    }
    fs::read_to_string(path).map(Some)
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

fn maybe_parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    parsed(from).map(Some)
}

fn all_parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(from: D) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_file_is_a_provider_of_the_web_without_other_limits() {
        let config = parse("").unwrap();
        assert_eq!(config.egress.ports, Ports::Web);
        assert!(config.egress.allow_exact.is_empty() && config.limits.month.is_none());
        assert_eq!(config.name_servers(), Dns::System);
    }

    #[test]
    fn everything_can_be_said() {
        let config = parse(
            r#"
            [egress]
            ports = "80, 443, 8000-8999"
            allow_exact = ["127.0.0.1:8081"]
            own_addresses = ["198.51.100.7"]
            [dns]
            servers = ["127.0.0.53:53"]
            [limits]
            month = "100GB"
            rate_mbit_s = 50
            streams = 20
            hours = "22:00-06:00"
            "#,
        )
        .unwrap();
        assert_eq!(config.limits.month, Some(ByteCount(100_000_000_000)));
        assert_eq!(config.policy().exact().len(), 1);
        assert_eq!(config.own_networks().len(), 1);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let wrong = [
            ("[egress]\nports = \"25\"", "line 2, column 9", "never allowed"),
            ("[egress]\nallow_exact = [\"localhost:80\"]", "line 2", "not a name"),
            ("[egress]\nallow_exact = [\"10.0.0.0/8:80\"]", "line 2", "host"),
            ("[limits]\nmonth = \"lots\"", "line 2", "100GB"),
            ("[limits]\nspeed = 5", "line 2", "speed"),
            ("[limits]\nhours = \"night\"", "line 2", "22:00-06:00"),
        ];
        for (text, place, cause) in wrong {
            let error = parse(text).unwrap_err();
            assert!(error.contains(place) && error.contains(cause), "{text}: {error}");
        }
    }
}
