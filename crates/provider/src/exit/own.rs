//! The addresses of this machine.

use egress::Network;
use nix::ifaddrs::getifaddrs;
use std::io;
use std::net::IpAddr;

/// Interfaces' addresses at most.
const ADDRESSES_MAX: usize = 1_024;
/// With IPv6, everything behind the same 64 bits is on the same wire.
const IPV6_WIRE_BITS: u8 = 64;

/// The addresses of this machine's interfaces: IPv4 each by itself, IPv6 with all its neighbours on the wire. In a house, a
/// neighbour's IPv6 address is one of the open internet, and only the router's firewall keeps the world away from it.
///
/// # Errors
///
/// The system does not say.
pub fn own_networks() -> io::Result<Vec<Network>> {
    let mut networks: Vec<Network> = getifaddrs()?
        .filter_map(|interface| {
            let address = interface.address?;
            let ipv6 = address.as_sockaddr_in6().map(|found| IpAddr::V6(found.ip()));
            let ipv4 = address.as_sockaddr_in().map(|found| IpAddr::V4(found.ip()));
            ipv6.or(ipv4)
        })
        .map(|address| match address {
            IpAddr::V4(_) => Network::single(address),
            IpAddr::V6(_) => Network::new(address, IPV6_WIRE_BITS),
        })
        .take(ADDRESSES_MAX)
        .collect();
    networks.sort_unstable();
    networks.dedup();
    Ok(networks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_knows_its_own_loopback_address() {
        let networks = own_networks().unwrap();
        assert!(networks.iter().any(|network| network.contains([127, 0, 0, 1].into())), "{networks:?}");
    }
}
