use super::*;

fn suites(text: &str) -> Vec<&'static str> {
    Tls12Ciphers::parse(text).unwrap().suites.into_iter().map(CipherSuite::openssl_name).collect()
}

fn reason(refusal: Refusal) -> String {
    match refusal {
        Refusal::Bad(reason) | Refusal::NotBuilt(reason) => reason,
    }
}

#[test]
fn words_of_pgbouncer_name_the_versions_that_are_built() {
    for (text, expected) in [
        ("secure", (true, true, false)),
        ("all", (true, true, true)),
        ("legacy", (true, true, true)),
        ("tlsv1.3", (false, true, false)),
        ("TLSv1.1, TLSv1.2", (true, false, true)),
        ("all:!tlsv1.3", (true, false, true)),
    ] {
        let read = TlsProtocols::parse(text).unwrap();
        assert_eq!((read.tls12, read.tls13, read.asks_for_old), expected, "{text}");
    }
    assert!(reason(TlsProtocols::parse("tlsv1.1").unwrap_err()).contains("neither tlsv1.2 nor tlsv1.3"));
    assert!(reason(TlsProtocols::parse("tlsv1.4").unwrap_err()).contains("`tlsv1.4` is none of secure"));
}

#[test]
fn ciphers_of_tls_12_are_chosen_by_name_in_their_order() {
    assert_eq!(
        suites("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"),
        ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"]
    );
}

#[test]
fn kinds_of_ciphers_mean_what_openssl_means() {
    assert_eq!(suites("default").len(), 6);
    assert_eq!(suites("HIGH:!aNULL:!MD5:@STRENGTH").len(), 6);
    assert_eq!(suites("ECDHE+AESGCM:!aECDSA").len(), 2);
    assert_eq!(
        suites("HIGH:!AES128:!CHACHA20"),
        ["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"]
    );
    assert_eq!(suites("!AES256:HIGH").len(), 4, "what is excluded does not come back");
    assert_eq!(suites("HIGH:MEDIUM:+3DES").len(), 6, "kinds that are not built add nothing");
}

#[test]
fn a_cipher_that_is_not_built_is_refused_with_those_that_are() {
    let refused = reason(Tls12Ciphers::parse("HIGH:AES256-SHA").unwrap_err());
    assert!(
        refused.contains("`AES256-SHA` is none of") && refused.contains("ECDHE-RSA-AES256-GCM-SHA384"),
        "{refused}"
    );
    assert!(reason(Tls12Ciphers::parse("kRSA").unwrap_err()).contains("leaves no suite"));
    let refused = reason(Tls13Ciphers::parse("TLS_AES_128_CCM_SHA256").unwrap_err());
    assert!(refused.contains("TLS_AES_256_GCM_SHA384"), "{refused}");
}

#[test]
fn groups_have_the_names_of_openssl_and_of_the_standard() {
    assert_eq!(KeyExchangeGroups::parse("auto").unwrap().groups, None);
    let groups = KeyExchangeGroups::parse("prime256v1:X25519:secp256r1").unwrap().groups;
    assert_eq!(groups, Some(vec![KeyExchange::P256, KeyExchange::X25519]));
    assert!(reason(KeyExchangeGroups::parse("secp521r1").unwrap_err()).contains("X25519MLKEM768"));
    assert!(KeyExchangeGroups::parse("none").is_err());
}
