use proptest::prelude::*;

use super::*;

fn parse(name: &str) -> Result<(String, Options), (usize, UsernameProblem)> {
    let parsed = Username::parse(name, &Options::default());
    parsed.map(|name| (name.account.into(), name.options)).map_err(|error| (error.at, error.problem))
}

#[test]
fn an_account_alone_asks_for_nothing() {
    assert_eq!(parse("acme_01"), Ok(("acme_01".into(), Options::default())));
}

#[test]
fn every_option_and_its_other_names_are_understood() {
    let (account, options) =
        parse("a-cc-DE,at,de-session-Cart_7-sesstime-30-sticky-hard-dns-proxy-ip-6").unwrap();
    assert_eq!(account, "a");
    assert_eq!(options.countries, [Country::parse("de").unwrap(), Country::parse("at").unwrap()]);
    let ttl = Duration::from_secs(1_800);
    assert_eq!(options.session, Some(Session { name: "Cart_7".into(), ttl, stickiness: Stickiness::Hard }));
    assert_eq!((options.resolution, options.family), (NameResolution::Proxy, Family::V6));
    let (_, options) = parse("a-provider-0192f0c1d2e3747f8899aabbccddeeff-country-fr-ip-4-dns-exit").unwrap();
    assert_eq!(options.providers, [Uuid::from_u128(0x0192_f0c1_d2e3_747f_8899_aabb_ccdd_eeff)]);
    assert_eq!(parse("a-session-x").unwrap().1.session.unwrap().ttl, DEFAULT_TTL);
    for name in ["ttl", "sesstime", "lifetime"] {
        assert_eq!(parse(&format!("a-session-x-{name}-1440")).unwrap().1.session.unwrap().ttl, MAX_TTL);
    }
}

#[test]
fn what_is_not_understood_is_refused_where_it_stands() {
    use UsernameProblem as P;
    let cases = [
        ("", 0, P::Account),
        ("Acme", 0, P::Account),
        ("acm\u{e9}", 3, P::Account),
        ("-country-de", 0, P::Account),
        ("a-contry-de", 2, P::UnknownKey("contry".into())),
        ("a-country", 2, P::NoValue("country".into())),
        ("a-", 2, P::NoValue("".into())),
        ("a-country-", 10, P::EmptyValue),
        ("a-country-de,", 13, P::Country),
        ("a-country-germany", 10, P::Country),
        ("a-cc-de-country-at", 8, P::Twice),
        ("a-session-a!b", 11, P::Session),
        ("a-session-x-ttl-0", 16, P::Ttl),
        ("a-session-x-ttl-1441", 16, P::Ttl),
        ("a-session-x-ttl-+1", 16, P::Ttl),
        ("a-session-x-sticky-yes", 19, P::Sticky),
        ("a-ttl-10", 2, P::NoSession),
        ("a-sticky-hard", 2, P::NoSession),
        ("a-provider-0192f0c1", 11, P::Provider),
        ("a-dns-here", 6, P::Dns),
        ("a-ip-5", 5, P::Ip),
    ];
    for (name, at, problem) in cases {
        assert_eq!(parse(name), Err((at, problem)), "{name}");
    }
    let text = Username::parse("acme-contry-de", &Options::default()).unwrap_err().to_string();
    assert!(text.starts_with("user name, position 6: unknown option `contry`"), "{text}");
}

#[test]
fn bounds_are_kept() {
    use UsernameProblem as P;
    assert!(parse(&"a".repeat(MAX_ACCOUNT_BYTES)).is_ok());
    assert_eq!(parse(&"a".repeat(MAX_ACCOUNT_BYTES + 1)), Err((MAX_ACCOUNT_BYTES, P::Account)));
    assert!(parse(&format!("a-session-{}", "s".repeat(MAX_SESSION_BYTES))).is_ok());
    let at = 10 + MAX_SESSION_BYTES;
    assert_eq!(parse(&format!("a-session-{}", "s".repeat(MAX_SESSION_BYTES + 1))), Err((at, P::Session)));
    let countries: Vec<_> =
        (b'a'..).take(MAX_VALUES + 1).map(|letter| format!("a{}", letter as char)).collect();
    assert_eq!(parse(&format!("a-cc-{}", countries[1..].join(","))).unwrap().1.countries.len(), MAX_VALUES);
    assert_eq!(parse(&format!("a-cc-{}", countries.join(","))), Err((5 + 3 * MAX_VALUES, P::TooManyValues)));
    assert_eq!(parse(&"a".repeat(MAX_USERNAME_BYTES + 1)), Err((MAX_USERNAME_BYTES, P::TooLong)));
}

#[test]
fn the_user_name_overrides_the_default_selection_option_by_option() {
    let defaults = Options::parse("country-de-session-shared-ttl-60-dns-proxy").unwrap();
    let options = Username::parse("a-country-fr-ttl-5", &defaults).unwrap().options;
    assert_eq!(options.countries, [Country::parse("fr").unwrap()]);
    let session = options.session.unwrap();
    assert_eq!((&*session.name, session.ttl), ("shared", Duration::from_secs(300)));
    assert_eq!(options.resolution, NameResolution::Proxy);
    assert_eq!(Options::parse("country-x").unwrap_err().at, 8);
}

proptest! {
    #[test]
    fn no_user_name_breaks_it(name in "[a-z0-9_A-Z,é\u{0}-]{0,80}") {
        crate::fuzz::username(name.as_bytes());
    }

    #[test]
    fn nearly_good_user_names_break_nothing(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "a", "-", ",", "country", "cc", "de", "session", "x9", "ttl", "10", "sticky", "hard", "ip", "4", "dns",
                "exit", "provider", "0192f0c1d2e3747f8899aabbccddeeff", "\0",
            ]),
            0..14,
        ),
    ) {
        crate::fuzz::username(parts.concat().as_bytes());
        crate::fuzz::username(parts.join("-").as_bytes());
    }
}
