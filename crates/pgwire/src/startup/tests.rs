use proptest::prelude::*;

use super::*;

fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 8).unwrap();
    [&length.to_be_bytes(), &code.to_be_bytes(), body].concat()
}

fn startup(minor: u16, body: &[u8]) -> Result<Startup, StartupError> {
    let bytes = packet(3 << 16 | u32::from(minor), body);
    match first_packet(&bytes)? {
        Some((FirstPacket::Startup(startup), consumed)) if consumed == bytes.len() => Ok(startup),
        other => panic!("no start-up packet: {other:?}"),
    }
}

fn cancel_with(secret: &[u8]) -> Result<FirstPacket, StartupError> {
    first_packet(&cancel_request(-7, secret)).map(|packet| packet.unwrap().0)
}

#[test]
fn a_packet_is_understood_however_it_is_split() {
    let user = startup_message([("user", "ada"), ("database", "shop"), ("options", "-c x=1")]).unwrap();
    let key_of_256 = cancel_request(9, &[3; 256]);
    for whole in [user, ssl_request(), gss_encryption_request(), cancel_request(9, &[1, 2, 3, 4]), key_of_256]
    {
        for have in 0..whole.len() {
            assert_eq!(first_packet(&whole[..have]), Ok(None), "{have} bytes");
        }
        let (packet, consumed) = first_packet(&whole).unwrap().unwrap();
        assert_eq!(consumed, whole.len());
        let more = [&whole[..], b"what follows"].concat();
        assert_eq!(first_packet(&more), Ok(Some((packet, consumed))));
    }
}

#[test]
fn user_database_replication_and_options_are_told_apart() {
    let body = b"user\0ada\0database\0shop\0application_name\0x\0options\0-c a=b\0\
                 replication\0database\0_pq_.one\0\x31\0application_name\0y\0_pq_.one\0\x31\0_pq_.two\0\0\0";
    let startup = startup(2, body).unwrap();
    assert_eq!((startup.user.as_str(), startup.database.as_str()), ("ada", "shop"));
    assert_eq!(startup.replication, Replication::Logical);
    assert_eq!(startup.unknown_options, ["_pq_.one", "_pq_.two"]);
    assert_eq!(startup.parameter("application_name"), Some("y"), "the last one counts");
    assert_eq!(startup.parameter("options"), Some("-c a=b"));
    assert_eq!(startup.parameters.len(), 2);
}

#[test]
fn the_database_is_that_of_the_users_name_when_none_is_named() {
    for body in [&b"user\0ada\0\0"[..], b"user\0ada\0database\0\0\0"] {
        assert_eq!(startup(0, body).unwrap().database, "ada");
    }
}

#[test]
fn without_a_user_the_answer_is_28000() {
    for body in [&b"\0"[..], b"database\0shop\0\0", b"user\0\0\0"] {
        let error = startup(0, body).unwrap_err();
        assert_eq!(error, StartupError::NoUser);
        assert_eq!(error.sqlstate(), "28000");
    }
}

#[test]
fn a_newer_minor_version_or_an_unknown_option_is_negotiated_down() {
    let user = b"user\0ada\0\0";
    for (minor, goes_on_with, negotiate) in
        [(0, 0, false), (1, 1, false), (2, 2, false), (3, 2, true), (9999, 2, true)]
    {
        let startup = startup(minor, user).unwrap();
        assert_eq!(
            (startup.negotiated_minor(), startup.must_negotiate()),
            (goes_on_with, negotiate),
            "3.{minor}"
        );
    }
    let option = startup(0, b"user\0ada\0_pq_.test_protocol_negotiation\0\0\0").unwrap();
    assert!(option.must_negotiate());
    assert_eq!(option.negotiated_minor(), 0);
}

#[test]
fn another_major_version_is_refused_with_what_is_spoken() {
    for (major, minor) in [(2, 0), (1, 0), (4, 0), (0, 0)] {
        let error = first_packet(&packet(major << 16 | minor, b"user\0ada\0\0")).unwrap_err();
        assert_eq!(error.sqlstate(), "0A000");
        assert_eq!(
            error.to_string(),
            format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2")
        );
    }
}

#[test]
fn a_wrong_length_is_refused_before_the_packet_is_kept() {
    for length in [0, 4, 7, 10_005, u32::MAX] {
        let error = first_packet(&length.to_be_bytes()).unwrap_err();
        assert_eq!(error, StartupError::Length { length: length as usize });
        assert_eq!(error.sqlstate(), "08P01");
    }
    assert_eq!(first_packet(&10_004_u32.to_be_bytes()), Ok(None));
    let filling = |bytes: usize| [&b"user\0"[..], &vec![b'x'; bytes - 7], b"\0\0"].concat();
    assert_eq!(startup(0, &filling(MAX_STARTUP_PACKET - 4)).unwrap().user.len(), MAX_STARTUP_PACKET - 11);
    assert!(matches!(startup(0, &filling(MAX_STARTUP_PACKET - 3)), Err(StartupError::Length { .. })));
    for code in [SSL_REQUEST_CODE, GSS_ENCRYPTION_REQUEST_CODE] {
        assert_eq!(first_packet(&packet(code, &[0])), Err(StartupError::Length { length: 9 }));
    }
}

#[test]
fn a_list_that_does_not_end_with_the_packet_is_refused() {
    for body in [&b""[..], b"user", b"user\0ada", b"user\0ada\0", b"user\0ada\0\0more", b"user\0\0ada\0"] {
        assert_eq!(startup(0, body), Err(StartupError::Layout), "{}", body.escape_ascii());
    }
}

#[test]
fn parameters_are_limited_in_number() {
    let body = |count: usize| {
        let others: String = (1..count).map(|number| format!("p{number}\0v\0")).collect();
        format!("user\0ada\0{others}\0").into_bytes()
    };
    assert_eq!(
        startup(0, &body(MAX_STARTUP_PARAMETERS)).unwrap().parameters.len(),
        MAX_STARTUP_PARAMETERS - 1
    );
    assert_eq!(startup(0, &body(MAX_STARTUP_PARAMETERS + 1)), Err(StartupError::TooManyParameters));
}

#[test]
fn cancel_keys_of_4_to_256_bytes_are_accepted() {
    for length in [4, 32, 256] {
        let FirstPacket::Cancel(key) = cancel_with(&vec![5; length]).unwrap() else { panic!("no cancel") };
        assert_eq!((key.process_id, key.secret.as_bytes()), (-7, &vec![5; length][..]));
        assert!(!format!("{key:?}").contains("5, 5"));
    }
    for length in [0, 3, 257] {
        assert_eq!(cancel_with(&vec![5; length]), Err(StartupError::CancelKeyLength { most: 256 }));
    }
    assert!(first_packet(&packet(CANCEL_REQUEST_CODE, &[1, 2])).is_err());
}

#[test]
fn tls_without_asking_first_gets_a_readable_answer() {
    assert_eq!(first_packet(&[0x16]), Err(StartupError::DirectTls));
}

#[test]
fn what_is_not_utf8_is_refused_by_name_save_for_the_application_name() {
    let error = startup(0, b"user\0ada\0search_path\0caf\xe9\0\0").unwrap_err();
    assert_eq!(error.to_string(), "startup parameter \"search_path\" is not valid UTF-8");
    assert_eq!(error.sqlstate(), "22021");
    assert!(startup(0, b"user\0ad\xe9\0\0").is_err());
    let startup = startup(0, b"user\0ada\0application_name\0caf\xe9\0\0").unwrap();
    assert_eq!(startup.parameter("application_name"), Some("caf\u{fffd}"));
}

#[test]
fn replication_is_read_as_postgresql_reads_it() {
    let read = |value: &str| {
        startup(0, format!("user\0ada\0replication\0{value}\0\0").as_bytes())
            .map(|startup| startup.replication)
    };
    for value in ["true", "T", "yes", "on", "1"] {
        assert_eq!(read(value), Ok(Replication::Physical), "{value}");
    }
    for value in ["false", "f", "no", "of", "off", "0"] {
        assert_eq!(read(value), Ok(Replication::No), "{value}");
    }
    assert_eq!(read("database"), Ok(Replication::Logical));
    for value in ["", "o", "truer", "2", "Database"] {
        assert_eq!(read(value), Err(StartupError::Replication { value: value.to_owned() }));
    }
}

#[test]
fn an_error_is_told_to_the_client_as_fatal() {
    let fields = crate::message::ErrorFields::parse(&StartupError::NoUser.response()[5..]);
    assert_eq!(fields.to_string(), "FATAL 28000: no PostgreSQL user name specified in startup packet");
}

#[test]
fn a_start_up_message_that_cannot_be_sent_whole_is_an_error() {
    let zero = startup_message([("user", "a\0b")]).unwrap_err();
    assert_eq!(zero, StartupError::ZeroByte { name: "user".to_owned() });
    assert_eq!(startup_message([("", "x")]), Err(StartupError::Layout));
    let length = |value: usize| startup_message([("user", "x".repeat(value))]).map(|packet| packet.len());
    assert_eq!(length(MAX_STARTUP_PACKET - 11), Ok(MAX_STARTUP_PACKET + 4));
    assert_eq!(length(MAX_STARTUP_PACKET - 10), Err(StartupError::Length { length: MAX_STARTUP_PACKET + 5 }));
}

#[test]
fn our_packets_are_those_of_another_library() {
    use postgres_protocol::message::frontend;
    let mut theirs = bytes::BytesMut::new();
    let parameters = [("user", "ada"), ("database", "shop"), ("client_encoding", "UTF8")];
    frontend::startup_message(parameters, &mut theirs).unwrap();
    assert_eq!(startup_message(parameters).unwrap(), theirs);
    theirs.clear();
    frontend::ssl_request(&mut theirs);
    frontend::cancel_request(77, 0x0102_0304, &mut theirs);
    assert_eq!([ssl_request(), cancel_request(77, &[1, 2, 3, 4])].concat(), theirs);
}

proptest! {
    #[test]
    fn what_is_built_is_read_back(
        user in "[^\0]{1,20}", others in proptest::collection::btree_map("[a-z.]{1,9}", "[^\0]{0,20}", 0..20)
    ) {
        let mut wanted: Vec<_> = others.into_iter().filter(|(name, _)| {
            !matches!(name.as_str(), "user" | "database" | "replication")
        }).collect();
        let all = [("user".to_owned(), user.clone())].into_iter().chain(wanted.clone());
        let bytes = startup_message(all).unwrap();
        let Some((FirstPacket::Startup(startup), _)) = first_packet(&bytes).unwrap() else { panic!() };
        prop_assert_eq!(startup.user, user);
        wanted.sort();
        let mut got = startup.parameters;
        got.sort();
        prop_assert_eq!(got, wanted);
    }
}
