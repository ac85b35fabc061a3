//! Free TCP ports that two tests at the same time do not both take.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;

use anyhow::{Context as _, bail};

use crate::scratch;

/// Ports that are tried, below the range that Linux gives to outgoing connections: one of those can never be in the way.
const PORTS: RangeInclusive<u16> = 20_000..=29_999;

/// Names another range, as `15000-15999`.
const PORTS_VARIABLE: &str = "HOLDFAST_DRILL_PORTS";

/// A TCP port of 127.0.0.1 that was free, and that no other process asks this room for while the lease lives.
/// Nothing listens on it yet.
#[derive(Debug)]
pub struct PortLease {
    number: u16,
    /// Its lock is the lease; it ends with the process at the latest.
    _lock: File,
}

impl PortLease {
    /// Leases a free port. The range is 20000 to 29999, or what the environment variable `HOLDFAST_DRILL_PORTS` says.
    ///
    /// # Errors
    /// No port of the range is free, or the folder for the locks cannot be written.
    pub fn take() -> anyhow::Result<Self> {
        let range = match std::env::var(PORTS_VARIABLE) {
            Ok(text) => {
                parse_range(&text).with_context(|| format!("{PORTS_VARIABLE}={text} is not FIRST-LAST"))?
            }
            Err(_) => PORTS,
        };
        let folder = scratch::base()?.join("ports");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let count = u32::from(*range.end() - *range.start()) + 1;
        let first = fastrand::u32(..count);
        for step in 0..count {
            let offset = u16::try_from((first + step) % count).unwrap_or(0);
            let number = *range.start() + offset;
            let path = folder.join(number.to_string());
            let lock = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("no free port of 127.0.0.1 from {} to {}", range.start(), range.end())
    }

    /// The port.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// 127.0.0.1 and the port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

fn parse_range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-')?;
    let range = first.trim().parse().ok()?..=last.trim().parse().ok()?;
    (!range.is_empty()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_leases_are_never_the_same_port_and_both_can_be_bound() {
        let (one, two) = (PortLease::take().unwrap(), PortLease::take().unwrap());
        assert_ne!(one.number(), two.number());
        let _bound = (TcpListener::bind(one.address()).unwrap(), TcpListener::bind(two.address()).unwrap());
    }

    #[test]
    fn a_range_is_first_dash_last() {
        assert_eq!(parse_range("15000-15999"), Some(15000..=15999));
        assert_eq!(parse_range("9-1"), None);
        assert_eq!(parse_range("x"), None);
    }
}
