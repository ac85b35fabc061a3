//! Who tries or asks: what limits on attempts and the detector of storms tell sources apart by.

use crate::seam::ClientAddress;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Bytes of a name that tell sources apart; PostgreSQL's names are no longer. What a client says costs no more memory.
const MAX_NAME_BYTES: usize = 64;

/// Where from. One machine has a whole /64 of IPv6 (RFC 4291, section 2.5.4): its addresses are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// An IPv4 address, or the first address of an IPv6 network.
    Network(IpAddr),
    /// A user of this machine, over the Unix socket.
    LocalUser(u32),
}

impl Origin {
    pub(crate) fn of(address: ClientAddress) -> Self {
        match address {
            ClientAddress::Unix { uid, .. } => Self::LocalUser(uid),
            ClientAddress::Tcp { peer, .. } => Self::Network(match peer.ip().to_canonical() {
                IpAddr::V6(ip) => {
                    let [a, b, c, d, ..] = ip.segments();
                    IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
                }
                ip @ IpAddr::V4(_) => ip,
            }),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(ip @ IpAddr::V4(_)) => write!(formatter, "{ip}"),
            Self::Network(ip @ IpAddr::V6(_)) => write!(formatter, "{ip}/64"),
            Self::LocalUser(uid) => write!(formatter, "unix:{uid}"),
        }
    }
}

/// A name of at most [`MAX_NAME_BYTES`].
pub(crate) fn short_name(name: &str) -> Arc<str> {
    Arc::from(&name[..name.floor_char_boundary(MAX_NAME_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(peer: &str) -> String {
        let local = ([127, 0, 0, 1], 6432).into();
        Origin::of(ClientAddress::Tcp { peer: peer.parse().unwrap(), local }).to_string()
    }

    #[test]
    fn one_machine_is_one_origin_whatever_its_port_and_its_address_within_a_network() {
        assert_eq!(origin("192.0.2.7:1"), "192.0.2.7");
        assert_eq!(origin("[::ffff:192.0.2.7]:2"), "192.0.2.7");
        assert_eq!(origin("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::/64");
        assert_eq!(Origin::of(ClientAddress::Unix { port: 1, uid: 7, pid: 9 }).to_string(), "unix:7");
    }

    #[test]
    fn a_long_name_is_cut_at_a_character() {
        assert_eq!(short_name(&"ü".repeat(40)).len(), 64);
        assert_eq!(short_name(&format!("a{}", "ü".repeat(40))).len(), 63);
        assert_eq!(&*short_name("web"), "web");
    }
}
