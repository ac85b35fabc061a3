//! How someone joins: a link that names the network, and a code that is used once.

use crate::base32;
use crate::error::{KeyError, ParseError};
use crate::ids::{NetworkId, sha256};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// How long a code may be used after it was made, in ms: ten minutes.
pub const CODE_LIFE_MS: u64 = 600_000;
/// The longest link that is read, in bytes.
pub const MAX_LINK_LEN: usize = 400;
/// Bytes of chance in a code: 100 bits in 20 letters, the last four bits zero.
const CODE_LETTERS: usize = 20;
const SCHEME: &str = "holdfast://";

/// Where the network's api is, and the name that its certificate must have: `holdfast://HOST:PORT/NETWORK`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinLink {
    /// A DNS name or an IP address (without brackets).
    pub host: String,
    /// The port.
    pub port: u16,
    /// The network.
    pub network: NetworkId,
}

impl JoinLink {
    /// `host:port`, with brackets around an IPv6 address.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.parse::<Ipv6Addr>().is_ok() {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for JoinLink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}{}/{}", self.address(), self.network)
    }
}

impl serde::Serialize for JoinLink {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for JoinLink {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for JoinLink {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let read = || {
            let rest = text.strip_prefix(SCHEME).filter(|_| text.len() <= MAX_LINK_LEN)?;
            let (address, network) = rest.split_once('/')?;
            let (host, port) = address.rsplit_once(':')?;
            let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
                Some(inside) => inside.parse::<Ipv6Addr>().ok()?.to_string(),
                None if is_host(host) => host.to_ascii_lowercase(),
                None => return None,
            };
            let port = port.parse().ok().filter(|&port| port != 0)?;
            Some(Self { host, port, network: network.parse().ok()? })
        };
        read().ok_or(ParseError::JoinLink)
    }
}

/// A DNS name (RFC 1123 §2.1) or an IPv4 address.
pub(crate) fn is_host(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4())
        || (host.len() <= 253
            && host.split('.').all(label)
            && !host.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// A code to be typed once: 20 letters and digits in groups of five, 100 bits of chance. Debug hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinCode(String);

impl JoinCode {
    /// A new code.
    ///
    /// # Errors
    /// The system gave no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let mut bytes = [0; 13];
        rand::fill(&mut bytes).map_err(|_| KeyError::NoRandomness)?;
        let mut letters = base32::encode(&bytes, base32::CROCKFORD);
        letters.truncate(CODE_LETTERS);
        Ok(Self(letters))
    }

    /// What is kept of it: a hash, since the code is a secret until it is used.
    #[must_use]
    pub fn hash(&self) -> CodeHash {
        CodeHash(sha256(&[b"holdfast join code 1\0", self.0.as_bytes()]))
    }

    /// The text to type: only for whoever is to use it.
    #[must_use]
    pub fn reveal(&self) -> String {
        let mut text = String::with_capacity(CODE_LETTERS + 3);
        for (at, letter) in self.0.chars().enumerate() {
            if at > 0 && at % 5 == 0 {
                text.push('-');
            }
            text.push(letter);
        }
        text
    }
}

impl fmt::Debug for JoinCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JoinCode(…)")
    }
}

impl FromStr for JoinCode {
    type Err = ParseError;

    /// Takes it as people type it: either case, with hyphens and blanks anywhere, O for 0, I and L for 1.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut letters = String::with_capacity(CODE_LETTERS);
        for byte in text.bytes().filter(|byte| *byte != b'-' && !byte.is_ascii_whitespace()) {
            let value = base32::crockford(byte).ok_or(ParseError::JoinCode)?;
            if letters.len() == CODE_LETTERS {
                return Err(ParseError::JoinCode);
            }
            letters.push(char::from(base32::CROCKFORD[usize::from(value)]));
        }
        if letters.len() == CODE_LETTERS { Ok(Self(letters)) } else { Err(ParseError::JoinCode) }
    }
}

/// The hash of a join code, as it is kept.
#[derive(Clone, Copy, Debug)]
pub struct CodeHash(pub [u8; 32]);

/// In constant time.
impl PartialEq for CodeHash {
    fn eq(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl Eq for CodeHash {}

#[cfg(test)]
mod tests;
