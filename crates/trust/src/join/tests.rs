use super::*;
use proptest::prelude::*;

#[test]
fn links_read_back_with_names_and_both_kinds_of_address() {
    let network = NetworkId([7; 32]);
    for (host, address) in
        [("127.0.0.1", "127.0.0.1:8443"), ("::1", "[::1]:8443"), ("api.example.org", "api.example.org:8443")]
    {
        let link = JoinLink { host: host.to_owned(), port: 8443, network };
        assert_eq!(link.address(), address);
        assert_eq!(link.to_string().parse(), Ok(link));
    }
}

#[test]
fn what_is_no_link_is_refused() {
    let network = NetworkId([7; 32]);
    let refused = |text: String| assert_eq!(text.parse::<JoinLink>(), Err(ParseError::JoinLink), "{text}");
    for address in [
        "",
        "host",
        "host:",
        "host:0",
        "host:65536",
        ":443",
        "a b:443",
        "::1:443",
        "[::1:443",
        "u@h:443",
        "-a:443",
        "1.2.3:443",
        "a..b:443",
    ] {
        refused(format!("holdfast://{address}/{network}"));
    }
    refused(format!("https://a:1/{network}"));
    refused(format!("holdfast://a:1/{network}/"));
    refused(format!("holdfast://a:1/{network}?code=x"));
    refused(format!("holdfast://{}:1/{network}", "a.".repeat(200)));
}

#[test]
fn a_code_is_taken_as_people_type_it() {
    let code: JoinCode = "01ABC-DEFGH-JKMNP-QRSTV".parse().unwrap();
    assert_eq!(code.reveal(), "01ABC-DEFGH-JKMNP-QRSTV");
    for typed in ["oiabc defgh jkmnp qrstv\n", "OLABCDEFGHJKMNPQRSTV", " 01abc-defgh-jkmnp-qrstv "] {
        assert_eq!(typed.parse::<JoinCode>().unwrap().hash(), code.hash(), "{typed}");
    }
    for wrong in ["", "01ABC-DEFGH-JKMNP-QRST", "01ABC-DEFGH-JKMNP-QRSTV1", "U1ABC-DEFGH-JKMNP-QRSTV"] {
        assert_eq!(wrong.parse::<JoinCode>().unwrap_err(), ParseError::JoinCode, "{wrong}");
    }
}

#[test]
fn codes_differ_and_are_not_shown_by_debug() {
    let (one, two) = (JoinCode::generate().unwrap(), JoinCode::generate().unwrap());
    assert_ne!(one.hash(), two.hash());
    assert_eq!(one.reveal().len(), 23);
    assert!(!format!("{one:?}").contains(&one.reveal()[..5]));
    assert_eq!(one.reveal().parse::<JoinCode>().unwrap().hash(), one.hash());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(holdfast://)?[a-z0-9.:\\[\\]/-]{0,90}", code in ".{0,60}") {
        if let Ok(link) = text.parse::<JoinLink>() {
            prop_assert_eq!(link.to_string().parse(), Ok(link));
        }
        if let Ok(code) = code.parse::<JoinCode>() {
            prop_assert_eq!(code.reveal().parse::<JoinCode>().unwrap().hash(), code.hash());
        }
    }
}
