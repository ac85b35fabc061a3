use super::super::fixtures::Certificate;
use super::*;
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256};

#[test]
fn a_channel_is_bound_by_the_hash_of_the_certificates_signature() {
    for (algorithm, hash) in [
        (&PKCS_ECDSA_P256_SHA256, &digest::SHA256),
        (&PKCS_ECDSA_P384_SHA384, &digest::SHA384),
        (&PKCS_RSA_SHA256, &digest::SHA256),
    ] {
        let certificate = Certificate::self_signed(&["localhost"], algorithm).der;
        let expected = ChannelBinding::tls_server_end_point(digest::digest(hash, &certificate).as_ref());
        assert_eq!(channel_binding(&certificate), Some(expected));
    }
}

#[test]
fn a_signature_without_a_hash_of_its_own_binds_nothing() {
    assert_eq!(channel_binding(&Certificate::self_signed(&["localhost"], &PKCS_ED25519).der), None);
}

/// A certificate that holds an algorithm alone.
fn with_algorithm(algorithm: &[u8]) -> Vec<u8> {
    let inner = [&[SEQUENCE, 0, SEQUENCE, algorithm.len() as u8][..], algorithm].concat();
    [&[SEQUENCE, inner.len() as u8][..], &inner].concat()
}

#[test]
fn broken_hashes_are_replaced_and_that_of_pss_is_found_in_its_parameters() {
    let rsa = |kind: u8| [&[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1][..], &[kind]].concat();
    for (kind, expected) in [(4, 32), (5, 32), (11, 32), (12, 48), (13, 64)] {
        let hash = signature_hash(&with_algorithm(&rsa(kind))).unwrap();
        assert_eq!(hash.output_len(), expected, "{kind}");
    }
    let sha512 = [0x30, 15, 0xa0, 13, 0x30, 11, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3];
    let pss = [rsa(10), sha512.to_vec()].concat();
    assert_eq!(signature_hash(&with_algorithm(&pss)).unwrap().output_len(), 64);
}

#[test]
fn the_time_of_a_certificate_is_kept_in_both_of_its_notations() {
    let certificate = Certificate::self_signed(&["localhost"], &PKCS_ECDSA_P256_SHA256).der;
    // Those of rcgen hold from 1975, which is UTCTime, until 4096, which is not.
    assert_eq!(validity(&certificate), Some(("19750101000000".to_owned(), "40960101000000".to_owned())));
    assert!(is_valid_at(&certificate, "20261130120000"));
    assert!(!is_valid_at(&certificate, "19741231235959"));
    assert!(!is_valid_at(&certificate, "40960101000001"));
}

#[test]
fn nothing_that_is_no_certificate_is_taken_for_one() {
    let certificate = Certificate::self_signed(&["localhost"], &PKCS_ECDSA_P256_SHA256).der;
    for length in 0..certificate.len() {
        assert_eq!(channel_binding(&certificate[..length]), None);
        assert!(!is_valid_at(&certificate[..length], "20261130120000"));
    }
    assert_eq!(channel_binding(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
}
