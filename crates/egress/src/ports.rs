//! Which ports may be reached.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Mail between servers: never. One stream of it puts a provider's address on every list of spammers.
pub const NEVER: u16 = 25;
/// Off unless a provider names one of them by itself: mail submission, Windows file sharing, remote desktops, Telnet.
pub const OFF: [RangeInclusive<u16>; 7] =
    [465..=465, 587..=587, 135..=139, 445..=445, 3389..=3389, 5900..=5900, 23..=23];
/// What new providers allow.
pub const WEB: [u16; 2] = [80, 443];
/// Entries of a [`PortSet`] at most.
pub const ENTRIES_MAX: usize = 64;

/// The ports that a provider allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ports {
    /// 80 and 443.
    #[default]
    Web,
    /// All but [`NEVER`] and [`OFF`].
    Open,
    /// These, and no others.
    Custom(PortSet),
}

/// Why a port is not reached. The variants are labels of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRefusal {
    /// [`NEVER`], or 0.
    Never,
    /// In [`OFF`], and not named by itself.
    Off,
    /// Not among those that the provider allows.
    NotAllowed,
}

impl Ports {
    /// Whether `port` may be reached.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self, port: u16) -> Result<(), PortRefusal> {
        if never(port) {
            return Err(PortRefusal::Never);
        }
        let off = OFF.iter().any(|range| range.contains(&port));
        match self {
            Self::Web if WEB.contains(&port) => Ok(()),
            Self::Custom(set) if set.names(port) || (!off && set.spans(port)) => Ok(()),
            Self::Open if !off => Ok(()),
            _ if off => Err(PortRefusal::Off),
            _ => Err(PortRefusal::NotAllowed),
        }
    }
}

/// Whether no provider may ever reach `port`.
#[must_use]
pub const fn never(port: u16) -> bool {
    port == NEVER || port == 0
}

impl fmt::Display for Ports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Web => out.write_str("web"),
            Self::Open => out.write_str("open"),
            Self::Custom(set) => set.fmt(out),
        }
    }
}

impl FromStr for Ports {
    type Err = PortError;

    /// `web`, `open`, or a list such as `80, 443, 8000-8999`.
    fn from_str(text: &str) -> Result<Self, PortError> {
        match text.trim() {
            "web" => Ok(Self::Web),
            "open" => Ok(Self::Open),
            list => list.parse().map(Self::Custom),
        }
    }
}

/// Ports and ranges of ports. A range never turns on one of [`OFF`]: that takes an entry of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSet(Vec<RangeInclusive<u16>>);

/// Why a text is no list of ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// An entry is neither a port nor a range.
    #[error(
        "{0:?} is no port and no range of ports: write `web`, `open`, or a list such as `80, 443, 8000-8999`"
    )]
    Entry(String),
    /// The port can never be allowed.
    #[error("port {0} is never allowed")]
    Never(u16),
    /// Too many entries.
    #[error("a list of ports has at most {ENTRIES_MAX} entries")]
    TooMany,
}

impl PortSet {
    fn names(&self, port: u16) -> bool {
        self.0.contains(&(port..=port))
    }

    fn spans(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }
}

impl FromStr for PortSet {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let mut ranges = Vec::new();
        for entry in text.split(',').map(str::trim) {
            if ranges.len() == ENTRIES_MAX {
                return Err(PortError::TooMany);
            }
            ranges.push(range(entry)?);
        }
        Ok(Self(ranges))
    }
}

impl fmt::Display for PortSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(out, "{comma}{first}")?,
                (first, last) => write!(out, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

fn range(entry: &str) -> Result<RangeInclusive<u16>, PortError> {
    let wrong = || PortError::Entry(entry.chars().take(32).collect());
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong);
    match entry.split_once('-') {
        Some((first, last)) => {
            let range = port(first)?..=port(last)?;
            if range.is_empty() { Err(wrong()) } else { Ok(range) }
        }
        None => match port(entry)? {
            NEVER => Err(PortError::Never(NEVER)),
            port => Ok(port..=port),
        },
    }
}

#[cfg(test)]
mod tests;
