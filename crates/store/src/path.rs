//! Two ways to a database, as two types: what needs a session of its own cannot be sent through a pooler by mistake.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;

/// How long an attempt to reach the server, and to log in there, may take, unless the address says otherwise.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long sent bytes may stay without an answer of the kernel at the other end before the connection is given up.
const UNANSWERED_LIMIT: Duration = Duration::from_secs(15);

/// An address that names no database.
#[derive(Debug, thiserror::Error)]
#[error("not an address of a PostgreSQL database (postgresql://user@host:port/database): {reason}")]
pub struct PathError {
    reason: String,
}

/// The way that services take; it may lead through a transaction pooler, so it keeps nothing in a session.
#[derive(Clone)]
pub struct PooledPath(Config);

/// The way to the server itself, where a session is a session.
#[derive(Clone)]
pub struct DirectPath(Config);

impl PooledPath {
    pub(crate) fn config(&self) -> &Config {
        &self.0
    }
}

impl DirectPath {
    pub(crate) fn config(&self) -> &Config {
        &self.0
    }
}

impl FromStr for PooledPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        parse(text).map(Self)
    }
}

impl FromStr for DirectPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        parse(text).map(Self)
    }
}

impl fmt::Debug for PooledPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PooledPath").field(&shown(&self.0)).finish()
    }
}

impl fmt::Debug for DirectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirectPath").field(&shown(&self.0)).finish()
    }
}

fn parse(text: &str) -> Result<Config, PathError> {
    // The library's texts name the part that is wrong and never its value.
    let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| PathError {
        reason: std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string),
    })?;
    if config.get_hosts().is_empty() {
        return Err(PathError { reason: "the host is missing".to_owned() });
    }
    if config.get_hosts().len() > 1 {
        return Err(PathError { reason: "more than one host".to_owned() });
    }
    if config.get_user().is_none() {
        return Err(PathError { reason: "the user is missing".to_owned() });
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_LIMIT);
    }
    config.tcp_user_timeout(UNANSWERED_LIMIT);
    Ok(config)
}

fn shown(config: &Config) -> String {
    format!(
        "{}@{:?}:{:?}/{}",
        config.get_user().unwrap_or_default(),
        config.get_hosts(),
        config.get_ports(),
        config.get_dbname().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_in_no_debug_text() {
        let text = "postgresql://api:hunter2@127.0.0.1:6432/holdfast";
        let (pooled, direct) = (text.parse::<PooledPath>().unwrap(), text.parse::<DirectPath>().unwrap());
        let shown = format!("{pooled:?} {direct:?}");
        assert!(shown.contains("127.0.0.1") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn an_address_needs_a_host_and_a_user() {
        for wrong in [
            "",
            "dbname=x",
            "postgresql:///x",
            "postgresql://127.0.0.1/x",
            "http://u@h/x",
            "host=h user=u port=x",
            "host=a,b user=u",
        ] {
            let error = wrong.parse::<PooledPath>().unwrap_err().to_string();
            assert!(error.contains("not an address"), "{wrong}: {error}");
        }
        assert!("host=/run/postgresql user=api dbname=x".parse::<DirectPath>().is_ok());
    }
}
