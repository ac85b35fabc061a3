use super::*;
use proptest::prelude::*;

#[test]
fn new_providers_reach_the_web_and_nothing_else() {
    let web = Ports::default();
    assert!(web.check(80).is_ok() && web.check(443).is_ok());
    for port in [0, 1, 22, 25, 8080, u16::MAX] {
        assert!(web.check(port).is_err(), "{port}");
    }
}

#[test]
fn open_leaves_out_what_is_abused() {
    let open: Ports = "open".parse().unwrap();
    for port in [22, 80, 993, 5432, 8080, u16::MAX] {
        assert_eq!(open.check(port), Ok(()), "{port}");
    }
    for port in [465, 587, 135, 137, 139, 445, 3389, 5900, 23] {
        assert_eq!(open.check(port), Err(PortRefusal::Off), "{port}");
    }
    assert_eq!(open.check(25), Err(PortRefusal::Never));
    assert_eq!(open.check(0), Err(PortRefusal::Never));
}

#[test]
fn a_range_does_not_turn_on_what_is_off_but_its_name_does() {
    let range: Ports = "1-1000".parse().unwrap();
    assert_eq!(range.check(587), Err(PortRefusal::Off));
    assert_eq!(range.check(25), Err(PortRefusal::Never));
    assert_eq!(range.check(1001), Err(PortRefusal::NotAllowed));
    assert_eq!(range.check(993), Ok(()));
    let named: Ports = "1-1000, 587".parse().unwrap();
    assert_eq!(named.check(587), Ok(()));
    assert_eq!(named.check(465), Err(PortRefusal::Off));
}

#[test]
fn lists_of_ports_say_what_is_wrong_with_them() {
    assert_eq!("80,25".parse::<Ports>(), Err(PortError::Never(25)));
    for text in ["", "80,", "0", "65536", "9-8", "a", "-", "80-", "0-9", "80 81"] {
        assert!(matches!(text.parse::<Ports>(), Err(PortError::Entry(_))), "{text}");
    }
    let most = vec!["80"; ENTRIES_MAX].join(",");
    assert!(most.parse::<Ports>().is_ok());
    assert_eq!(format!("{most},80").parse::<Ports>(), Err(PortError::TooMany));
}

proptest! {
    #[test]
    fn what_is_shown_reads_back(text in "[0-9, -]{1,20}") {
        if let Ok(ports) = text.parse::<Ports>() {
            prop_assert_eq!(ports.to_string().parse::<Ports>(), Ok(ports));
        }
    }

    #[test]
    fn mail_between_servers_is_never_reached(text in "[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?){0,3}") {
        if let Ok(ports) = text.parse::<Ports>() {
            prop_assert_eq!(ports.check(NEVER), Err(PortRefusal::Never));
        }
    }
}
