use std::sync::Arc;

use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use proptest::prelude::*;

use super::*;
use crate::secret::Password;

/// Few, so that tests stay quick; the vectors use 4096.
const ITERATIONS: u32 = 3;
const SALT: &[u8] = b"0123456789abcdef";

fn verifier(password: &str) -> Arc<Verifier> {
    Arc::new(Verifier::derive(password.as_bytes(), SALT, ITERATIONS).unwrap())
}

fn password(text: &str) -> ClientSecret {
    ClientSecret::Password(Password::new(text))
}

/// A whole exchange between our two sides.
fn exchange(secret: ClientSecret, verifier: Arc<Verifier>) -> Result<ScramKeys, ScramError> {
    let (client, client_first) = AwaitServerFirst::new(secret, &[1; 32]);
    let server = AwaitClientFirst::new(verifier, &[2; 32]).answer(&client_first)?;
    let (client, client_final) = client.answer(server.server_first())?;
    let verified = server.finish(&client_final)?;
    client.verify(&verified.server_final)?;
    Ok(verified.keys)
}

#[test]
fn the_exchange_of_rfc_7677_is_reproduced_by_both_sides() {
    let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    let verifier = Arc::new(Verifier::derive(b"pencil", &salt, 4096).unwrap());
    let client_nonce = "rOprNGfwEbeRWgbNEkqO";
    let server_nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

    let (client, client_first) = AwaitServerFirst::with_nonce(password("pencil"), "user", client_nonce);
    assert_eq!(client_first, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    let bare = std::str::from_utf8(&client_first[3..]).unwrap();
    let server = AwaitClientFinal::challenge(verifier, "biws".into(), bare, [client_nonce, server_nonce]);
    assert_eq!(
        server.server_first(),
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let (client, client_final) = client.answer(server.server_first()).unwrap();
    assert_eq!(
        std::str::from_utf8(&client_final).unwrap(),
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
         p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    let verified = server.finish(&client_final).unwrap();
    assert_eq!(verified.server_final, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    assert_eq!(client.verify(&verified.server_final), Ok(()));
}

/// Verifiers of PostgreSQL 15 (UTF-8, libc C): mapped, normalised, and left as they are where SASLprep refuses.
#[rustfmt::skip]
const FROM_POSTGRESQL: &[(&str, &str)] = &[
    ("pencil", "SCRAM-SHA-256$4096:z5/iYwjwsnDFCpSsMNdZMQ==$BdnwwaNXvNE4PxNc/xONDHqSdZ/otvR7xanTSf9U7Nc=:IiJ8pEb3OV00CzOOa6Fkk8tFMNGOi1qV+8F8TSfubQM="),
    ("pass\u{a0}word", "SCRAM-SHA-256$4096:xDH7XhHZYnnT7iJjzOUJ5Q==$KfbLd8tfg/udrh3bHwWsLwh6x7lFKduHj9puTWXXgqQ=:2SCt2VrcNNFEGaOPARtpFdHEeHwy+w/gwRlnymFM99E="),
    ("pass\u{ad}word", "SCRAM-SHA-256$4096:a6+kaj86wf3qTSIkuOqKuA==$e2cmjgYrwG3FNV+IIdJAHO6fmnOYGC6MU4Hl6pmSwgQ=:BIv2IaOVe3SrBWk48H9NBLa4KSwkCSsqcMDEvpsI4NA="),
    ("cafe\u{301}", "SCRAM-SHA-256$4096:X9s+SytI2evLPHvM8fjWQw==$ongKPvgQMMwIYigS5ArjnlB47jocqWu2LxCLKmqhWqU=:NzqeHzZN3/g1mOdZLW6iXWbwAM3MQbZovjx6rEGVOlo="),
    ("caf\u{e9}", "SCRAM-SHA-256$4096:YYovQ0Mcn8ZIFL/uq5Yx/A==$lQUtH9+EF5Z7UalW4W1jk3fNcRj2hwLBHsagXk5XXXk=:M6mkkm2gW70Y7SO3e9+a9Tg1YXt3JBPFjxJGQehGEW8="),
    ("a\u{1}b", "SCRAM-SHA-256$4096:0U9DuwyxuJN5H8R4JV59bw==$5HIMkkUhOm3mBUqLrsYoSBIw0J7rUtIp7nrVf0MWIPk=:TjJqWS1rBL1FiOairPoKh94mr+n6vLY4fGJfEEeqAVs="),
    ("\u{ad}", "SCRAM-SHA-256$4096:2tigXmx80yobeJxeHUDbOw==$R/I77XzYKRk3BjfLmvlCkWH5v3edUpLRGaKRkjDm464=:bDgwX2bjf2R4rDvHGS/7QrA+AyKQWIvcRNjOK9p4hWM="),
    ("\u{1f600} smile", "SCRAM-SHA-256$4096:IJT4usG00yEtL14K3yv1BQ==$NK+DjEsUlr8+O+C0vi6BoVFGbifKba1tkpUBkcX1gKo=:n/OPsLxPQr/4WnkB5PR8NGATQu/zbp3ane2C+rrEyy0="),
    ("\u{627}\u{628} x", "SCRAM-SHA-256$4096:R6Jok/CfysILD9uNk9UQKw==$DntPlS9QEkmkP4e/3FrYXyq3yWc5GVHMVxiIrQ+Ha+U=:1anbaXuDt2P1MLd0mhnBSX3EP3L+lY5ZO7lUoCOOArU="),
    ("\u{fb01}\u{2168}\u{aa}", "SCRAM-SHA-256$4096:o/QeNkj08W52Y6URuUAt6A==$44K6IhF2tBYWf37LTACk5jxtcnZevG1UVpNwfc9S09Y=:32fTbPe9CLHe9WhuMEcwI4I+xEfwDBx9Rbj//bagARk="),
    ("  two spaces  ", "SCRAM-SHA-256$4096:5CyBmLweZkxOKt1qOKEU2g==$8pqKVPNsjnrTNX9weOlOCGIxB4rXmpLby8FMpTsIcEs=:3QnF8ilnV+Ayxl9FAoAKbA+lwqem28ED2TmfPnTR+BM="),
    ("\u{221}", "SCRAM-SHA-256$4096:g/iwE4KHFxnJWSKEVM7MSQ==$NLa9SU81nYP9+q3rnGib3L2SUrOv6gNHacncvIc9Ef0=:4tFy5LnLDN4GTZaERNDoVqj2QZC9Q6c3UAk5pC6xDnQ="),
    ("\u{627}\u{628}", "SCRAM-SHA-256$4096:aCXriO+6sEQdHw/evc002g==$atHU/9aBvFfDCOLCyGi9DH5qRlL1pVCsAMTv86u+CV0=:SMw2JqxqjxDEBBwgSpuL1wwPjQudGhi6vx/EtkbVXT8="),
    ("x\u{200d}y\u{7}", "SCRAM-SHA-256$4096:keQaS8cJMBWnKEfxRmLWag==$7VtYowFtQ3OHs3QqAO8BJlLFJk+h3TlqX6U0cCUpN8g=:H5kXKttSGHI+t7/UjyB5SFG1e3IYKOLf/TiO8LLuFiA="),
    ("\u{3000}ideographic", "SCRAM-SHA-256$4096:nbcIxxW0UZl1AgiXuBJvRw==$qpKYhGM92unLut9OUFx6vkyL9uUBlY2oPytqdzVGir4=:NRRGedVCbn/YVdIdUS03KWKDvRqi8bhrDU380tyilgk="),
    ("\u{d55c}\u{ae00}\u{1112}\u{1161}", "SCRAM-SHA-256$4096:lOw4Xl0f/tXpeqmODvrpLg==$Sr+YXiVqm1ROo73ZomtePqxz2YHyytQ6rxtiUy5HCIc=:sgKWIxHF2Gmd59ykJF3lQdWxn9e25E28vNEJEQSjdjE="),
    ("\u{e9}\u{7}", "SCRAM-SHA-256$4096:UNFGR/wzf5LxVE+GoL9Zfw==$l2a4OOGv1tNmmOMhAZBRzcBWHrUHp6ErMm0jPL4L07I=:FrtIw4coJS/X8l6UnvrnOMjHMPIGynbXEDqBCiq/Fck="),
    ("\u{627}\u{31}1", "SCRAM-SHA-256$4096:Dz1RRz3Fkk3Ho5WrICL9wQ==$C7AVe78ctbnVQuLcSuQmhgkgGCgPwUr/CFSW9E+j8V4=:EWgDtw65GBjSfpoN3lH4G7M9f1cXHDgJDmHX1EkK/cM="),
    ("\u{e000}private", "SCRAM-SHA-256$4096:+qBpbbRHcogp8jAUpFTB4g==$i9wLZpJzjmwaTHhn97FR1VcEyBPYxtsNTTez8wXc6BY=:MAeel1zvV0mvRqjd3jNunt52Na6G94ykpUy/7ocFC7E="),
    ("\u{340}x", "SCRAM-SHA-256$4096:X+PMBCqG/18zVWY7yz9W5Q==$a2y64I91/y4lCM6uSS9S2iTFfkOm6WOd3RETNA8vkpM=:I7vr4RbpbPDFnyUDIO9vFcLizHEYYbg2rXwOepbyY9g="),
];

#[test]
fn passwords_are_prepared_as_postgresql_prepares_them() {
    for (password, stored) in FROM_POSTGRESQL {
        let stored: Verifier = stored.parse().unwrap();
        let derived = Verifier::derive(password.as_bytes(), stored.salt(), stored.iterations()).unwrap();
        assert!(derived == stored, "{}", password.escape_unicode());
    }
}

#[test]
fn bytes_that_are_not_utf8_are_taken_as_they_are() {
    assert_eq!(&*prepare(b"caf\xe9"), b"caf\xe9");
    assert_eq!(&*prepare(b""), b"");
}

#[test]
fn a_verifier_is_read_and_written_in_the_form_of_pg_authid() {
    let (_, text) = FROM_POSTGRESQL[0];
    let verifier: Verifier = text.parse().unwrap();
    assert_eq!(verifier.iterations(), 4096);
    assert_eq!(verifier.to_string(), text);
}

#[test]
fn a_text_that_is_no_verifier_is_refused_without_being_repeated() {
    let (_, good) = FROM_POSTGRESQL[0];
    let bad = [
        "".to_owned(),
        "pencil".to_owned(),
        good.replace("SHA-256", "SHA-1"),
        good.replace("4096", "0"),
        good.replace("4096", "+4096"),
        good.replace("4096", "2147483648"),
        good.replace("4096", ""),
        good.replace(":z5", "$z5"),
        good.replace("z5/iYwjwsnDFCpSsMNdZMQ==", ""),
        good.replace("z5/i", "z5!i"),
        good.replace("IiJ8", ""),
        format!("{good}AAAA"),
        format!("{good} "),
    ];
    for text in bad {
        let error = text.parse::<Verifier>().unwrap_err().to_string();
        assert!(text.is_empty() || !error.contains(&text), "{error}");
    }
}

#[test]
fn what_is_computed_by_us_has_a_bound_on_its_iterations() {
    for iterations in [0, MAX_ITERATIONS + 1, u32::MAX] {
        let expected = ScramError::Iterations { asked: u64::from(iterations) };
        assert_eq!(Verifier::derive(b"x", SALT, iterations), Err(expected.clone()));
        let (_, stored) = FROM_POSTGRESQL[0];
        if let Ok(stored) = stored.replace("4096", &iterations.to_string()).parse::<Verifier>() {
            assert_eq!(stored.check_password(b"pencil").unwrap_err(), expected);
        }
    }
    assert!(Verifier::derive(b"x", b"", 1).is_err());
    assert!(Verifier::derive(b"x", &[0; 257], 1).is_err());
}

#[test]
fn a_server_that_asks_for_too_much_work_is_refused_at_the_bound() {
    let ask = |iterations: &str| {
        let keys = ScramKeys::derive(b"pencil", SALT, ITERATIONS).unwrap();
        let (client, first) = AwaitServerFirst::new(ClientSecret::Keys(keys), &[1; 32]);
        let nonce = String::from_utf8(first[8..].to_vec()).unwrap();
        client.answer(format!("r={nonce}server,s=AAAA,i={iterations}").as_bytes()).map(drop)
    };
    assert_eq!(ask("2000000"), Ok(()));
    assert_eq!(ask("2000001"), Err(ScramError::Iterations { asked: 2_000_001 }));
    assert_eq!(ask("0"), Err(ScramError::Iterations { asked: 0 }));
    assert_eq!(ask("9999999999"), Err(ScramError::Iterations { asked: 9_999_999_999 }));
    for malformed in ["", "-1", "+1", "1x", "99999999999"] {
        assert_eq!(ask(malformed), Err(ScramError::Malformed("malformed iteration count")), "{malformed}");
    }
}

#[test]
fn a_client_with_the_password_is_let_in_and_another_is_not() {
    for text in ["pencil", "pass\u{a0}word", "\u{1f600}", &"long ".repeat(13_000)] {
        exchange(password(text), verifier(text)).unwrap();
        assert_eq!(exchange(password("wrong"), verifier(text)), Err(ScramError::Proof));
    }
}

#[test]
fn keys_learnt_of_a_client_log_in_where_the_same_verifier_is_stored_and_nowhere_else() {
    let keys = exchange(password("pencil"), verifier("pencil")).unwrap();
    assert_eq!(keys, ScramKeys::derive(b"pencil", SALT, ITERATIONS).unwrap());
    exchange(ClientSecret::Keys(keys.clone()), verifier("pencil")).unwrap();
    let other_salt = Arc::new(Verifier::derive(b"pencil", b"another", ITERATIONS).unwrap());
    assert_eq!(exchange(ClientSecret::Keys(keys), other_salt), Err(ScramError::Proof));
}

#[test]
fn the_client_of_another_library_logs_in_at_our_server() {
    for (offered, right) in [("pencil", true), ("pass\u{ad}word", true), ("other", false)] {
        let stored = if right { verifier(offered) } else { verifier("pencil") };
        for binding in [ChannelBinding::unsupported, ChannelBinding::unrequested] {
            let mut client = ScramSha256::new(offered.as_bytes(), binding());
            let server = AwaitClientFirst::new(stored.clone(), &[7; 32]).answer(client.message()).unwrap();
            client.update(server.server_first()).unwrap();
            match server.finish(client.message()) {
                Ok(verified) => {
                    assert!(right);
                    client.finish(&verified.server_final).unwrap();
                }
                Err(error) => assert_eq!((right, error), (false, ScramError::Proof)),
            }
        }
    }
}

#[test]
fn a_server_that_does_not_know_the_verifier_is_found_out() {
    let keys = ScramKeys::derive(b"pencil", SALT, ITERATIONS).unwrap();
    let reach = || {
        let (client, first) = AwaitServerFirst::new(ClientSecret::Keys(keys.clone()), &[1; 32]);
        let server = AwaitClientFirst::new(verifier("pencil"), &[2; 32]).answer(&first).unwrap();
        client.answer(server.server_first()).unwrap().0
    };
    let forged = format!("v={}", STANDARD.encode([0; 32]));
    assert_eq!(reach().verify(forged.as_bytes()), Err(ScramError::ServerSignature));
    assert_eq!(reach().verify(b"e=other-error"), Err(ScramError::Server("other-error".to_owned())));
    for malformed in [&b""[..], b"v=", b"v=AAAA", b"x", b"v=\xff"] {
        assert!(matches!(reach().verify(malformed), Err(ScramError::Malformed(_))));
    }
}

#[test]
fn a_replayed_challenge_is_refused() {
    let challenge = |nonce: &str| {
        let (client, _) = AwaitServerFirst::with_nonce(password("pencil"), "", "mine");
        client.answer(format!("r={nonce},s=AAAA,i=1").as_bytes()).map(drop)
    };
    assert_eq!(challenge("mineand"), Ok(()));
    assert_eq!(challenge("mine"), Err(ScramError::Nonce));
    assert_eq!(challenge("other"), Err(ScramError::Nonce));
    assert_eq!(challenge("mine\u{e9}"), Err(ScramError::Malformed("non-printable characters in nonce")));
}

#[test]
fn what_a_first_message_may_not_ask_for_is_named() {
    let answer =
        |message: &[u8]| AwaitClientFirst::new(verifier("pencil"), &[2; 32]).answer(message).map(|_| ());
    assert_eq!(answer(b"n,,n=,r=abc"), Ok(()));
    assert_eq!(answer(b"y,,n=anyone,r=abc,ext=1"), Ok(()));
    assert_eq!(answer(b"p=tls-server-end-point,,n=,r=abc"), Err(ScramError::ChannelBinding));
    assert_eq!(answer(b"n,a=root,n=,r=abc"), Err(ScramError::AuthorizationIdentity));
    assert_eq!(answer(b"n,,m=1,n=,r=abc"), Err(ScramError::Extension));
    for malformed in
        [&b""[..], b"n", b"n,", b"n,,", b"n,,n=", b"n,,r=abc", b"n,,n=,r=", b"n,,n=,r=a b", b"\xff"]
    {
        assert!(matches!(answer(malformed), Err(ScramError::Malformed(_))), "{}", malformed.escape_ascii());
    }
    let long = |length: usize| [&b"n,,n=,r="[..], &vec![b'x'; length - 8]].concat();
    assert_eq!(answer(&long(MAX_MESSAGE_BYTES)), Ok(()));
    assert_eq!(answer(&long(MAX_MESSAGE_BYTES + 1)), Err(ScramError::TooLong));
}

#[test]
fn a_client_cannot_pretend_another_header_than_it_sent() {
    for (header, lie) in [("n,,", "eSws"), ("y,,", "biws"), ("n,,", "cD10bHM=")] {
        let first = format!("{header}n=,r=abc");
        let server = AwaitClientFirst::new(verifier("pencil"), &[2; 32]).answer(first.as_bytes()).unwrap();
        let nonce = std::str::from_utf8(server.server_first()).unwrap().split(',').next().unwrap().to_owned();
        let last = format!("c={lie},{nonce},p={}", STANDARD.encode([0; 32]));
        let error = server.finish(last.as_bytes()).unwrap_err();
        assert_eq!(error, ScramError::Malformed("unexpected channel-binding attribute"));
    }
}

#[test]
fn an_unknown_user_cannot_be_told_from_a_wrong_password() {
    let mock = MockSecret::new([5; 32], ITERATIONS);
    let challenge = |user: &str| {
        let server = AwaitClientFirst::new(Arc::new(mock.verifier(user)), &[2; 32]);
        String::from_utf8(server.answer(b"n,,n=,r=abc").unwrap().server_first().to_vec()).unwrap()
    };
    assert_eq!(challenge("nobody"), challenge("nobody"), "the same salt each time");
    assert_ne!(challenge("nobody"), challenge("someone"));
    let real = AwaitClientFirst::new(verifier("pencil"), &[2; 32]).answer(b"n,,n=,r=abc").unwrap();
    assert_eq!(challenge("nobody").len(), real.server_first().len());
    assert_eq!(exchange(password("pencil"), Arc::new(mock.verifier("nobody"))), Err(ScramError::Proof));
    let other_process = MockSecret::new([6; 32], ITERATIONS);
    assert_ne!(mock.verifier("nobody").salt(), other_process.verifier("nobody").salt());
}

#[test]
fn no_secret_is_shown_by_debug() {
    let verifier = verifier("pencil");
    let keys = ScramKeys::derive(b"pencil", SALT, ITERATIONS).unwrap();
    let (client, _) = AwaitServerFirst::new(password("pencil"), &[1; 32]);
    let shown = format!(
        "{verifier:?} {keys:?} {client:?} {:?} {:?} {:?}",
        password("pencil"),
        MockSecret::new([0; 32], 1),
        AwaitClientFirst::new(verifier.clone(), &[2; 32]),
    );
    let hidden = "Verifier { iterations: 3, .. } ScramKeys(hidden) AwaitServerFirst \
                  Password(Password(hidden)) MockSecret(hidden) AwaitClientFirst";
    assert_eq!(shown, hidden);
}

proptest! {
    #[test]
    fn any_password_logs_in_and_any_other_does_not(ours in "\\PC{1,40}", theirs in "\\PC{1,40}") {
        let stored = Arc::new(Verifier::derive(ours.as_bytes(), SALT, 1).unwrap());
        exchange(password(&ours), stored.clone()).unwrap();
        let same = prepare(ours.as_bytes()) == prepare(theirs.as_bytes());
        prop_assert_eq!(exchange(password(&theirs), stored).is_ok(), same);
    }

    #[test]
    fn a_proof_with_one_byte_changed_is_refused(place in 0_usize..200, change in 1_u8..) {
        let keys = ScramKeys::derive(b"pencil", SALT, ITERATIONS).unwrap();
        let (client, first) = AwaitServerFirst::new(ClientSecret::Keys(keys), &[1; 32]);
        let server = AwaitClientFirst::new(verifier("pencil"), &[2; 32]).answer(&first).unwrap();
        let (_, mut last) = client.answer(server.server_first()).unwrap();
        let place = place % last.len();
        last[place] ^= change;
        prop_assert!(server.finish(&last).is_err());
    }

    #[test]
    fn any_verifier_survives_being_written_and_read(
        password: Vec<u8>, salt in proptest::collection::vec(any::<u8>(), 1..=256)
    ) {
        let verifier = Verifier::derive(&password, &salt, 1).unwrap();
        prop_assert_eq!(verifier.to_string().parse::<Verifier>().unwrap(), verifier);
    }

    #[test]
    fn no_text_makes_reading_a_verifier_panic(text in "(SCRAM-SHA-256)?[$:0-9A-Za-z+/=]{0,120}|\\PC*") {
        let _ = text.parse::<Verifier>();
    }
}
