//! What any input must not break, as plain functions of bytes: for properties, and for a fuzzer.

use crate::host::{Host, NAME_LENGTH_MAX, Target};
use crate::policy::{Policy, Way};
use crate::ports::Ports;
use std::net::IpAddr;

/// A host, a target and a list of ports: never panics, what is read reads back as itself, no name is a number in disguise, and
/// no policy without exceptions lets an address pass that the standard library calls loopback, private or link-local.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(ports) = text.parse::<Ports>() {
        assert_eq!(ports.to_string().parse(), Ok(ports.clone()));
        assert!(ports.check(crate::ports::NEVER).is_err());
    }
    if let Ok(target) = text.parse::<Target>() {
        assert_eq!(target.to_string().parse(), Ok(target));
    }
    let Ok(host) = text.parse::<Host>() else { return };
    assert_eq!(host.to_string().parse(), Ok(host.clone()));
    if let Host::Name(name) = &host {
        assert!(name.as_str().len() <= NAME_LENGTH_MAX);
        assert!(name.as_str().parse::<IpAddr>().is_err());
    }
    let target = Target { host, port: 443 };
    if let Ok(Way::Connect(checked)) = Policy::default().admit(&target) {
        match checked.address().ip() {
            IpAddr::V4(address) => {
                assert!(!address.is_loopback() && !address.is_private() && !address.is_link_local());
                assert!(!address.is_unspecified() && !address.is_multicast() && !address.is_broadcast());
            }
            IpAddr::V6(address) => {
                assert!(!address.is_loopback() && !address.is_unspecified() && !address.is_multicast());
                assert!(!address.is_unique_local() && !address.is_unicast_link_local());
                assert!(address.to_ipv4_mapped().is_none(), "a mapped address is shown as IPv4");
            }
        }
    }
}
