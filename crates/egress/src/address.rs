//! Addresses that nobody may reach through somebody else's machine.
//!
//! From the IANA registries of special-purpose addresses for IPv4 and IPv6 (RFC 6890 and its updates, as of 2026-11). What the
//! registries call globally reachable inside a larger range that is not (such as 192.0.0.9/32) stays refused: no service of the
//! open internet is there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is never reached. The variants are few: they are labels of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Special {
    /// "This host on this network", and the address that means none.
    Unspecified,
    /// The machine itself.
    Loopback,
    /// Private networks.
    Private,
    /// Between a provider of access and its customers (RFC 6598).
    Shared,
    /// One wire.
    LinkLocal,
    /// Protocol assignments, and everything that no registry has given out for use on the internet.
    Reserved,
    /// Examples in texts.
    Documentation,
    /// Benchmarks of network devices.
    Benchmarking,
    /// Many receivers.
    Multicast,
    /// A way to carry IPv4 inside IPv6 that is not used any more, or that leads to a refused IPv4 address.
    Transition,
}

impl Special {
    /// The label of metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::LinkLocal => "link_local",
            Self::Reserved => "reserved",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Multicast => "multicast",
            Self::Transition => "transition",
        }
    }
}

const IPV4: [(Ipv4Addr, u8, Special); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, Special::Unspecified), // RFC 791 §3.2
    (Ipv4Addr::new(10, 0, 0, 0), 8, Special::Private),    // RFC 1918
    (Ipv4Addr::new(100, 64, 0, 0), 10, Special::Shared),  // RFC 6598
    (Ipv4Addr::new(127, 0, 0, 0), 8, Special::Loopback),  // RFC 1122 §3.2.1.3
    (Ipv4Addr::new(169, 254, 0, 0), 16, Special::LinkLocal), // RFC 3927
    (Ipv4Addr::new(172, 16, 0, 0), 12, Special::Private), // RFC 1918
    (Ipv4Addr::new(192, 0, 0, 0), 24, Special::Reserved), // RFC 6890 §2.1
    (Ipv4Addr::new(192, 0, 2, 0), 24, Special::Documentation), // RFC 5737
    (Ipv4Addr::new(192, 88, 99, 0), 24, Special::Transition), // RFC 7526: relays of 6to4
    (Ipv4Addr::new(192, 168, 0, 0), 16, Special::Private), // RFC 1918
    (Ipv4Addr::new(198, 18, 0, 0), 15, Special::Benchmarking), // RFC 2544
    (Ipv4Addr::new(198, 51, 100, 0), 24, Special::Documentation), // RFC 5737
    (Ipv4Addr::new(203, 0, 113, 0), 24, Special::Documentation), // RFC 5737
    (Ipv4Addr::new(224, 0, 0, 0), 4, Special::Multicast), // RFC 5771
    (Ipv4Addr::new(240, 0, 0, 0), 4, Special::Reserved),  // RFC 1112 §4, and the broadcast address
    // Sinks for questions about private addresses: reachable, but no service (RFC 7535, RFC 7534).
    (Ipv4Addr::new(192, 31, 196, 0), 24, Special::Reserved),
    (Ipv4Addr::new(192, 175, 48, 0), 24, Special::Reserved),
];

/// The only part of IPv6 that is given out for use on the internet (RFC 4291 §2.4).
const GLOBAL_UNICAST: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// IPv4 behind a translator, where the network does that by the well-known prefix (RFC 6052 §2.1).
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// The first that matches counts; what is outside [`GLOBAL_UNICAST`] and not named here is reserved.
const IPV6: [(Ipv6Addr, u8, Special); 16] = [
    (Ipv6Addr::UNSPECIFIED, 128, Special::Unspecified), // RFC 4291 §2.5.2
    (Ipv6Addr::LOCALHOST, 128, Special::Loopback),      // RFC 4291 §2.5.3
    (Ipv6Addr::UNSPECIFIED, 96, Special::Transition),   // RFC 4291 §2.5.5.1: IPv4-compatible
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, Special::Transition), // RFC 2765: IPv4-translated
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, Special::Transition), // RFC 8215
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, Special::Transition), // RFC 4380: Teredo
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, Special::Benchmarking), // RFC 5180
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Special::Reserved), // RFC 2928
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Special::Documentation), // RFC 3849
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, Special::Transition), // RFC 7526: 6to4
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48, Special::Reserved), // RFC 7534
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Special::Documentation), // RFC 9637
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Special::Private), // RFC 4193
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Special::LinkLocal), // RFC 4291 §2.5.6
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Special::Private), // RFC 3879: site-local
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Special::Multicast), // RFC 4291 §2.7
];

/// Why nobody may reach `address`; `None` if it is of the open internet.
#[must_use]
pub fn special(address: IpAddr) -> Option<Special> {
    match address.to_canonical() {
        IpAddr::V4(address) => special_ipv4(address),
        IpAddr::V6(address) => special_ipv6(address),
    }
}

fn special_ipv4(address: Ipv4Addr) -> Option<Special> {
    let found = IPV4.iter().find(|(base, length, _)| same_front_4(*base, address, *length));
    found.map(|(_, _, special)| *special)
}

fn special_ipv6(address: Ipv6Addr) -> Option<Special> {
    let [.., a, b, c, d] = address.octets();
    let embedded = Ipv4Addr::new(a, b, c, d);
    if same_front_6(NAT64.0, address, NAT64.1) {
        return special_ipv4(embedded).map(|_| Special::Transition);
    }
    let found = IPV6.iter().find(|(base, length, _)| same_front_6(*base, address, *length));
    if let Some((_, _, special)) = found {
        return Some(*special);
    }
    if !same_front_6(GLOBAL_UNICAST.0, address, GLOBAL_UNICAST.1) {
        return Some(Special::Reserved);
    }
    // ISATAP (RFC 5214 §6.1) puts IPv4 behind any prefix: 0000:5efe or 0200:5efe, then the address.
    let isatap = address.segments()[4] & !0x0200 == 0 && address.segments()[5] == 0x5efe;
    (isatap && special_ipv4(embedded).is_some()).then_some(Special::Transition)
}

/// An address and everything that shares its first `length` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    base: IpAddr,
    length: u8,
}

impl Network {
    /// The network of `base` with the first `length` bits; a length beyond the address's own is that address alone. An IPv4
    /// address inside `::ffff:0:0/96` counts as itself alone.
    #[must_use]
    pub const fn new(base: IpAddr, length: u8) -> Self {
        Self { base, length }
    }

    /// This address alone.
    #[must_use]
    pub const fn single(address: IpAddr) -> Self {
        Self::new(address, u8::MAX)
    }

    /// Whether `address` is inside.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let mapped = self.base.is_ipv6() && self.base.to_canonical().is_ipv4();
        let length = if mapped { u8::MAX } else { self.length };
        match (self.base.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(address)) => same_front_4(base, address, length),
            (IpAddr::V6(base), IpAddr::V6(address)) => same_front_6(base, address, length),
            _ => false,
        }
    }
}

fn same_front_4(one: Ipv4Addr, other: Ipv4Addr, length: u8) -> bool {
    let behind = 32_u32.saturating_sub(length.into());
    (one.to_bits() ^ other.to_bits()).checked_shr(behind).unwrap_or(0) == 0
}

fn same_front_6(one: Ipv6Addr, other: Ipv6Addr, length: u8) -> bool {
    let behind = 128_u32.saturating_sub(length.into());
    (one.to_bits() ^ other.to_bits()).checked_shr(behind).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests;
