//! The HTTP proxy of a place where nothing else leads out (RFC 9110 §9.3.6).

use crate::error::LinkError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use link::websocket::{self, MAX_HEAD_BYTES};
use std::fmt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of one receive: an answer is short.
const READ_BYTES: usize = 1_024;
const DEFAULT_PORT: &str = "80";

/// What the environment says of a proxy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// Only proxies that are spoken to in plain HTTP are known; TLS to the relay goes through them all the same.
    #[error("the proxy's address begins with {0}://, and only http:// is known")]
    Scheme(String),
    /// There is no host, or no port that is a number.
    #[error("the proxy's address is not http://[user:password@]host[:port]")]
    Malformed,
}

/// A proxy that connects to whatever host it is asked for.
#[derive(Clone)]
pub struct HttpProxy {
    /// `host:port`.
    address: String,
    pub(super) authorization: Option<String>,
    /// Hosts that are reached without it: names with all below them, addresses, or `*`.
    not_for: Vec<String>,
}

impl HttpProxy {
    /// What `HTTPS_PROXY` or `https_proxy` names, but for the hosts of `NO_PROXY` or `no_proxy`.
    ///
    /// # Errors
    /// It is not a proxy that can be used.
    pub fn from_environment() -> Result<Option<Self>, ProxyError> {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Some(url) = read("HTTPS_PROXY").or_else(|| read("https_proxy")) else { return Ok(None) };
        let not_for = read("NO_PROXY").or_else(|| read("no_proxy")).unwrap_or_default();
        Self::new(&url, &not_for).map(Some)
    }

    /// `http://[user:password@]host[:port]`, and a list of hosts, with commas, that it is not for.
    ///
    /// # Errors
    /// It is not a proxy that can be used.
    pub fn new(url: &str, not_for: &str) -> Result<Self, ProxyError> {
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) => return Err(ProxyError::Scheme(scheme.to_owned())),
            None => url,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let after_address = host.rsplit_once(']').map_or(host, |(_, port)| port);
        let (port, name) = match after_address.rsplit_once(':') {
            Some((_, port)) => (port, &host[..host.len() - port.len() - 1]),
            None => (DEFAULT_PORT, host),
        };
        let is_clean = !name.is_empty() && !name.chars().any(|c| c.is_control() || c.is_whitespace());
        if !is_clean || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Err(ProxyError::Malformed);
        }
        Ok(Self {
            address: format!("{name}:{port}"),
            authorization: user.map(|user| format!("Basic {}", STANDARD.encode(percent_decoded(user)))),
            not_for: not_for
                .split(',')
                .map(|host| host.trim().trim_start_matches('.').to_ascii_lowercase())
                .filter(|host| !host.is_empty())
                .collect(),
        })
    }

    /// Whether `host` is to be reached through it.
    pub(super) fn is_for(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let excluded = |rule: &String| {
            rule == "*"
                || host == *rule
                || host.strip_suffix(rule.as_str()).is_some_and(|below| below.ends_with('.'))
        };
        !self.not_for.iter().any(excluded)
    }

    /// `host:port` of the proxy.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Asks for a connection to `address` (`host:port`); what has come from there already.
    pub(crate) async fn connect(&self, socket: &mut TcpStream, address: &str) -> Result<Vec<u8>, LinkError> {
        let authorization = match &self.authorization {
            Some(authorization) => format!("Proxy-Authorization: {authorization}\r\n"),
            None => String::new(),
        };
        let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{authorization}\r\n");
        let failed = |error| LinkError::io("asking the HTTP proxy", error);
        socket.write_all(request.as_bytes()).await.map_err(failed)?;
        let mut received = Vec::new();
        loop {
            let start = received.len();
            received.resize(start + READ_BYTES, 0);
            let count = socket.read(&mut received[start..]).await.map_err(failed)?;
            received.truncate(start + count);
            match websocket::status(&received) {
                Ok(Some((200..300, length))) => return Ok(received.split_off(length)),
                Ok(Some((status, _))) => return Err(LinkError::Proxy(format!("it answers {status}"))),
                Ok(None) if count == 0 => return Err(LinkError::Proxy("it has left".to_owned())),
                Ok(None) if received.len() < MAX_HEAD_BYTES => {}
                _ => return Err(LinkError::Proxy("it does not answer in HTTP".to_owned())),
            }
        }
    }
}

impl fmt::Debug for HttpProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpProxy").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What is no `%` and two digits stands for itself.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        match digit(0).zip(digit(1)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) if first == b'%' => {
                out.push(byte);
                rest = &behind[2..];
            }
            _ => {
                out.push(first);
                rest = behind;
            }
        }
    }
    out
}
