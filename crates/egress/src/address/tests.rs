use super::*;
use crate::host::Host;
use proptest::prelude::*;

fn of(text: &str) -> Option<Special> {
    special(text.parse().unwrap())
}

/// First and last address of each entry of the two registries that is not of the open internet, and neighbours that are.
#[test]
fn the_registries_of_special_addresses_are_refused_from_end_to_end() {
    let refused = [
        ("0.0.0.0", "0.255.255.255", Special::Unspecified),
        ("10.0.0.0", "10.255.255.255", Special::Private),
        ("100.64.0.0", "100.127.255.255", Special::Shared),
        ("127.0.0.0", "127.255.255.255", Special::Loopback),
        ("169.254.0.0", "169.254.255.255", Special::LinkLocal),
        ("172.16.0.0", "172.31.255.255", Special::Private),
        ("192.0.0.0", "192.0.0.255", Special::Reserved),
        ("192.0.2.0", "192.0.2.255", Special::Documentation),
        ("192.88.99.0", "192.88.99.255", Special::Transition),
        ("192.168.0.0", "192.168.255.255", Special::Private),
        ("198.18.0.0", "198.19.255.255", Special::Benchmarking),
        ("198.51.100.0", "198.51.100.255", Special::Documentation),
        ("203.0.113.0", "203.0.113.255", Special::Documentation),
        ("224.0.0.0", "239.255.255.255", Special::Multicast),
        ("240.0.0.0", "255.255.255.255", Special::Reserved),
        ("192.31.196.0", "192.31.196.255", Special::Reserved),
        ("192.175.48.0", "192.175.48.255", Special::Reserved),
        ("::", "::", Special::Unspecified),
        ("::1", "::1", Special::Loopback),
        ("::2", "::ffff:ffff", Special::Transition),
        ("::ffff:0:0:0", "::ffff:0:ffff:ffff", Special::Transition),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", Special::Transition),
        ("100::", "100::ffff:ffff:ffff:ffff", Special::Reserved),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", Special::Transition),
        ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", Special::Benchmarking),
        ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", Special::Reserved),
        ("2001:1::1", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Special::Reserved),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Special::Documentation),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Special::Transition),
        ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", Special::Reserved),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Special::Documentation),
        ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Special::Reserved),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Special::Private),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Special::LinkLocal),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Special::Private),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Special::Multicast),
    ];
    for (first, last, why) in refused {
        assert_eq!((of(first), of(last)), (Some(why), Some(why)), "{first} to {last}");
    }
    let open = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.101.0",
        "203.0.112.255",
        "223.255.255.255",
        "2001:200::",
        "2001:4860:4860::8888",
        "2003::",
        "2606:4700:4700::1111",
        "2a00::1",
        "3ffe::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ];
    for text in open {
        assert_eq!(of(text), None, "{text}");
    }
}

#[test]
fn a_network_holds_what_shares_its_front() {
    let house = Network::new("2a00:1:2:3::4".parse().unwrap(), 64);
    assert!(house.contains("2a00:1:2:3:ffff::".parse().unwrap()));
    assert!(!house.contains("2a00:1:2:4::".parse().unwrap()));
    let one = Network::single("8.8.8.8".parse().unwrap());
    assert!(one.contains("8.8.8.8".parse().unwrap()) && one.contains("::ffff:8.8.8.8".parse().unwrap()));
    assert!(!one.contains("8.8.8.9".parse().unwrap()) && !one.contains("::808:808".parse().unwrap()));
    let mapped = Network::new("::ffff:8.8.8.8".parse().unwrap(), 96);
    assert!(mapped.contains("8.8.8.8".parse().unwrap()) && !mapped.contains("9.9.9.9".parse().unwrap()));
    assert!(Network::new("8.8.8.8".parse().unwrap(), 0).contains("1.1.1.1".parse().unwrap()));
}

fn refused_ipv4() -> impl Strategy<Value = Ipv4Addr> {
    (0..IPV4.len(), any::<u32>()).prop_map(|(entry, behind)| {
        let (base, length, _) = IPV4[entry];
        Ipv4Addr::from_bits(base.to_bits() | (behind & (u32::MAX.checked_shr(length.into()).unwrap_or(0))))
    })
}

proptest! {
    /// The heart of the matter: no way to write a refused IPv4 address gets past.
    #[test]
    fn no_notation_of_a_refused_address_passes(
        address in refused_ipv4(), parts in 1_usize..=4, radixes in proptest::collection::vec(0_u8..3, 4), zeros in 0_usize..4,
    ) {
        let bits = address.to_bits();
        let (high, low) = (bits >> 16, bits & 0xffff);
        let texts = [
            crate::host::tests::notation(bits, parts, &radixes, zeros),
            format!("{}.", crate::host::tests::notation(bits, parts, &radixes, zeros)),
            format!("::ffff:{address}"),
            format!("[::FFFF:{high:X}:{low:X}]"),
            format!("::{address}"),
            format!("::ffff:0:{address}"),
            format!("64:ff9b::{address}"),
            format!("64:ff9b:1::{address}"),
            format!("2002:{high:x}:{low:x}::1"),
            format!("2001:0:{high:x}:{low:x}::1"),
            // Teredo hides the client's address by turning its bits around (RFC 4380 §4).
            format!("2001:0:102:304::{:x}:{:x}", high ^ 0xffff, low ^ 0xffff),
            format!("2a00:1:2:3:0:5efe:{high:x}:{low:x}"),
            format!("2a00:1:2:3:200:5efe:{high:x}:{low:x}"),
        ];
        for text in texts {
            match text.parse::<Host>() {
                Ok(Host::Address(read)) => prop_assert!(special(read).is_some(), "{} passes as {}", text, read),
                other => prop_assert!(false, "{}: {:?}", text, other),
            }
        }
    }

    /// What passes is global unicast, or IPv4 behind a translator that may itself pass.
    #[test]
    fn only_global_unicast_passes(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        if special(IpAddr::V6(address)).is_none() && address.to_ipv4_mapped().is_none() {
            prop_assert!(bits >> 125 == 1 || bits >> 32 == 0x0064_ff9b_u128 << 64);
        }
    }
}
