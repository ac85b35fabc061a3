//! What was asked for: a name or an address, in whatever notation, through one parser.

mod number;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The longest name, without a dot at its end (RFC 1035 §2.3.4).
pub const NAME_LENGTH_MAX: usize = 253;
/// The longest label of a name (RFC 1035 §2.3.4).
pub const LABEL_LENGTH_MAX: usize = 63;

/// A name for a resolver: ASCII, lower case, labels of letters, digits, `-` and `_`, no dot at the end. Never a number in
/// disguise: a last label that reads as a number makes an address, or a mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The name, without a dot at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `suffix` or a name below it.
    #[must_use]
    pub fn is_within(&self, suffix: &str) -> bool {
        self.0.strip_suffix(suffix).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A name, or an address in its canonical form: an IPv4 address inside `::ffff:0:0/96` is that IPv4 address.
///
/// Text is read as browsers read it (the URL standard's host parser): `0x7f.1`, `2130706433` and `0177.0.0.1` are 127.0.0.1,
/// a dot at the end and upper case change nothing. Names beyond ASCII have to come in their `xn--` form: whoever maps them
/// decides what they mean, and that has to happen once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// To be resolved.
    Name(Name),
    /// Already an address.
    Address(IpAddr),
}

/// Why a text is no host. It is the fault of whoever wrote it; the same text fails again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing there.
    #[error("the host is empty")]
    Empty,
    /// Longer than DNS allows.
    #[error(
        "the host is longer than {NAME_LENGTH_MAX} bytes, or a part of it longer than {LABEL_LENGTH_MAX}"
    )]
    TooLong,
    /// Not ASCII.
    #[error("the host is not ASCII: names of other scripts have to be given in their xn-- form")]
    NotAscii,
    /// `%eth0` behind an address: that means an interface of one machine only.
    #[error("the address names a zone, which means something on one machine only")]
    Zone,
    /// It ends in a number, but is no IPv4 address.
    #[error("the host ends in a number, but is no IPv4 address")]
    Ipv4,
    /// It has a colon or brackets, but is no IPv6 address.
    #[error("the host looks like an IPv6 address, but is none")]
    Ipv6,
    /// Some other character, or an empty label.
    #[error("the host has a character that no name has, or an empty part")]
    Character,
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        if text.starts_with('[') || text.contains(':') {
            return ipv6(text);
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.len() > NAME_LENGTH_MAX {
            return Err(HostError::TooLong);
        }
        let last = text.rsplit('.').next().unwrap_or(text);
        if number::is_number(last) {
            return number::ipv4(text).map(|address| Self::Address(address.into())).ok_or(HostError::Ipv4);
        }
        text.split('.').try_for_each(label)?;
        Ok(Self::Name(Name(text.to_ascii_lowercase())))
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(out),
            Self::Address(address) => address.fmt(out),
        }
    }
}

fn ipv6(text: &str) -> Result<Host, HostError> {
    let inner = match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or(HostError::Ipv6)?,
        None => text,
    };
    if inner.contains('%') {
        return Err(HostError::Zone);
    }
    let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Ipv6)?;
    Ok(IpAddr::V6(address).into())
}

fn label(label: &str) -> Result<(), HostError> {
    if label.len() > LABEL_LENGTH_MAX {
        return Err(HostError::TooLong);
    }
    let known = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if label.is_empty() || !known { Err(HostError::Character) } else { Ok(()) }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Where to.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
}

/// Why a text is no `host:port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The host is wrong.
    #[error(transparent)]
    Host(#[from] HostError),
    /// There is no port, or it is none.
    #[error("a port from 1 to 65535 has to follow the host, behind a colon")]
    Port,
}

impl FromStr for Target {
    type Err = TargetError;

    /// Reads `name:port`, `1.2.3.4:port` or `[v6]:port`.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::Port)?;
        if host.contains(':') && !host.starts_with('[') {
            // `::1:80` could be either; who means an address writes brackets.
            return Err(HostError::Ipv6.into());
        }
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TargetError::Port);
        }
        match port.parse() {
            Ok(0) | Err(_) => Err(TargetError::Port),
            Ok(port) => Ok(Self { host: host.parse()?, port }),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(out, "[{address}]:{}", self.port),
            host => write!(out, "{host}:{}", self.port),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
