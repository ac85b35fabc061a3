use proptest::prelude::*;

use super::*;
use crate::message::{TransactionStatus, backend, error_response, frontend};
use crate::startup::{cancel_request, gss_encryption_request, ssl_request};

/// Whole messages as the targets of logins take them: tag, two bytes of length, body.
fn framed(choice: u8, mut messages: &[u8]) -> Vec<u8> {
    let mut data = vec![choice];
    while let Some((tag, rest)) = messages.split_first() {
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        data.push(*tag);
        data.extend(u16::try_from(length - 4).unwrap().to_be_bytes());
        data.extend(&rest[4..length]);
        messages = &rest[length..];
    }
    data
}

/// Honest inputs, from which to go astray.
fn startup_seeds() -> Vec<Vec<u8>> {
    let startup = startup_message([("user", "ada"), ("database", "shop"), ("replication", "on")]).unwrap();
    vec![startup, ssl_request(), gss_encryption_request(), cancel_request(1, &[7; 32])]
}

fn client_seeds() -> Vec<Vec<u8>> {
    let mut password = Vec::new();
    frontend::password(&mut password, b"pencil");
    let mut scram = Vec::new();
    frontend::sasl_initial_response(&mut scram, MECHANISM, b"n,,n=,r=abcdefgh");
    // The server's part of the nonce is base64 of fixed bytes.
    let proof = b"c=biws,r=abcdefghAQEBAQEBAQEBAQEBAQEBAQEB,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    frontend::sasl_response(&mut scram, proof);
    (0..16).flat_map(|choice| [framed(choice, &password), framed(choice, &scram)]).collect()
}

fn server_seeds() -> Vec<Vec<u8>> {
    let mut trust = Vec::new();
    backend::authentication_ok(&mut trust);
    backend::parameter_status(&mut trust, "TimeZone", "UTC");
    backend::backend_key_data(&mut trust, &crate::CancelKey { process_id: 1, secret: [1, 2, 3, 4].into() });
    backend::ready_for_query(&mut trust, TransactionStatus::Idle);
    let mut md5 = Vec::new();
    backend::authentication_md5_password(&mut md5, *b"salt");
    md5.extend(&trust);
    let mut scram = Vec::new();
    backend::authentication_sasl(&mut scram, &[MECHANISM]);
    backend::authentication_sasl_continue(&mut scram, b"r=AQEBAQEBAQEBAQEBAQEBAQEBserver,s=c2FsdA==,i=3");
    backend::authentication_sasl_final(&mut scram, b"v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    scram.extend(&trust);
    let refused = error_response(crate::message::Severity::Fatal, "53300", "too many", Some("d"), Some("h"));
    (0..4)
        .flat_map(|choice| [&trust, &md5, &scram, &refused].map(|messages| framed(choice, messages)))
        .collect()
}

/// Every honest input, cut at every place, and with every byte changed in a few ways.
fn go_astray(seeds: &[Vec<u8>], target: fn(&[u8])) {
    for seed in seeds {
        for cut in 0..=seed.len() {
            target(&seed[..cut]);
        }
        for place in 0..seed.len() {
            for change in [1, 0x20, 0x80, 0xff] {
                let mut changed = seed.clone();
                changed[place] ^= change;
                target(&changed);
            }
        }
    }
}

#[test]
fn honest_inputs_cut_or_changed_anywhere_break_nothing() {
    go_astray(&startup_seeds(), startup_packet);
    go_astray(&client_seeds(), client_login);
    go_astray(&server_seeds(), server_login);
    for seed in startup_seeds().iter().chain(&server_seeds()) {
        bodies(seed);
    }
}

/// A seed with some bytes overwritten, or any bytes at all.
fn near(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let changed = (prop::sample::select(seeds), changes).prop_map(|(mut seed, changes)| {
        for (place, byte) in changes {
            let place = place.index(seed.len());
            seed[place] = byte;
        }
        seed
    });
    prop_oneof![changed, proptest::collection::vec(any::<u8>(), 0..300)]
}

proptest! {
    #[test]
    fn no_first_packet_breaks_anything(data in near(startup_seeds())) {
        startup_packet(&data);
    }

    #[test]
    fn no_body_breaks_anything(data in near(server_seeds())) {
        bodies(&data);
    }

    #[test]
    fn no_client_gets_in_by_chance(data in near(client_seeds())) {
        client_login(&data);
    }

    #[test]
    fn no_server_is_believed_by_chance(data in near(server_seeds())) {
        server_login(&data);
    }
}
