use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn address(text: &str) -> IpAddr {
    match text.parse() {
        Ok(Host::Address(address)) => address,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_notation_of_an_address_is_that_address() {
    let loopback = [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0X7F000001",
        "017700000001",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7F.1",
        "0177.0.1",
        "127.0.0.0x1",
        "00000000177.0.0.1",
        "0x7f.0x0.0x0.0x1",
        "127.00.000.01",
        "[::ffff:127.0.0.1]",
        "::ffff:127.0.0.1",
        "::FFFF:7F00:1",
        "0:0:0:0:0:ffff:7f00:1",
        "[0000:0000:0000:0000:0000:ffff:127.0.0.1]",
    ];
    for text in loopback {
        assert_eq!(address(text), IpAddr::from([127, 0, 0, 1]), "{text}");
    }
    assert_eq!(address("0"), IpAddr::from([0, 0, 0, 0]));
    assert_eq!(address("0x"), IpAddr::from([0, 0, 0, 0]));
    assert_eq!(
        address("010.8.0.1"),
        IpAddr::from([8, 8, 0, 1]),
        "a leading zero means octal, as in browsers"
    );
    assert_eq!(address("4294967295"), IpAddr::from([255, 255, 255, 255]));
    assert_eq!(address("192.168.257"), IpAddr::from([192, 168, 1, 1]));
    assert_eq!(address("[FE80::1]"), address("fe80::1"));
}

#[test]
fn what_ends_in_a_number_and_is_no_address_is_no_name_either() {
    let wrong = [
        "256.0.0.1",
        "127.0.0.256",
        "1.2.3.4.5",
        "4294967296",
        "0x100000000",
        "08.0.0.1",
        "09",
        "1.2.3.09",
        "foo.1",
        "foo.0x1",
        "1..2",
        "127.0.0.1..",
        "a.b.0x",
        "+1.2.3.4",
        "1.2.3.+4",
        "1.-2.3.4",
        "0x-1.1",
        "99999999999999999999",
        "0xffffffffffffffffff.1",
    ];
    for text in wrong {
        assert!(text.parse::<Host>().is_err(), "{text}");
    }
}

#[test]
fn zones_other_scripts_and_stray_characters_are_refused() {
    for text in ["fe80::1%eth0", "[fe80::1%25eth0]", "::1%0", "[::1%lo]"] {
        assert_eq!(text.parse::<Host>(), Err(HostError::Zone), "{text}");
    }
    for text in ["１２７.０.０.１", "127。0。0。1", "ⓛocalhost", "bücher.example", "①②⑦.0.0.1"]
    {
        assert_eq!(text.parse::<Host>(), Err(HostError::NotAscii), "{text}");
    }
    let stray = [
        "%31%32%37.0.0.1",
        "127.0.0.1 ",
        " 127.0.0.1",
        "127.0.0.1/",
        "user@127.0.0.1",
        "a b",
        "a\tb",
        "a\0",
        "127.0.0.1\0",
        ".",
        "..",
        ".a",
        "a..b",
        "a.b..",
        "-\n",
        "*",
        "a,b",
    ];
    for text in stray {
        assert!(text.parse::<Host>().is_err(), "{text:?}");
    }
    for text in [
        "[",
        "]",
        "[]",
        "[::1",
        "::1]",
        "[127.0.0.1]",
        ":",
        ":::",
        "[::1].",
        "::1.",
        "1::2::3",
        "::ffff:0x7f.1",
    ] {
        assert!(text.parse::<Host>().is_err(), "{text:?}");
    }
    assert_eq!("".parse::<Host>(), Err(HostError::Empty));
}

#[test]
fn names_lose_case_and_a_last_dot_and_keep_their_bounds() {
    assert_eq!("WWW.Example.COM.".parse::<Host>().unwrap().to_string(), "www.example.com");
    assert_eq!("xn--bcher-kva.example".parse::<Host>().unwrap().to_string(), "xn--bcher-kva.example");
    assert!("_dmarc.1-2.example".parse::<Host>().is_ok());
    assert!("0xg.example".parse::<Host>().is_ok());
    let label = "a".repeat(LABEL_LENGTH_MAX);
    assert!(label.parse::<Host>().is_ok());
    assert_eq!(format!("{label}a").parse::<Host>(), Err(HostError::TooLong));
    let name = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert_eq!(name.len(), NAME_LENGTH_MAX);
    assert!(name.parse::<Host>().is_ok() && format!("{name}.").parse::<Host>().is_ok());
    assert_eq!(format!("{name}a").parse::<Host>(), Err(HostError::TooLong));
}

#[test]
fn a_target_is_a_host_and_a_port_and_reads_back() {
    for (text, shown) in [
        ("Example.com:443", "example.com:443"),
        ("[::1]:80", "[::1]:80"),
        ("[::ffff:1.2.3.4]:080", "1.2.3.4:80"),
    ] {
        assert_eq!(text.parse::<Target>().unwrap().to_string(), shown);
    }
    for text in
        ["a", "a:", "a:0", "a:65536", "a:+80", "a: 80", "a:-1", ":80", "::1:80", "a:b:80", "[::1]80", "a:80 "]
    {
        assert!(text.parse::<Target>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_reads_back(text in ".{0,300}") {
        crate::fuzz::target(text.as_bytes());
    }

    #[test]
    fn what_ends_in_a_number_never_becomes_a_name(front in "([0-9a-zA-Z.-]{0,20}\\.)?", number in "0[xX][0-9a-fA-F]{0,9}|[0-9]{1,12}") {
        let read = format!("{front}{number}").parse::<Host>();
        prop_assert!(!matches!(read, Ok(Host::Name(_))));
    }

    #[test]
    fn an_address_in_mixed_notation_is_read_as_what_it_is(
        bits: u32, parts in 1_usize..=4, radixes in proptest::collection::vec(0_u8..3, 4), zeros in 0_usize..4, dot: bool,
    ) {
        let text = notation(bits, parts, &radixes, zeros) + if dot { "." } else { "" };
        prop_assert_eq!(text.parse::<Host>(), Ok(Host::Address(Ipv4Addr::from_bits(bits).into())), "{}", text);
    }
}

/// The address in that many parts, each in one of three radixes.
pub(crate) fn notation(bits: u32, parts: usize, radixes: &[u8], zeros: usize) -> String {
    let mut numbers: Vec<u32> = (0..parts - 1).map(|place| bits.to_be_bytes()[place].into()).collect();
    let kept = 32 - 8 * (parts - 1);
    numbers.push(if kept == 32 { bits } else { bits & ((1 << kept) - 1) });
    let write = |(number, radix): (&u32, &u8)| match radix {
        0 => number.to_string(),
        1 => format!("0{}{number:o}", "0".repeat(zeros)),
        _ => format!("0x{}{number:X}", "0".repeat(zeros)),
    };
    numbers.iter().zip(radixes).map(write).collect::<Vec<_>>().join(".")
}
