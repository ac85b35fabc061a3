use super::*;

fn target(bytes: &[u8]) -> Result<String, Reason> {
    let (target, taken) = request(bytes).unwrap().expect("whole");
    assert_eq!(taken, bytes.len());
    target.map(|target| target.to_string()).map_err(|refusal| refusal.reason)
}

fn for_name(command: u8, name: &str, port: u16) -> Vec<u8> {
    let mut bytes = vec![5, command, 0, 3, u8::try_from(name.len()).unwrap()];
    bytes.extend(name.as_bytes());
    bytes.extend(port.to_be_bytes());
    bytes
}

#[test]
fn a_greeting_says_what_the_client_can_do() {
    assert_eq!(greeting(&[5, 1, 0]), Ok(Some((Greeting { no_login: true, login: false }, 3))));
    assert_eq!(greeting(&[5, 3, 1, 2, 0, 9]), Ok(Some((Greeting { no_login: true, login: true }, 5))));
    assert_eq!(greeting(&[5, 0]), Ok(Some((Greeting { no_login: false, login: false }, 2))));
    assert_eq!(greeting(&[4, 1]), Err(SocksError::Version(4)));
}

#[test]
fn a_login_is_name_and_password() {
    let (read, taken) = login(b"\x01\x04acme\x03pw!rest").unwrap().unwrap();
    assert_eq!((read.name, read.password, taken), (&b"acme"[..], &b"pw!"[..], 10));
    assert!(matches!(login(b"\x01\x00\x00"), Err(SocksError::NoName)));
    assert!(matches!(login(b"\x05\x01a"), Err(SocksError::LoginVersion(5))));
    let longest = [&[1, 255][..], &[b'a'; 255], &[255], &[b'p'; 255]].concat();
    assert_eq!(login(&longest).unwrap().unwrap().1, MAX_MESSAGE_BYTES);
}

#[test]
fn a_target_is_a_name_or_an_address() {
    assert_eq!(target(&for_name(1, "Example.ORG", 443)), Ok("example.org:443".into()));
    assert_eq!(target(&[5, 1, 0, 1, 192, 0, 2, 1, 0, 80]), Ok("192.0.2.1:80".into()));
    let ipv6 = [&[5, 1, 0, 4][..], &Ipv6Addr::LOCALHOST.octets(), &[0x1f, 0x90]].concat();
    assert_eq!(target(&ipv6), Ok("[::1]:8080".into()));
    // A name that is an address in disguise is that address, so that the rules for addresses hold for it.
    assert_eq!(target(&for_name(1, "0x7f.1", 80)), Ok("127.0.0.1:80".into()));
}

#[test]
fn what_is_not_done_is_refused_with_its_own_code() {
    assert_eq!(target(&for_name(3, "example.org", 53)), Err(Reason::CommandUnsupported));
    assert_eq!(target(&for_name(2, "example.org", 53)), Err(Reason::CommandUnsupported));
    assert_eq!(target(&for_name(9, "example.org", 53)), Err(Reason::CommandUnsupported));
    assert_eq!(target(&[5, 1, 0, 2, 1, 2]), Err(Reason::AddressType));
    assert_eq!(target(&for_name(1, "example.org", 0)), Err(Reason::BadRequest));
    assert_eq!(target(&for_name(1, "exa mple", 80)), Err(Reason::BadRequest));
    assert_eq!(target(&[5, 1, 0, 3, 1, 0xff, 0, 80]), Err(Reason::BadRequest));
    assert_eq!(reply(Some(Reason::CommandUnsupported))[..2], [5, 7]);
    assert_eq!(reply(Some(Reason::AddressType))[..2], [5, 8]);
    assert_eq!(reply(None), [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
}
