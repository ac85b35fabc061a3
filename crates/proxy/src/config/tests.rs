use super::*;

fn error(text: &str) -> String {
    Config::parse(text).unwrap_err().to_string()
}

#[test]
fn nothing_said_is_a_listener_on_loopback_by_login() {
    let config = Config::parse("").unwrap();
    assert!(config.listen.iter().all(|listen| listen.address.ip().is_loopback()));
    assert!(config.listen.iter().all(|listen| listen.no_auth_account.is_none()) && !config.abuse.targets);
}

#[test]
fn a_listener_beyond_loopback_without_logins_is_refused() {
    for address in ["0.0.0.0:1080", "[::]:1080", "192.0.2.1:1080", "[::ffff:0.0.0.0]:1080"] {
        let listen = format!("[[listen]]\naddress = '{address}'\nno_auth_account = 'acme'\n");
        assert!(error(&listen).contains("everybody could use it"), "{address}");
        assert!(
            Config::parse(&listen.replace("no_auth_account = 'acme'\n", "")).is_ok(),
            "with logins it may"
        );
    }
    assert!(
        Config::parse("[[listen]]\naddress = '127.0.0.1:0'\nno_auth_account = 'acme-country-de'").is_ok()
    );
    assert!(Config::parse("[[listen]]\naddress = '[::1]:0'\nno_auth_account = 'acme'").is_ok());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    assert!(error("connection = 5").contains("line 1, column 1"), "{}", error("connection = 5"));
    assert!(error("connections = 0").contains("`connections` is 0"));
    assert!(error("listen = []").contains("`listen` is empty"));
    let selection = "[[listen]]\naddress = '127.0.0.1:1'\nselection = 'country-x'";
    assert_eq!(
        error(selection),
        "`selection` of 127.0.0.1:1: user name, position 9: a country is two letters (ISO 3166-1), several are separated by \
         commas"
    );
    assert!(error("allow_exact = ['localhost:80']").contains("not a name"));
}
